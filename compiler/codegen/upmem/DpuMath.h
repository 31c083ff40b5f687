// SPDX-License-Identifier: Apache-2.0
// Spells the mathematics of a nest out, since DPUs have no library for it.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace nearbank::codegen {

/// A copy of the kernel whose mathematics is spelled out, as on the other sides; null when it cannot be.
mlir::OwningOpRef<mlir::ModuleOp> expandMath(mlir::func::FuncOp kernel);

} // namespace nearbank::codegen
