// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/NestSchedule.h"
#include "compiler/codegen/BlockChoice.h"
#include "compiler/loopnest/BufferRoot.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace nearbank::codegen {

/// Register tile of contractions, rows x columns: 16 accumulators and 8 operands fit the 32 float registers of RV64.
static constexpr int64_t registerTile = 4;
/// Columns of a vector-matrix product that one task computes: a whole cache line of the matrix in every row.
static constexpr int64_t lineColumns = 16;
/// Tile of a transposition: lines of the operand that is read or written across them, and elements of each. Where rows
/// are a power of two long, all of these lines share one set of the first-level cache, of 8 ways.
static constexpr int64_t transposeLines = 8, transposeElements = 16;
/// Shortest piece of an innermost loop worth a task of its own.
static constexpr int64_t shortestChunk = 32;
/// Longest piece of a column reduction: its accumulators stay in a 32 KB first-level cache.
static constexpr int64_t longestAccumulatorChunk = 1024;

int64_t NestSchedule::numTasks(ArrayRef<int64_t> ranges) const {
  int64_t count = 1;
  for (const Tile &tile : tasks)
    count *= llvm::divideCeil(ranges[tile.dim], tile.length);
  return count;
}

int64_t strideAlong(linalg::GenericOp op, OpOperand &operand, unsigned dim) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type)
    return 0;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return -1;
  int64_t stride = 0;
  for (auto [result, step] : llvm::zip(op.getMatchingIndexingMap(&operand).getResults(), strides)) {
    if (auto expr = dyn_cast<AffineDimExpr>(result))
      stride += expr.getPosition() == dim ? step : 0;
    else if (result.isFunctionOfDim(dim))
      stride += step; // Windows advance by a small multiple of the step.
  }
  return stride;
}

/// The loop along which most operands are contiguous; later loops win ties.
static unsigned innermostLoop(linalg::GenericOp op, ArrayRef<int64_t> ranges) {
  unsigned best = op.getNumLoops() - 1;
  double bestScore = -1;
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim) {
    if (ranges[dim] == 1)
      continue;
    double score = 0;
    for (OpOperand &operand : op->getOpOperands()) {
      int64_t stride = strideAlong(op, operand, dim);
      // Contiguous accesses share cache lines, invariant ones stay in a register.
      score += stride == 1 ? 1.0 : stride == 0 ? 0.9 : 0.0;
    }
    // Very short loops gain little from being innermost.
    score *= std::min<double>(1.0, ranges[dim] / 8.0);
    if (score >= bestScore) {
      bestScore = score;
      best = dim;
    }
  }
  return best;
}

static bool isParallel(linalg::GenericOp op, unsigned dim) {
  return op.getIteratorTypesArray()[dim] == utils::IteratorType::parallel;
}

/// Loops that `operand` depends on.
static llvm::SmallBitVector loopsOf(linalg::GenericOp op, unsigned operand) {
  AffineMap map = op.getIndexingMapsArray()[operand];
  llvm::SmallBitVector loops(map.getNumDims());
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
    if (map.isFunctionOfDim(dim))
      loops.set(dim);
  return loops;
}

/// A contraction or convolution with a row loop that only the first input has and a column loop that only the
/// second has, or one of the two.
static bool scheduleContraction(linalg::GenericOp op, ArrayRef<int64_t> ranges, const ScheduleTarget &target,
                                NestSchedule &schedule) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0)
    return false;
  bool isFloat = isa<FloatType>(cast<MemRefType>(op.getDpsInits()[0].getType()).getElementType());
  if (!isFloat || op.getBody()->getOps<arith::MulFOp>().empty() || op.getBody()->getOps<arith::AddFOp>().empty() ||
      !op.getBody()->getOps<memref::LoadOp>().empty())
    return false;
  llvm::SmallBitVector lhs = loopsOf(op, 0), rhs = loopsOf(op, 1);
  std::optional<unsigned> row, column;
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim) {
    if (!isParallel(op, dim) || ranges[dim] == 1)
      continue;
    // The longest loop of each side gives the fewest ragged tiles.
    if (lhs.test(dim) && !rhs.test(dim) && (!row || ranges[dim] >= ranges[*row]))
      row = dim;
    if (rhs.test(dim) && !lhs.test(dim) && (!column || ranges[dim] >= ranges[*column]))
      column = dim;
  }
  if (!row && !column)
    return false;
  int64_t columnTile = registerTile;
  if (target.blocksContractions && !row && strideAlong(op, op->getOpOperand(1), *column) == 1) {
    // A parallel loop along the columns vectorises; scalar code keeps the sums of a cache line in registers.
    if (target.vector.bits > 0)
      return false;
    columnTile = lineColumns;
  }
  schedule.form = NestSchedule::Form::Contraction;
  schedule.rowDim = row;
  schedule.columnDim = column;
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
    if (isParallel(op, dim) && dim != row && dim != column)
      schedule.tasks.push_back({dim, 1});
  if (target.blocksContractions && row && column)
    schedule.blocks = chooseBlocks(op, ranges, schedule, target);
  if (schedule.blocks) {
    schedule.form = NestSchedule::Form::Blocked;
    // Tasks that follow each other share rows of the second input, the larger one in most models.
    schedule.tasks.push_back({*row, schedule.blocks->rows});
    schedule.tasks.push_back({*column, schedule.blocks->columns});
    return true;
  }
  if (row)
    schedule.tasks.push_back({*row, std::min(registerTile, ranges[*row])});
  if (column)
    schedule.tasks.push_back({*column, std::min(columnTile, ranges[*column])});
  return true;
}

/// The loop along which an operand is contiguous that jumps from line to line along `inner`.
static std::optional<unsigned> transposedLoop(linalg::GenericOp op, ArrayRef<int64_t> ranges, unsigned inner) {
  if (op.getNumReductionLoops() > 0 || ranges[inner] < transposeLines)
    return std::nullopt;
  for (OpOperand &operand : op->getOpOperands())
    if (strideAlong(op, operand, inner) >= lineColumns)
      for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
        if (dim != inner && ranges[dim] >= transposeElements && strideAlong(op, operand, dim) == 1)
          return dim;
  return std::nullopt;
}

NestSchedule scheduleNest(linalg::GenericOp op, const ScheduleTarget &target) {
  NestSchedule schedule;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  unsigned inner = op.getNumLoops() > 0 ? innermostLoop(op, ranges) : 0;
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
    if (!isParallel(op, dim))
      schedule.reductions.push_back(dim);
  if (scheduleContraction(op, ranges, target, schedule))
    return schedule;
  bool hasInnerReduction = op.getNumLoops() > 0 && !isParallel(op, inner);
  if (hasInnerReduction) {
    schedule.form = NestSchedule::Form::Reduction;
    llvm::erase(schedule.reductions, inner);
    schedule.reductions.push_back(inner);
  }
  std::optional<unsigned> transposed = op.getNumLoops() > 0 ? transposedLoop(op, ranges, inner) : std::nullopt;
  int64_t outer = 1;
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
    if (isParallel(op, dim) && (hasInnerReduction || dim != inner) && dim != transposed) {
      schedule.tasks.push_back({dim, 1});
      outer *= ranges[dim];
    }
  if (transposed) {
    schedule.tasks.push_back({*transposed, transposeElements});
    schedule.tasks.push_back({inner, transposeLines});
  } else if (!hasInnerReduction && op.getNumLoops() > 0) {
    // Rows that the reduction walks are read in long pieces: hardware prefetches beyond the end of each.
    bool isAccumulating = !schedule.reductions.empty();
    int64_t desired = isAccumulating && target.blocksContractions ? target.costs.cores : target.desiredTasks;
    int64_t shortest = isAccumulating && target.blocksContractions ? lineColumns : shortestChunk;
    int64_t pieces = llvm::divideCeil(desired, outer);
    int64_t length = std::max<int64_t>(shortest, llvm::alignTo(llvm::divideCeil(ranges[inner], pieces), 16));
    if (isAccumulating)
      length = std::min(length, longestAccumulatorChunk);
    schedule.tasks.push_back({inner, std::min(length, ranges[inner])});
  }
  return schedule;
}

bool isMultiplyAdd(linalg::GenericOp op) {
  Block *body = op.getBody();
  if (body->getOperations().size() != 3)
    return false;
  auto add = body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add)
    return false;
  Value out = body->getArgument(2);
  Value product = add.getLhs() == out ? add.getRhs() : add.getRhs() == out ? add.getLhs() : Value();
  auto multiply = product ? product.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  return multiply && isa<BlockArgument>(multiply.getLhs()) && isa<BlockArgument>(multiply.getRhs()) &&
         multiply.getLhs() != multiply.getRhs() && multiply.getLhs() != out && multiply.getRhs() != out;
}

std::optional<MatrixProduct> matchMatrixProduct(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 1 || !isMultiplyAdd(op))
    return std::nullopt;
  for (AffineMap map : op.getIndexingMapsArray())
    if (!map.isProjectedPermutation())
      return std::nullopt;
  Type element = cast<MemRefType>(op.getDpsInits()[0].getType()).getElementType();
  for (Value input : op.getDpsInputs())
    if (cast<MemRefType>(input.getType()).getElementType() != element)
      return std::nullopt;
  if (!element.isF32() && !element.isF64())
    return std::nullopt;
  MatrixProduct product;
  product.isDouble = element.isF64();
  llvm::SmallBitVector lhs = loopsOf(op, 0), rhs = loopsOf(op, 1);
  SmallVector<unsigned> rows, columns;
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim) {
    if (!isParallel(op, dim))
      product.kDim = dim;
    else if (lhs.test(dim) && rhs.test(dim))
      product.batchDims.push_back(dim);
    else if (lhs.test(dim))
      rows.push_back(dim);
    else if (rhs.test(dim))
      columns.push_back(dim);
    else
      return std::nullopt;
  }
  if (rows.size() > 1 || columns.size() != 1 || !lhs.test(product.kDim) || !rhs.test(product.kDim))
    return std::nullopt;
  product.isRowVector = rows.empty();
  product.nDim = columns[0];
  OpOperand &left = op->getOpOperand(0), &right = op->getOpOperand(1), &out = op->getOpOperand(2);
  if (!rows.empty()) {
    product.mDim = rows[0];
    product.lhsStrideM = strideAlong(op, left, product.mDim);
    product.outStrideM = strideAlong(op, out, product.mDim);
  }
  product.lhsStrideK = strideAlong(op, left, product.kDim);
  product.rhsStrideK = strideAlong(op, right, product.kDim);
  product.rhsStrideN = strideAlong(op, right, product.nDim);
  bool isLeftFit = product.lhsStrideK == 1 || product.lhsStrideM == 1;
  bool isRightFit = product.rhsStrideK == 1 || product.rhsStrideN == 1;
  if (!isLeftFit || !isRightFit || strideAlong(op, out, product.nDim) != 1)
    return std::nullopt;
  return product;
}

} // namespace nearbank::codegen
