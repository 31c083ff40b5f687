// SPDX-License-Identifier: Apache-2.0
// Passes that lower outlined nests to code for one side.
#pragma once

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace nearbank::codegen {

inline constexpr llvm::StringLiteral tasksAttr = "nearbank.tasks";
/// Trips of the outermost reduction loop (f64) of a kernel that lets its third status word cut them short.
inline constexpr llvm::StringLiteral reductionTripsAttr = "nearbank.reduction_trips";
/// Set on kernels that call BLAS.
inline constexpr llvm::StringLiteral blasAttr = "nearbank.blas";

#define GEN_PASS_DECL
#include "compiler/codegen/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/codegen/Passes.h.inc"

} // namespace nearbank::codegen
