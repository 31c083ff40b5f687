// SPDX-License-Identifier: Apache-2.0
// Lowers matrix products of the host to calls of a BLAS wrapper.
#pragma once

#include "compiler/codegen/NestSchedule.h"
#include "mlir/IR/Builders.h"

namespace nearbank::codegen {

/// Names and argument count of the wrappers; see Gemm.h for their signature.
inline constexpr llvm::StringLiteral gemmF32Symbol = "nearbankGemmF32";
inline constexpr llvm::StringLiteral gemmF64Symbol = "nearbankGemmF64";
inline constexpr unsigned gemmArguments = 12;

struct BlasArguments {
  mlir::Value begin, end;   ///< Task range of the kernel.
  bool accumulates = false; ///< Adds to what the output holds.
};

/// True when a product is large enough for a BLAS call to pay.
bool isWorthBlas(const MatrixProduct &product, llvm::ArrayRef<int64_t> ranges);

/// Emits the product at the builder's position; returns the length of its task range.
int64_t emitBlas(mlir::OpBuilder &builder, mlir::linalg::GenericOp op, const MatrixProduct &product,
                 const BlasArguments &arguments);

} // namespace nearbank::codegen
