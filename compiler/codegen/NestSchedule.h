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

/// Vector unit of the core that code is made for.
struct VectorUnit {
  int64_t bits = 0; ///< Length of a register; 0 means that there is none.
};

/// What a contraction costs, by which its blocks are chosen. Core cycles.
struct ContractionCosts {
  int64_t cores = 1;               ///< Most cores that share the tasks.
  int64_t fewestCores = 1;         ///< Machines of half as many, and so on down to these, count as well.
  int64_t scratchBytes = 0;        ///< Most that results and panel of a block may take.
  double multiplyAddCycles = 1;    ///< One register of sums, with its share of loads; one input lies in a panel.
  double dotMultiplyAddCycles = 1; ///< The same where registers run along the reduction.
  double copyCycles = 0;           ///< One element into the panel.
  double transposeCycles = 0;      ///< The same from memory that is not contiguous along the columns.
  double missCycles = 0;           ///< One element of an input from below the first-level cache.
  double scalarMissCycles = 0;     ///< The same for an input that is read element by element.
};

/// Sizes that a schedule is made for.
struct ScheduleTarget {
  bool blocksContractions = false; ///< Contractions with rows and columns run in blocks (ContractionBlocks).
  VectorUnit vector;
  int64_t desiredTasks = 256; ///< Tasks that keep all cores busy with some slack for uneven ones.
  ContractionCosts costs;
};

/// Near-memory cores: in order, with a first-level cache of 32 KB and nothing below.
ScheduleTarget pimTarget(VectorUnit vector);
/// Cores of the modelled host: out of order, with two private levels of cache.
ScheduleTarget modelledHostTarget(VectorUnit vector);

/// Blocks of a contraction. A task computes rows x columns results, depth iterations of the reduction at a time, tile
/// by tile. A tile of results lives in registers.
struct ContractionBlocks {
  enum class Right {
    Panel,  ///< A panel of depth x columns of the second input is copied to scratch memory; vectors run along columns.
    Direct, ///< The second input is read where it is; vectors run along columns.
    Dot     ///< Both inputs are read where they are; vectors run along the reduction and are summed up at the end.
  };
  Right right = Right::Panel;
  int64_t rows = 1, columns = 1, depth = 1; ///< Multiples of the tile's, but for depth.
  int64_t tileRows = 1, tileVectors = 1, vectorLength = 1;
  size_t blockedReduction = 0; ///< Position in `reductions` of the loop that is cut; those behind it are whole.
  int64_t blockedLength = 1;   ///< Its iterations in one block.
  int64_t tileColumns() const { return right == Right::Dot ? tileVectors : tileVectors * vectorLength; }
};

struct NestSchedule {
  enum class Form {
    Blocked,     ///< Contraction in blocks.
    Contraction, ///< Two parallel loops blocked in registers around the reduction loops.
    Reduction,   ///< One result per task point, reduced in registers.
    Parallel     ///< A parallel loop innermost; reductions, if any, accumulate in memory outside of it. Without
                 ///< reductions, the tile of a transposition has a second loop.
  };
  Form form = Form::Parallel;
  /// Parallel loops in task order, outermost first; each task covers one tile of each.
  llvm::SmallVector<Tile> tasks;
  /// Reduction loops, outermost first.
  llvm::SmallVector<unsigned> reductions;
  /// Contraction: loops that only the first or only the second input has (also in `tasks`).
  std::optional<unsigned> rowDim, columnDim;
  std::optional<ContractionBlocks> blocks; ///< Of form Blocked.

  int64_t numTasks(llvm::ArrayRef<int64_t> ranges) const;
};

NestSchedule scheduleNest(mlir::linalg::GenericOp op, const ScheduleTarget &target = {});

/// Stride in elements with which `operand` advances along loop `dim`, or -1 when its memory has no strides.
int64_t strideAlong(mlir::linalg::GenericOp op, mlir::OpOperand &operand, unsigned dim);

/// True for a body that yields out + a * b in one float type.
bool isMultiplyAdd(mlir::linalg::GenericOp op);

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
