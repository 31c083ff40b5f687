// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/upmem/DpuSplit.h"

#include "sim/dpu/Mram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <algorithm>
#include <fmt/format.h>

using namespace mlir;

namespace nearbank::codegen {
namespace {

constexpr uint64_t mramRoom = DpuKernel::mramRoom;
/// Where a search for enough DPUs ends.
constexpr int64_t mostDpus = int64_t{1} << 20;
/// Loads, increments, compare and branch of one iteration.
constexpr double loopSlots = 6;

struct Choice {
  std::vector<std::pair<size_t, int64_t>> cuts; ///< Loop and chunk.
  double us = 0;
  uint64_t mramBytes = 0;
};

class Search {
public:
  Search(DpuNest &nest, DpuKernel &layout, const dpu::DpuConfig &config, llvm::function_ref<void(DpuNest &)> place)
      : nest_(nest), layout_(layout), config_(config), place_(place), slots_(bodySlots(nest.op, config)) {
    for (size_t loop = 0; loop < nest.loops.size(); ++loop)
      if (nest.loops[loop].isParallel)
        candidates_.push_back(loop);
    // The longest three are enough to occupy the DPUs.
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [&](size_t a, size_t b) { return nest.loops[a].extent > nest.loops[b].extent; });
    candidates_.resize(std::min<size_t>(3, candidates_.size()));
    std::sort(candidates_.begin(), candidates_.end());
  }

  /// The best choice for so many DPUs, whether it fits or not: one that fits is better than any that does not.
  Choice best(int64_t dpus) {
    found_.reset();
    std::vector<std::pair<size_t, int64_t>> cuts;
    visit(0, dpus, cuts);
    return *found_;
  }

  void apply(const Choice &choice) {
    for (DpuLoop &loop : nest_.loops)
      loop.split = -1;
    layout_.splits.clear();
    for (auto [loop, chunk] : choice.cuts) {
      nest_.loops[loop].split = static_cast<int>(layout_.splits.size());
      layout_.splits.push_back({nest_.loops[loop].extent, chunk});
    }
    place_(nest_);
  }

private:
  void visit(size_t depth, int64_t dpus, std::vector<std::pair<size_t, int64_t>> &cuts) {
    if (depth == candidates_.size())
      return consider(cuts);
    size_t loop = candidates_[depth];
    int64_t extent = nest_.loops[loop].extent, lastChunk = -1;
    for (int64_t parts = 1; parts <= std::min(extent, dpus); parts += step(parts, dpus)) {
      int64_t chunk = (extent + parts - 1) / parts;
      if (chunk == lastChunk)
        continue;
      lastChunk = chunk;
      if (chunk < extent)
        cuts.emplace_back(loop, chunk);
      visit(depth + 1, dpus / ((extent + chunk - 1) / chunk), cuts);
      if (chunk < extent)
        cuts.pop_back();
    }
  }

  /// All numbers of parts up to 64, then a sixteenth more at a time, and the last one.
  static int64_t step(int64_t parts, int64_t dpus) {
    if (parts < 64)
      return 1;
    return parts < dpus ? std::min(std::max<int64_t>(1, parts / 16), dpus - parts) : 1;
  }

  void consider(const std::vector<std::pair<size_t, int64_t>> &cuts) {
    Choice choice{cuts, 0, 0};
    apply(choice);
    double iterations = 1;
    for (const DpuLoop &loop : nest_.loops)
      iterations *= static_cast<double>(loop.split >= 0 ? layout_.splits[loop.split].chunk : loop.extent);
    choice.us = iterations * slots_ / config_.clockMHz;
    auto dpus = static_cast<unsigned>(layout_.dpus());
    unsigned inRank = std::min(dpus, config_.dpusPerRank()), ranks = (dpus + inRank - 1) / inRank;
    for (const DpuKernel::Operand &operand : layout_.operands) {
      auto bytes = static_cast<double>(operand.bytes);
      if (operand.isRead)
        choice.us += operand.isBroadcast() ? config_.broadcastUs(bytes, ranks)
                                           : config_.transferUs(config_.toMram, bytes, ranks, inRank);
      if (operand.isWritten)
        choice.us += config_.transferUs(config_.fromMram, bytes, ranks, inRank);
    }
    choice.mramBytes = layout_.mramBytes;
    bool fits = choice.mramBytes <= mramRoom, bestFits = found_ && found_->mramBytes <= mramRoom;
    bool isBetter =
        !found_ || (fits == bestFits ? (fits ? choice.us < found_->us : choice.mramBytes < found_->mramBytes) : fits);
    if (isBetter)
      found_ = choice;
  }

  DpuNest &nest_;
  DpuKernel &layout_;
  const dpu::DpuConfig &config_;
  llvm::function_ref<void(DpuNest &)> place_;
  double slots_;
  std::vector<size_t> candidates_;
  std::optional<Choice> found_;
};

} // namespace

double bodySlots(linalg::GenericOp op, const dpu::DpuConfig &config) {
  double slots = loopSlots;
  for (Operation &inner : op.getBody()->without_terminator()) {
    Type type = inner.getNumResults() == 1 ? inner.getResult(0).getType() : Type();
    bool isDouble = type && type.isF64();
    if (isa<arith::AddFOp>(inner))
      slots += isDouble ? config.doubleAddSlots : config.floatAddSlots;
    else if (isa<arith::SubFOp>(inner))
      slots += isDouble ? config.doubleSubSlots : config.floatSubSlots;
    else if (isa<arith::MulFOp>(inner))
      slots += isDouble ? config.doubleMulSlots : config.floatMulSlots;
    else if (isa<arith::DivFOp, math::SqrtOp>(inner))
      slots += isDouble ? config.doubleDivSlots : config.floatDivSlots;
    else if (isa<math::FmaOp>(inner))
      slots += config.floatMulSlots + config.floatAddSlots;
    else if (isa<arith::MulIOp>(inner)) // Of numbers of eight bits.
      slots += type.getIntOrFloatBitWidth() > 32 ? config.wideMultiplySlots : config.multiplyCallSlots + 8;
    else if (isa<arith::DivSIOp, arith::RemSIOp, arith::DivUIOp, arith::RemUIOp>(inner))
      slots += type.getIntOrFloatBitWidth() > 32 ? config.divide64Slots : config.divide32Slots;
    else if (!isa<arith::ConstantOp>(inner))
      slots += 1;
  }
  return slots;
}

bool chooseSplits(DpuNest &nest, DpuKernel &layout, const dpu::DpuConfig &config,
                  llvm::function_ref<void(DpuNest &)> place, std::string &reason) {
  Search search(nest, layout, config, place);
  Choice choice = search.best(config.numDpus);
  search.apply(choice);
  if (choice.mramBytes <= mramRoom)
    return true;
  for (int64_t dpus = 2 * int64_t{config.numDpus}; dpus <= mostDpus; dpus *= 2)
    if (search.best(dpus).mramBytes <= mramRoom) {
      reason =
          fmt::format("its operands take {:.1f} MB of each DPU's {} MB on {} DPUs; about {} DPUs would hold them",
                      static_cast<double>(choice.mramBytes) / (1 << 20), dpu::Mram::Bytes >> 20, config.numDpus, dpus);
      return false;
    }
  reason = fmt::format("its operands take {:.1f} MB of each DPU's {} MB, and no number of DPUs makes that fit",
                       static_cast<double>(choice.mramBytes) / (1 << 20), dpu::Mram::Bytes >> 20);
  return false;
}

} // namespace nearbank::codegen
