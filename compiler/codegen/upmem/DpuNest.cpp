// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/upmem/DpuNest.h"

#include "compiler/codegen/upmem/CText.h"
#include "compiler/codegen/upmem/DpuSplit.h"
#include "compiler/loopnest/NestFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <algorithm>
#include <fmt/format.h>

using namespace mlir;

namespace nearbank::codegen {
namespace {

/// WRAM that blocks of all tasklets may take: half of the 64 KB, beside stacks and the program's variables.
constexpr int64_t blockBudget = 32768;
/// Longest DMA.
constexpr int64_t mostDmaBytes = 2048;
/// DMA moves multiples of it between multiples of it.
constexpr int64_t dmaGrain = 8;

/// Issue slots of emitted code around each DMA, and around each piece of work: address, lengths, calls and loops.
constexpr double fetchSlots = 16, itemSlots = 40;

int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }
int64_t bytesOf(Type element) {
  return element.isInteger(1) || element.isIndex() ? (element.isIndex() ? 8 : 1) : element.getIntOrFloatBitWidth() / 8;
}

class Reader {
public:
  Reader(func::FuncOp kernel, std::string &reason) : kernel_(kernel), reason_(reason) {}

  std::optional<DpuNest> read() {
    nest_.op = loopnest::nestOf(kernel_);
    if (!nest_.op)
      return refuse("it is no perfect loop nest");
    if (llvm::is_contained(nest_.op.getStaticLoopRanges(), 0))
      return refuse("it has no iterations");
    readLoops();
    SmallVector<OpOperand *> operands = nest_.op.getDpsInputOperands();
    for (OpOperand *operand : operands)
      if (isa<MemRefType>(operand->get().getType()) && nest_.op.payloadUsesValueFromOperand(operand) &&
          !addOperand(*operand, fmt::format("in{}", nest_.numInputs++)))
        return std::nullopt;
    for (OpOperand &operand : nest_.op.getDpsInitsMutable())
      if (!addOperand(operand, fmt::format("out{}", nest_.numOutputs++)))
        return std::nullopt;
    WalkResult walk = kernel_.walk(
        [&](memref::LoadOp load) { return addTable(load) ? WalkResult::advance() : WalkResult::interrupt(); });
    if (walk.wasInterrupted())
      return std::nullopt;
    if (nest_.op.getBody()->getOps<linalg::IndexOp>().empty())
      collapse();
    return std::move(nest_);
  }

private:
  std::nullopt_t refuse(std::string why) {
    reason_ = std::move(why);
    return std::nullopt;
  }

  void readLoops() {
    for (auto [extent, type] : llvm::zip(nest_.op.getStaticLoopRanges(), nest_.op.getIteratorTypesArray())) {
      nest_.loopOf.push_back(extent == 1 ? -1 : static_cast<int>(nest_.loops.size()));
      if (extent != 1)
        nest_.loops.push_back({extent, type == utils::IteratorType::parallel});
    }
  }

  bool addOperand(OpOperand &operand, std::string name) {
    DpuMemory memory;
    memory.name = std::move(name);
    memory.memory = operand.get();
    memory.bodyArgument = nest_.op.getMatchingBlockArgument(&operand);
    memory.isRead = nest_.op.isDpsInput(&operand) ||
                    loopnest::readsOutput(nest_.op, operand.getOperandNumber() - nest_.op.getNumDpsInputs());
    memory.isWritten = nest_.op.isDpsInit(&operand);
    if (!readShape(memory))
      return false;
    AffineMap map = nest_.op.getMatchingIndexingMap(&operand);
    for (auto [dimension, expr] : llvm::zip(memory.dimensions, map.getResults()))
      if (!readSteps(expr, dimension)) {
        reason_ = "an access is no sum of loops";
        return false;
      }
    if (memory.isWritten && !isDense(memory)) {
      reason_ = "results with gaps between them";
      return false;
    }
    // What has one element tells no loop apart.
    llvm::erase_if(memory.dimensions, [](const DpuDimension &dimension) {
      return dimension.offset == 0 && llvm::all_of(dimension.steps, [](int64_t step) { return step == 0; });
    });
    nest_.memories.push_back(std::move(memory));
    return true;
  }

  /// Whether each dimension has at most one loop, by steps of one, and no two have the same: what is read back from
  /// DPUs is then what they computed.
  bool isDense(const DpuMemory &memory) const {
    std::vector<int> dimensions(nest_.loops.size());
    for (const DpuDimension &dimension : memory.dimensions) {
      int loops = 0;
      for (size_t loop = 0; loop < nest_.loops.size(); ++loop) {
        if (dimension.steps[loop] == 0)
          continue;
        if (dimension.steps[loop] != 1 || ++loops > 1 || ++dimensions[loop] > 1)
          return false;
      }
    }
    return true;
  }

  bool readShape(DpuMemory &memory) {
    auto type = cast<MemRefType>(memory.memory.getType());
    memory.element = type.getElementType();
    SmallVector<int64_t> strides;
    int64_t offset;
    if (memoryTypeOf(memory.element).empty() || memory.element.isIndex()) {
      llvm::raw_string_ostream(reason_) << "no C for elements of type " << memory.element;
      return false;
    }
    if (!isa<BlockArgument>(memory.memory) || failed(type.getStridesAndOffset(strides, offset)) ||
        llvm::any_of(strides, [](int64_t stride) { return stride < 0; })) {
      reason_ = "memory without positive strides";
      return false;
    }
    for (auto [size, stride] : llvm::zip(type.getShape(), strides))
      memory.dimensions.push_back({size, stride, 0, std::vector<int64_t>(nest_.loops.size())});
    return true;
  }

  /// Adds what an index expression says to a dimension.
  bool readSteps(AffineExpr expr, DpuDimension &dimension, int64_t factor = 1) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      int loop = nest_.loopOf[dim.getPosition()];
      if (loop >= 0)
        dimension.steps[loop] += factor;
      return factor > 0;
    }
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      dimension.offset += constant.getValue() * factor;
      return dimension.offset >= 0;
    }
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (binary && expr.getKind() == AffineExprKind::Add)
      return readSteps(binary.getLHS(), dimension, factor) && readSteps(binary.getRHS(), dimension, factor);
    if (auto constant = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
        constant && expr.getKind() == AffineExprKind::Mul)
      return readSteps(binary.getLHS(), dimension, factor * constant.getValue());
    return false;
  }

  bool addTable(memref::LoadOp load) {
    if (llvm::any_of(nest_.memories, [&](const DpuMemory &other) {
          return other.memory == load.getMemRef() && other.fetch == DpuFetch::Table;
        }))
      return true;
    DpuMemory memory;
    memory.name = fmt::format("table{}", nest_.memories.size());
    memory.memory = load.getMemRef();
    memory.isRead = true;
    memory.fetch = DpuFetch::Table;
    if (!readShape(memory))
      return false;
    nest_.memories.push_back(std::move(memory));
    return true;
  }

  /// Makes one loop of two where every operand walks them as one.
  void collapse() {
    for (size_t outer = 0; outer + 1 < nest_.loops.size();) {
      if (canCollapse(outer))
        merge(outer);
      else
        ++outer;
    }
  }

  /// The dimension that `loop` alone moves in, by steps of one; none when there is no such.
  static std::optional<size_t> ownDimension(const DpuMemory &memory, size_t loop) {
    std::optional<size_t> found;
    for (size_t i = 0; i < memory.dimensions.size(); ++i) {
      const DpuDimension &dimension = memory.dimensions[i];
      if (dimension.steps[loop] == 0)
        continue;
      bool isAlone = llvm::count_if(dimension.steps, [](int64_t step) { return step != 0; }) == 1;
      if (found || !isAlone || dimension.steps[loop] != 1 || dimension.offset != 0)
        return std::nullopt;
      found = i;
    }
    return found;
  }

  static bool isUsed(const DpuMemory &memory, size_t loop) {
    return llvm::any_of(memory.dimensions, [&](const DpuDimension &dimension) { return dimension.steps[loop] != 0; });
  }

  bool canCollapse(size_t outer) const {
    size_t inner = outer + 1;
    if (nest_.loops[outer].isParallel != nest_.loops[inner].isParallel)
      return false;
    return llvm::all_of(nest_.memories, [&](const DpuMemory &memory) {
      if (!isUsed(memory, outer) && !isUsed(memory, inner))
        return true;
      std::optional<size_t> a = ownDimension(memory, outer), b = ownDimension(memory, inner);
      return a && b && memory.dimensions[*b].size == nest_.loops[inner].extent &&
             memory.dimensions[*a].stride == memory.dimensions[*b].stride * nest_.loops[inner].extent;
    });
  }

  void merge(size_t outer) {
    size_t inner = outer + 1;
    for (DpuMemory &memory : nest_.memories) {
      if (isUsed(memory, inner)) {
        size_t a = *ownDimension(memory, outer), b = *ownDimension(memory, inner);
        memory.dimensions[b].size *= memory.dimensions[a].size;
        memory.dimensions.erase(memory.dimensions.begin() + static_cast<int64_t>(a));
      }
      for (DpuDimension &dimension : memory.dimensions)
        dimension.steps.erase(dimension.steps.begin() + static_cast<int64_t>(outer));
    }
    nest_.loops[inner].extent *= nest_.loops[outer].extent;
    nest_.loops.erase(nest_.loops.begin() + static_cast<int64_t>(outer));
    for (int &loop : nest_.loopOf)
      if (loop > static_cast<int>(outer))
        --loop;
  }

  func::FuncOp kernel_;
  std::string &reason_;
  DpuNest nest_;
};

/// The one dimension that a loop moves in, by steps of one and alone; -1 when there is none.
int dimensionAlong(const DpuMemory &memory, size_t loop) {
  int found = -1;
  for (size_t i = 0; i < memory.dimensions.size(); ++i) {
    if (memory.dimensions[i].steps[loop] == 0)
      continue;
    if (found >= 0 || memory.dimensions[i].steps[loop] != 1)
      return -1;
    found = static_cast<int>(i);
  }
  return found;
}

/// Chooses the loop whose blocks tasklets take: the one along which outputs are contiguous.
bool chooseLoops(DpuNest &nest, std::string &reason) {
  double best = -1;
  for (size_t loop = 0; loop < nest.loops.size(); ++loop) {
    double score = 0;
    for (size_t i = 0; i < nest.numInputs + nest.numOutputs; ++i) {
      const DpuMemory &memory = nest.memories[i];
      int dimension = dimensionAlong(memory, loop);
      bool isContiguous = dimension >= 0 && memory.dimensions[dimension].stride == 1;
      if (memory.isWritten && nest.loops[loop].isParallel && dimension < 0)
        score = -1e9;
      score += isContiguous ? (memory.isWritten ? 10 : 1) : 0;
    }
    if (nest.loops[loop].isParallel) {
      if (score >= 0 && score >= best)
        best = score, nest.vectorLoop = loop;
    }
  }
  bool hasParallel = llvm::any_of(nest.loops, [](const DpuLoop &loop) { return loop.isParallel; });
  if (hasParallel && !nest.vectorLoop) {
    reason = "no parallel loop moves along all results";
    return false;
  }
  for (size_t loop = 0; loop < nest.loops.size(); ++loop)
    if (!nest.loops[loop].isParallel &&
        (!nest.innerLoop || nest.loops[loop].extent > nest.loops[*nest.innerLoop].extent))
      nest.innerLoop = loop;
  return true;
}

/// Orders dimensions for MRAM: the one that is read along comes last, the others as they lie in host memory.
void orderDimensions(DpuNest &nest) {
  for (size_t i = 0; i < nest.numInputs + nest.numOutputs; ++i) {
    DpuMemory &memory = nest.memories[i];
    std::stable_sort(memory.dimensions.begin(), memory.dimensions.end(),
                     [](const DpuDimension &a, const DpuDimension &b) { return a.stride > b.stride; });
    int along = nest.innerLoop && !memory.isWritten ? dimensionAlong(memory, *nest.innerLoop) : -1;
    if (along < 0 && nest.vectorLoop)
      along = dimensionAlong(memory, *nest.vectorLoop);
    if (along < 0)
      continue;
    auto last = memory.dimensions.begin() + along;
    std::rotate(last, last + 1, memory.dimensions.end());
  }
}

/// Iterations that the DPU with the most work makes of one loop.
int64_t countOn(const DpuNest &nest, const DpuKernel &layout, size_t loop) {
  int split = nest.loops[loop].split;
  return split >= 0 ? layout.splits[split].chunk : nest.loops[loop].extent;
}

/// Elements in MRAM that a loop moves on by.
void placeInMram(DpuNest &nest, DpuKernel &layout) {
  uint64_t next = 0;
  layout.operands.clear();
  for (DpuMemory &memory : nest.memories) {
    DpuKernel::Operand operand;
    operand.name = memory.name;
    operand.type = memoryTypeOf(memory.element);
    operand.argument = cast<BlockArgument>(memory.memory).getArgNumber();
    operand.elementBytes = static_cast<uint32_t>(bytesOf(memory.element));
    operand.isRead = memory.isRead;
    operand.isWritten = memory.isWritten;
    memory.packedSteps.assign(nest.loops.size(), 0);
    int64_t stride = 1;
    for (size_t i = memory.dimensions.size(); i-- > 0;) {
      const DpuDimension &dimension = memory.dimensions[i];
      DpuKernel::Dimension packed{dimension.size, dimension.stride, dimension.offset, 1, stride, {}};
      packed.steps.assign(layout.splits.size(), 0);
      if (memory.fetch == DpuFetch::Table)
        packed.length = dimension.size;
      for (size_t loop = 0; loop < nest.loops.size(); ++loop) {
        packed.length += dimension.steps[loop] * (countOn(nest, layout, loop) - 1);
        memory.packedSteps[loop] += dimension.steps[loop] * stride;
        if (int split = nest.loops[loop].split; split >= 0)
          packed.steps[split] = dimension.steps[loop];
      }
      stride *= packed.length;
      // Rows of results begin on DMA's borders, so that each block belongs to one tasklet.
      if (memory.isWritten && i + 1 == memory.dimensions.size())
        stride = roundUp(stride, std::max<int64_t>(1, dmaGrain / operand.elementBytes));
      operand.dimensions.insert(operand.dimensions.begin(), packed);
    }
    operand.bytes = static_cast<uint64_t>(roundUp(stride * operand.elementBytes, dmaGrain));
    operand.mramOffset = next;
    next += operand.bytes;
    layout.operands.push_back(std::move(operand));
  }
  layout.mramBytes = next;
}

/// Whether a result is a sum, whose order is free, of numbers that memory holds as they are computed.
template <typename Add> bool isSum(linalg::GenericOp op, size_t output) {
  BlockArgument old = op.getMatchingBlockArgument(op.getDpsInitOperand(static_cast<int64_t>(output)));
  auto sum = op.getBody()->getTerminator()->getOperand(static_cast<unsigned>(output)).getDefiningOp<Add>();
  bool isPlain = computeTypeOf(old.getType()) == memoryTypeOf(old.getType()) && !old.getType().isInteger(1);
  return sum && isPlain && old.hasOneUse() && (sum.getLhs() == old) != (sum.getRhs() == old);
}

/// Lets tasklets share sums where there are fewer pieces of work than half of the tasklets.
void sharePieces(DpuNest &nest, int64_t items) {
  constexpr int64_t leastPiece = 8; // Iterations that are worth a meeting of the tasklets.
  if (!nest.innerLoop || 2 * items > dpuTasklets)
    return;
  for (size_t output = 0; output < nest.numOutputs; ++output)
    if (!isSum<arith::AddFOp>(nest.op, output) && !isSum<arith::AddIOp>(nest.op, output))
      return;
  int64_t depth = nest.loops[*nest.innerLoop].extent;
  nest.pieces = std::max<int64_t>(1, std::min(dpuTasklets / items, depth / leastPiece));
  // Blocks of one length for all.
  int64_t rounds = (depth + nest.pieces * nest.innerBlock - 1) / (nest.pieces * nest.innerBlock);
  nest.innerBlock = (depth + nest.pieces * rounds - 1) / (nest.pieces * rounds);
}

/// Chooses how many iterations a block has, so that blocks of all operands fit WRAM and all tasklets have work.
void chooseBlocks(DpuNest &nest, const DpuKernel &layout) {
  int64_t perTasklet = blockBudget / dpuTasklets / static_cast<int64_t>(nest.memories.size());
  nest.blockBytes = std::clamp<int64_t>(perTasklet / dmaGrain * dmaGrain, 4 * dmaGrain, mostDmaBytes / 2);
  auto lengthAlong = [&](size_t loop) {
    int64_t length = INT64_MAX;
    for (DpuMemory &memory : nest.memories) {
      int64_t step = memory.packedSteps[loop];
      if (memory.fetch == DpuFetch::Table || step == 0)
        continue;
      // A fetch takes up to one grain more on either side.
      int64_t fits = (nest.blockBytes - 2 * dmaGrain) / bytesOf(memory.element) / step;
      if (memory.isWritten || fits >= dmaGrain)
        length = std::min(length, fits);
    }
    return length;
  };
  auto countOf = [&](size_t loop) { return countOn(nest, layout, loop); };
  if (nest.innerLoop)
    nest.innerBlock = std::min(countOf(*nest.innerLoop), lengthAlong(*nest.innerLoop));
  if (!nest.vectorLoop)
    return sharePieces(nest, 1);
  int64_t rows = 1, count = countOf(*nest.vectorLoop);
  for (size_t loop = 0; loop < nest.loops.size(); ++loop)
    if (nest.loops[loop].isParallel && loop != *nest.vectorLoop)
      rows *= countOf(loop);
  int64_t blocksWanted = (dpuTasklets + rows - 1) / rows;
  int64_t length = std::min(lengthAlong(*nest.vectorLoop), (count + blocksWanted - 1) / blocksWanted);
  // Blocks begin on DMA's borders in every result, whatever its elements: eight bytes hold at most eight of them.
  int64_t multiple = 1;
  for (const DpuMemory &memory : nest.memories)
    if (memory.isWritten)
      multiple = std::max(multiple, dmaGrain / bytesOf(memory.element));
  nest.blockLength =
      std::max(multiple, roundUp(length, multiple) > lengthAlong(*nest.vectorLoop) ? length / multiple * multiple
                                                                                   : roundUp(length, multiple));
  sharePieces(nest, rows * ((count + nest.blockLength - 1) / nest.blockLength));
}

/// Decides how elements come to WRAM, now that steps and blocks are known.
void chooseFetches(DpuNest &nest) {
  for (DpuMemory &memory : nest.memories) {
    if (memory.isWritten || memory.fetch == DpuFetch::Table)
      continue;
    bool isReduced = false;
    for (size_t loop = 0; loop < nest.loops.size(); ++loop)
      isReduced |= !nest.loops[loop].isParallel && memory.packedSteps[loop] != 0;
    std::optional<size_t> along = isReduced ? nest.innerLoop : nest.vectorLoop;
    int64_t length = isReduced ? nest.innerBlock : nest.blockLength;
    bool fits =
        along && memory.packedSteps[*along] > 0 &&
        ((length - 1) * memory.packedSteps[*along] + 1) * bytesOf(memory.element) + 2 * dmaGrain <= nest.blockBytes;
    memory.fetch = fits ? DpuFetch::Block : DpuFetch::Single;
  }
}

/// Short blocks do not pay for the additions of their sums.
void chooseSums(DpuNest &nest) {
  constexpr int64_t leastBlock = 16;
  int64_t reductions = 1;
  for (const DpuLoop &loop : nest.loops)
    reductions *= loop.isParallel ? 1 : loop.extent;
  bool isLong = nest.innerLoop && nest.innerBlock >= leastBlock && reductions > nest.innerBlock;
  for (size_t output = 0; output < nest.numOutputs; ++output)
    nest.sumsByBlock.push_back(isLong && isSum<arith::AddFOp>(nest.op, output));
}

/// Pieces of work, and what they cost at published rates.
void countWork(const DpuNest &nest, const dpu::DpuConfig &config, DpuKernel &layout) {
  layout.tasklets = dpuTasklets;
  if (nest.innerLoop) {
    layout.depth = nest.loops[*nest.innerLoop].extent;
    layout.depthBlock = nest.innerBlock * nest.pieces;
  }
  layout.items = 1;
  double points = 1, reductions = 1, innerBlocks = 1;
  for (size_t loop = 0; loop < nest.loops.size(); ++loop) {
    int64_t count = countOn(nest, layout, loop);
    bool isParallel = nest.loops[loop].isParallel;
    (isParallel ? points : reductions) *= static_cast<double>(count);
    if (isParallel)
      layout.items *= loop == nest.vectorLoop ? (count + nest.blockLength - 1) / nest.blockLength : count;
    if (loop == nest.innerLoop)
      innerBlocks = static_cast<double>((count + nest.innerBlock - 1) / nest.innerBlock) / static_cast<double>(count);
  }
  layout.items *= nest.pieces;
  double iterations = points * reductions;
  auto items = static_cast<double>(layout.items);
  for (const DpuMemory &memory : nest.memories) {
    auto width = static_cast<double>(bytesOf(memory.element));
    bool isReduced = false;
    for (size_t loop = 0; loop < nest.loops.size(); ++loop)
      isReduced |= !nest.loops[loop].isParallel && memory.packedSteps[loop] != 0;
    double elements = isReduced || memory.fetch == DpuFetch::Table ? iterations : points;
    bool isBlock = memory.isWritten || memory.fetch == DpuFetch::Block;
    // A single element is fetched as soon as its loops are known.
    if (!memory.isWritten && memory.fetch == DpuFetch::Single) {
      if (isReduced && !nest.usesLoop(memory, *nest.innerLoop))
        elements /= static_cast<double>(countOn(nest, layout, *nest.innerLoop));
      else if (!isReduced && !(nest.vectorLoop && nest.usesLoop(memory, *nest.vectorLoop)))
        elements = items;
    }
    layout.dmaTransfers += !isBlock ? elements : isReduced ? iterations * innerBlocks : items;
    layout.dmaBytes += elements * (isBlock ? width : static_cast<double>(dmaGrain));
  }
  double parallelLoops = static_cast<double>(llvm::count_if(nest.loops, [](const DpuLoop &l) { return l.isParallel; }));
  double longest =
      static_cast<double>(nest.vectorLoop ? std::min(nest.blockLength, countOn(nest, layout, *nest.vectorLoop)) : 1);
  layout.slotsPerItem = longest * reductions / static_cast<double>(nest.pieces) * bodySlots(nest.op, config) +
                        layout.dmaTransfers / items * fetchSlots + itemSlots + 2 * parallelLoops * config.divide32Slots;
}

} // namespace

std::optional<DpuNest> shareOut(func::FuncOp kernel, const dpu::DpuConfig &config, DpuKernel &layout,
                                std::string &reason) {
  std::optional<DpuNest> nest = Reader(kernel, reason).read();
  if (!nest || !chooseLoops(*nest, reason))
    return std::nullopt;
  orderDimensions(*nest);
  auto place = [&](DpuNest &target) { placeInMram(target, layout); };
  if (!chooseSplits(*nest, layout, config, place, reason))
    return std::nullopt;
  chooseBlocks(*nest, layout);
  chooseFetches(*nest);
  chooseSums(*nest);
  countWork(*nest, config, layout);
  return nest;
}

} // namespace nearbank::codegen
