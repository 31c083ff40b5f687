// SPDX-License-Identifier: Apache-2.0
// What an out-of-order core is made of, and its state at the beginning of a launch and of a block.
#include "sim/core/OutOfOrderCore.h"

#include <algorithm>

namespace nearbank::sim {
namespace {

/// Blocks that the functional core runs ahead.
constexpr size_t traceBlocks = 1024;

} // namespace

OutOfOrderCore::OutOfOrderCore(const MachineConfig &c, int64_t id, HostMemory &memory)
    : config_(c.outOfOrder), id_(id), l1Cycles_(c.l1d.hitCycles), l2Cycles_(c.l2->hitCycles),
      periodPs_(1000 / c.core.clockGHz), cyclesPerPs_(c.core.clockGHz / 1000),
      vectorBytes_(std::max<int64_t>(1, c.core.vectorBits / 8)),
      laneBytes_(std::max<int64_t>(1, std::min(c.core.vectorLanesBits, c.core.vectorBits) / 8)),
      elementsPerCycle_(std::max<int64_t>(1, c.core.vectorElementsPerCycle)), memory_(memory), l1i_(c.l1i, "l1i"),
      l1d_(c.l1d, "l1d"), l2_(*c.l2, "l2"), intPorts_(config_.intPorts), mulPorts_(config_.intMulPorts),
      branchPorts_(config_.branchPorts), fpPorts_(config_.fpPorts), fpAddPorts_(config_.fpAddPorts),
      fpMulPorts_(config_.fpMulPorts), memoryPorts_(config_.memoryPorts), loadPorts_(config_.loadPorts),
      storePorts_(config_.storePorts), vectorLoadPorts_(config_.vectorLoadPorts),
      vectorStorePorts_(config_.vectorStorePorts),
      firstPathCycles_((c.l1d.lineBytes + c.l2BytesPerCycle - 1) / c.l2BytesPerCycle),
      secondPathCycles_((c.l1d.lineBytes + c.l3BytesPerCycle - 1) / c.l3BytesPerCycle) {
  if (c.prefetch)
    prefetcher_.emplace(*c.prefetch, c.l1d.lineBytes);
  retireOf_.resize(static_cast<size_t>(config_.robEntries));
  loadFree_.resize(static_cast<size_t>(config_.loadQueueEntries));
  storeFree_.resize(static_cast<size_t>(config_.storeQueueEntries));
  missFree_.resize(static_cast<size_t>(config_.outstandingMisses));
}

void OutOfOrderCore::start(TracingCore &functional, PlanTable &plans, uint64_t textBytes, int64_t startCycle) {
  functional_ = &functional;
  plans_ = &plans;
  l1i_.reset(), l1d_.reset(), l2_.reset();
  if (prefetcher_)
    prefetcher_->reset();
  predictor_.reset();
  forEachPort([](PortTimeline &port) { port.reset(); });
  textFits_ = textBytes + 2 * l1i_.lineBytes() <= l1i_.capacityBytes();
  isTextWarm_ = false;
  fetched_.clear();
  stats_ = {};
  phase_ = Phase::NextBlock;
  nextBlock_ = access_ = accessEnd_ = 0;
  hasTurn_ = false;
  ready_.fill(0);
  for (auto *ring : {&retireOf_, &loadFree_, &storeFree_, &missFree_})
    std::fill(ring->begin(), ring->end(), 0);
  rob_ = loadEntry_ = storeEntry_ = 0;
  dispatch_ = frontend_ = retire_ = commit_ = startCycle;
  lastTaken_ = -1;
  dispatched_ = retired_ = committed_ = 0;
  intDividerFree_ = fpDividerFree_ = 0;
  forwards_.fill({});
  forward_ = nullptr;
  setShape(0, 0);
}

bool OutOfOrderCore::nextBlock() {
  if (nextBlock_ >= functional_->blocks().size()) {
    functional_->run(traceBlocks);
    nextBlock_ = 0;
    if (functional_->blocks().empty() || functional_->state == CoreState::Trapped)
      return false;
  }
  const std::vector<TracedBlock> &blocks = functional_->blocks();
  const TracedBlock &traced = blocks[nextBlock_++];
  bool isLast = nextBlock_ == blocks.size();
  access_ = traced.firstAccess;
  accessEnd_ = isLast ? functional_->accesses().size() : blocks[nextBlock_].firstAccess;
  nextPc_ = isLast ? functional_->nextPc() : blocks[nextBlock_].block->pc;
  block_ = traced.block;
  plan_ = &plans_->planOf(*block_);
  index_ = 0;
  resumeAddress_ = 0;
  if (traced.vectorType != shape_.type || traced.vectorLength != shape_.elements)
    setShape(traced.vectorLength, traced.vectorType);
  return true;
}

void OutOfOrderCore::warm(uint64_t address) {
  TimedCache::Line victim;
  for (TimedCache *cache : {&l2_, &l1d_})
    if (cache->touch(address) == nullptr)
      cache->insert(address, victim);
}

} // namespace nearbank::sim
