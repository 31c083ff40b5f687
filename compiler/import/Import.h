// SPDX-License-Identifier: Apache-2.0
// Reads linalg-on-tensors MLIR text and checks the input contract of the compiler.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace nearbank::import {

/// Registers every dialect that input or lowering may use, with the interfaces that bufferization needs.
void registerDialects(mlir::DialectRegistry &registry);

/// Parses `text` and verifies the contract: one function `main`, tensors of static shape, known dialects.
/// @param diagnostics receives what MLIR said when the result is null
mlir::OwningOpRef<mlir::ModuleOp> importModule(mlir::MLIRContext &context, const std::string &text,
                                               std::string &diagnostics);

} // namespace nearbank::import
