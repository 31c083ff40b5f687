// SPDX-License-Identifier: Apache-2.0
// Emits the scalar body of a nest at one point of its iteration space.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace nearbank::codegen {

/// Emits loads, arithmetic and stores of a linalg.generic on buffers at given loop indices.
class NestBody {
public:
  /// @param status buffer of two i64: code and value of the first failure
  NestBody(mlir::linalg::GenericOp op, mlir::Value status) : op_(op), status_(status) {}

  /// Element of operand `operand` (inputs, then outputs) at loop indices `loops`.
  mlir::Value load(mlir::OpBuilder &builder, mlir::Location loc, unsigned operand, mlir::ValueRange loops);
  /// Consecutive elements of an input from the one at `loops` on, along its innermost dimension, which is contiguous.
  mlir::Value loadVector(mlir::OpBuilder &builder, mlir::Location loc, unsigned operand, mlir::ValueRange loops,
                         mlir::VectorType type);
  void storeOutput(mlir::OpBuilder &builder, mlir::Location loc, unsigned output, mlir::Value value,
                   mlir::ValueRange loops);

  /// Clones the body and returns what it yields.
  /// @param inputs one value per input; outputs: one value per output
  mlir::SmallVector<mlir::Value> emit(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange inputs,
                                      mlir::ValueRange outputs, mlir::ValueRange loops);

  /// Loads every input at `loops`; null for inputs that the body does not use.
  mlir::SmallVector<mlir::Value> loadInputs(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange loops);
  /// Start values of the outputs: the constants of `nearbank.init`, the memory content, or null when unused.
  mlir::SmallVector<mlir::Value> initialOutputs(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange loops);

private:
  mlir::SmallVector<mlir::Value> indices(mlir::OpBuilder &builder, mlir::Location loc, unsigned operand,
                                         mlir::ValueRange loops);
  mlir::linalg::GenericOp op_;
  mlir::Value status_;
};

/// Stores a failed assertion with condition `holds` into the status buffer, and the value that a comparison rejected.
void reportAssertion(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value holds, mlir::Value status);

/// Clamps computed indices of `load` into range and reports those outside; does nothing to indices made of loop
/// variables and constants.
void guardLoad(mlir::Operation *load, mlir::Value status);

} // namespace nearbank::codegen
