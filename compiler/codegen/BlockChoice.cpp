// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/BlockChoice.h"
#include "compiler/codegen/LowerContraction.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace nearbank::codegen {

/// Register tile without vectors, rows x columns.
static constexpr int64_t registerTile = 4;
/// Share of a task by which the busiest core is behind the others, whose memory accesses meet less often.
static constexpr double waitingShare = 0.1;
/// Longest side of a block.
static constexpr int64_t longestSide = 192;
/// Rows from which copying the panel of a block pays.
static constexpr int64_t fewestBlockedRows = 8;
/// Rows of a panel: with 32 columns of 4 bytes it takes half of a 32 KB first-level cache.
static constexpr int64_t panelDepth = 128;
/// Register tile with a vector unit: 24 sums, 4 vectors of the panel and a scalar operand fit 32 registers.
static constexpr int64_t vectorTileRows = 6, vectorTileVectors = 4;
/// Rows and columns of a tile of dot products: 16 sums, 4 vectors of one input and one of the other.
static constexpr int64_t dotTile = 4;
/// Iterations of a block of dot products: what a tile reads of both inputs takes half of a 32 KB first-level cache.
static constexpr int64_t dotDepth = 512;
/// Reductions from which dot products pay for summing up their vectors.
static constexpr int64_t shortestDot = 128;
/// Iterations of a block of few rows: its sums are written to memory once per block.
static constexpr int64_t directDepth = 512;

/// Cycles per register of sums: instructions of the tile's loop over its multiply-adds (24 of 39 with vectors, 64 of
/// 105 without, dot products 16 of 33 and the final sums). Lines come from DRAM, some 75 cycles for 16 elements.
/// Scratch memory takes three quarters of the first-level cache.
static constexpr ContractionCosts pimCosts = {128, 32, 24576, 1.6, 1.6, 2.5, 3.0, 5.0, 5.0};
static constexpr ContractionCosts pimVectorCosts = {128, 32, 24576, 1.6, 2.3, 0.5, 1.3, 5.0, 5.0};
/// Two multiply-adds and, for transposed copies, one element a cycle. Vector loads run ahead of their use; scalar ones
/// wait for some of the time of a line. Scratch memory stays in the second-level cache.
static constexpr ContractionCosts modelledHostCosts = {16, 16, 131072, 0.5, 0.58, 0.4, 1.0, 0.4, 2.0};

ScheduleTarget pimTarget(VectorUnit vector) { return {true, vector, 256, vector.bits > 0 ? pimVectorCosts : pimCosts}; }
ScheduleTarget modelledHostTarget(VectorUnit vector) { return {true, vector, 64, modelledHostCosts}; }

/// Whether the innermost dimension of `operand` is loop `dim` and contiguous.
static bool isContiguousAlong(linalg::GenericOp op, unsigned operand, unsigned dim) {
  AffineMap map = op.getIndexingMapsArray()[operand];
  return map.getNumResults() > 0 && map.getResults().back() == getAffineDimExpr(dim, op.getContext()) &&
         strideAlong(op, op->getOpOperand(operand), dim) == 1;
}

namespace {

/// Finds the blocks of a contraction with rows and columns that cost least.
class BlockChoice {
public:
  BlockChoice(linalg::GenericOp op, ArrayRef<int64_t> ranges, const NestSchedule &schedule,
              const ScheduleTarget &target)
      : op_(op), ranges_(ranges), schedule_(schedule), costs_(target.costs), numRows_(ranges[*schedule.rowDim]),
        numColumns_(ranges[*schedule.columnDim]) {
    for (unsigned dim = 0; dim < ranges.size(); ++dim)
      if (op.getIteratorTypesArray()[dim] == utils::IteratorType::parallel && dim != *schedule.rowDim &&
          dim != *schedule.columnDim)
        others_ *= ranges[dim];
    if (target.vector.bits > 0 && isVectorizableContraction(op))
      vectorLength_ = target.vector.bits / elementBits(2);
  }

  /// Nothing where the simple form does as well.
  std::optional<ContractionBlocks> choose() {
    if (canMultiplyRows())
      tryAll(dotBlocks());
    if (numColumns_ >= vectorLength_ && numRows_ >= fewestBlockedRows)
      tryAll(panelBlocks());
    else if (vectorLength_ > 1 && numRows_ > 1 && isContiguousAlong(op_, 1, *schedule_.columnDim))
      tryAll(directBlocks());
    return best_;
  }

private:
  using Right = ContractionBlocks::Right;

  unsigned elementBits(unsigned operand) {
    return cast<MemRefType>(op_->getOperand(operand).getType()).getElementType().getIntOrFloatBitWidth();
  }

  /// Dot products of vectors: a plain sum of products, contiguous along the reduction on both sides.
  bool canMultiplyRows() {
    unsigned reduction = schedule_.reductions.back();
    Type element = cast<MemRefType>(op_.getDpsInits()[0].getType()).getElementType();
    return vectorLength_ > 1 && isa<Float32Type, Float64Type>(element) && schedule_.reductions.size() == 1 &&
           ranges_[reduction] >= shortestDot && isMultiplyAdd(op_) && elementBits(0) == elementBits(2) &&
           elementBits(1) == elementBits(2) && isContiguousAlong(op_, 0, reduction) &&
           isContiguousAlong(op_, 1, reduction);
  }

  ContractionBlocks dotBlocks() {
    ContractionBlocks blocks;
    blocks.right = Right::Dot;
    blocks.vectorLength = vectorLength_;
    blocks.tileRows = std::min(dotTile, numRows_);
    blocks.tileVectors = std::min(dotTile, numColumns_);
    cutReductions(blocks, dotDepth);
    return blocks;
  }

  ContractionBlocks panelBlocks() {
    ContractionBlocks blocks;
    blocks.vectorLength = vectorLength_;
    blocks.tileRows = blocks.tileVectors = registerTile;
    if (vectorLength_ > 1) {
      blocks.tileRows = vectorTileRows;
      blocks.tileVectors = std::min<int64_t>(vectorTileVectors, llvm::divideCeil(numColumns_, vectorLength_));
    }
    cutReductions(blocks, panelDepth);
    return blocks;
  }

  /// Few rows use a panel too seldom to make one; vectors must not reach beyond the last column.
  ContractionBlocks directBlocks() {
    ContractionBlocks blocks;
    blocks.right = Right::Direct;
    blocks.vectorLength = vectorLength_;
    blocks.tileRows = std::min(vectorTileRows, numRows_);
    blocks.tileVectors = vectorTileVectors;
    while (blocks.tileVectors > 0 && numColumns_ % blocks.tileColumns() != 0)
      --blocks.tileVectors;
    cutReductions(blocks, directDepth);
    return blocks;
  }

  /// As much of the innermost reduction loops as makes `depth` iterations.
  void cutReductions(ContractionBlocks &blocks, int64_t depth) {
    blocks.blockedReduction = schedule_.reductions.size() - 1;
    int64_t inside = 1;
    while (blocks.blockedReduction > 0 && inside * ranges_[schedule_.reductions[blocks.blockedReduction]] < depth)
      inside *= ranges_[schedule_.reductions[blocks.blockedReduction--]];
    int64_t length = ranges_[schedule_.reductions[blocks.blockedReduction]];
    blocks.blockedLength = std::min(length, std::max<int64_t>(1, depth / inside));
    blocks.depth = blocks.blockedLength * inside;
  }

  /// Cuts rows and columns into equal pieces in every way that the target allows.
  void tryAll(ContractionBlocks blocks) {
    if (blocks.tileVectors == 0)
      return;
    for (int64_t rows : pieces(numRows_, blocks.tileRows))
      for (int64_t columns : pieces(numColumns_, blocks.tileColumns())) {
        blocks.rows = rows;
        blocks.columns = columns;
        bool isSmallest = rows == blocks.tileRows && columns == blocks.tileColumns();
        if (scratchBytes(blocks) > costs_.scratchBytes && !isSmallest)
          continue;
        double cost = costOf(blocks);
        if (!best_ || cost < bestCost_) {
          best_ = blocks;
          bestCost_ = cost;
        }
      }
  }

  int64_t scratchBytes(const ContractionBlocks &blocks) {
    int64_t results = blocks.rows * blocks.columns * elementBits(2) / 8;
    int64_t panel = blocks.right == Right::Panel ? blocks.depth * blocks.columns * elementBits(1) / 8 : 0;
    return results + panel;
  }

  static SmallVector<int64_t> pieces(int64_t length, int64_t unit) {
    SmallVector<int64_t> sizes;
    for (int64_t size = llvm::alignTo(std::min(length, longestSide), unit); size > 0; size -= unit) {
      // The size that cuts the loop into as many pieces as evenly as may be.
      int64_t even = llvm::alignTo(llvm::divideCeil(length, llvm::divideCeil(length, size)), unit);
      if (sizes.empty() || sizes.back() != even)
        sizes.push_back(even);
    }
    return sizes;
  }

  /// Cycles of all cores until the busiest one is done, per iteration of the reduction; summed over machines.
  double costOf(const ContractionBlocks &blocks) {
    auto rows = static_cast<double>(blocks.rows), columns = static_cast<double>(blocks.columns);
    bool isDot = blocks.right == Right::Dot;
    double cycles = rows * columns / static_cast<double>(vectorLength_) *
                    (isDot ? costs_.dotMultiplyAddCycles : costs_.multiplyAddCycles);
    if (blocks.right == Right::Panel)
      cycles +=
          columns * (isContiguousAlong(op_, 1, *schedule_.columnDim) ? costs_.copyCycles : costs_.transposeCycles);
    cycles += rows * (isDot ? costs_.missCycles : costs_.scalarMissCycles) + columns * costs_.missCycles;
    int64_t tasks = others_ * llvm::divideCeil(numRows_, blocks.rows) * llvm::divideCeil(numColumns_, blocks.columns);
    double turns = 0;
    for (int64_t cores = costs_.cores; cores >= costs_.fewestCores; cores /= 2)
      turns += static_cast<double>(llvm::divideCeil(tasks, cores) * cores) + waitingShare * static_cast<double>(cores);
    return cycles * turns;
  }

  linalg::GenericOp op_;
  ArrayRef<int64_t> ranges_;
  const NestSchedule &schedule_;
  const ContractionCosts &costs_;
  int64_t numRows_, numColumns_;
  int64_t others_ = 1; ///< Iterations of the other parallel loops.
  int64_t vectorLength_ = 1;
  std::optional<ContractionBlocks> best_;
  double bestCost_ = 0;
};

} // namespace

std::optional<ContractionBlocks> chooseBlocks(linalg::GenericOp op, ArrayRef<int64_t> ranges,
                                              const NestSchedule &schedule, const ScheduleTarget &target) {
  return BlockChoice(op, ranges, schedule, target).choose();
}

} // namespace nearbank::codegen
