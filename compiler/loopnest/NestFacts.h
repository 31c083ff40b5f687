// SPDX-License-Identifier: Apache-2.0
// Derives the facts of an outlined nest from its IR.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "runtime/Program.h"

namespace nearbank::loopnest {

/// Element type of the runtime for an MLIR type; fails on types that programs do not hold.
llvm::FailureOr<ElementType> elementTypeOf(mlir::Type type);

/// The linalg.generic that makes up a kernel, or null when the kernel is general code.
mlir::linalg::GenericOp nestOf(mlir::func::FuncOp kernel);

/// Counts iterations, operations and bytes of a kernel, and names its kind.
NestFacts computeFacts(mlir::func::FuncOp kernel);

/// How a kernel uses one of its memory arguments.
struct ArgumentAccess {
  bool reads = false;
  bool writes = false;
};
ArgumentAccess accessOf(mlir::func::FuncOp kernel, unsigned argument);

/// True when the initial content of output `index` takes part in the result.
bool readsOutput(mlir::linalg::GenericOp op, unsigned index);

} // namespace nearbank::loopnest
