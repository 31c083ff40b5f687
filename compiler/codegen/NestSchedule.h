// SPDX-License-Identifier: Apache-2.0
// Chooses how the loops of a nest run: which form, which loops become tasks, which loop is innermost.
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace nearbank::codegen {

/// Loop dimension that a tile walks, with the tile's length.
struct Tile {
  unsigned dim = 0;
  int64_t length = 1;
};

struct NestSchedule {
  enum class Form {
    Contraction, ///< Two parallel loops blocked in registers around the reduction loops.
    Reduction,   ///< One result per task point, reduced in registers.
    Parallel     ///< A parallel loop innermost; reductions, if any, accumulate in memory outside of it.
  };
  Form form = Form::Parallel;
  /// Parallel loops in task order, outermost first; each task covers one tile of each.
  llvm::SmallVector<Tile> tasks;
  /// Reduction loops, outermost first.
  llvm::SmallVector<unsigned> reductions;
  /// Contraction: loops that only the first or only the second input has (also in `tasks`).
  std::optional<unsigned> rowDim, columnDim;

  int64_t numTasks(llvm::ArrayRef<int64_t> ranges) const;
};

NestSchedule scheduleNest(mlir::linalg::GenericOp op);

/// Stride in elements with which `operand` advances along loop `dim`, or -1 when its memory has no strides.
int64_t strideAlong(mlir::linalg::GenericOp op, mlir::OpOperand &operand, unsigned dim);

/// A matrix product as BLAS sees it: C[m,n] += A[m,k] B[k,n], per batch point.
struct MatrixProduct {
  unsigned mDim = 0, nDim = 0, kDim = 0;
  llvm::SmallVector<unsigned> batchDims;
  int64_t lhsStrideM = 0, lhsStrideK = 0, rhsStrideK = 0, rhsStrideN = 0, outStrideM = 0;
  bool isRowVector = false; ///< No loop m: C[n] += A[k] B[k,n].
  bool isDouble = false;
};

/// Recognises a float matrix product with BLAS-compatible strides.
std::optional<MatrixProduct> matchMatrixProduct(mlir::linalg::GenericOp op);

} // namespace nearbank::codegen
