// SPDX-License-Identifier: Apache-2.0
// Replays memory events in global time order.
#include "sim/system/Weave.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace nearbank::sim {

Weave::Weave(const MachineConfig &config)
    : timing_(config.dram, config.l1d.lineBytes),
      periodFs_(static_cast<uint64_t>(std::llround(1e6 / config.core.clockGHz))),
      lineBytes_(static_cast<uint64_t>(config.l1d.lineBytes)) {
  auto numVaults = static_cast<size_t>(config.dram.vaults);
  vaults_.assign(numVaults, Vault(timing_));
  int64_t width = std::max<int64_t>(1, config.network.meshWidth);
  auto perHop = static_cast<int64_t>(std::llround(config.network.hopNs * 1000));
  auto numCores = static_cast<size_t>(config.core.count);
  for (size_t core = 0; core < numCores; ++core) {
    auto home = static_cast<int64_t>(core * numVaults / numCores);
    for (int64_t vault = 0; vault < config.dram.vaults; ++vault)
      hopPs_.push_back(perHop * (std::abs(home % width - vault % width) + std::abs(home / width - vault / width)));
  }
}

void Weave::begin(const std::vector<Core *> &cores, const std::vector<size_t> &coreIds) {
  for (Vault &vault : vaults_)
    vault.reset();
  writes_ = {};
  lastWritePs_ = 0;
  numStarved_ = 0;
  numLeaves_ = std::bit_ceil(cores.size());
  keyShift_ = static_cast<unsigned>(std::countr_zero(numLeaves_)) + 1;
  tree_.assign(2 * numLeaves_, never);
  lanes_.assign(cores.size(), Lane{});
  for (size_t i = 0; i < cores.size(); ++i) {
    lanes_[i].core = cores[i];
    lanes_[i].hopPs = &hopPs_[coreIds[i] * vaults_.size()];
  }
  for (size_t i = 0; i < cores.size(); ++i)
    schedule(i);
}

void Weave::setReadKey(uint64_t lane, uint64_t key) {
  size_t node = numLeaves_ + lane;
  tree_[node] = key;
  for (; node > 1; node /= 2)
    tree_[node / 2] = std::min(tree_[node], tree_[node ^ 1]);
}

void Weave::schedule(uint64_t index) {
  Lane &lane = lanes_[index];
  const std::vector<MemoryEvent> &events = lane.core->events();
  while (lane.position < events.size()) {
    const MemoryEvent &event = events[lane.position++];
    uint64_t cycle = lane.resumedAt + event.gapCycles;
    switch (event.kind) {
    case EventKind::Read:
      lane.readIssued = cycle;
      lane.read = event;
      __builtin_prefetch(&event + 4);
      setReadKey(index, keyOf(toPs(cycle) + hopPs(index, event.vault), index, false));
      return;
    case EventKind::Write:
      writes_.push({keyOf(toPs(cycle) + hopPs(index, event.vault), index, true), event});
      break;
    case EventKind::Mark:
      lane.marks.push_back({cycle, lane.stallCycles});
      break;
    case EventKind::Wait:
      lane.resumedAt = cycle;
      break;
    case EventKind::End:
      lane.endCycle = cycle;
      lane.hasEnded = true;
      setReadKey(index, never);
      return;
    }
  }
  lane.isStarved = true;
  ++numStarved_;
}

void Weave::completeRead(uint64_t index, int64_t arrivalPs) {
  Lane &lane = lanes_[index];
  const MemoryEvent &read = lane.read;
  int64_t donePs = vaults_[read.vault].serve(arrivalPs, read.bank, read.row, false);
  lane.resumedAt = std::max(toCyclesUp(donePs + hopPs(index, read.vault)), lane.readIssued + read.drainCycles);
  lane.stallCycles += lane.resumedAt - lane.readIssued;
  schedule(index);
}

bool Weave::advance() {
  while (numStarved_ == 0) {
    uint64_t readKey = tree_[1], writeKey = writes_.empty() ? never : writes_.top().key;
    if (readKey < writeKey) {
      completeRead((readKey >> 1) & (numLeaves_ - 1), static_cast<int64_t>(readKey >> keyShift_));
    } else if (writeKey != never) {
      const MemoryEvent &write = writes_.top().event;
      auto arrivalPs = static_cast<int64_t>(writeKey >> keyShift_);
      lastWritePs_ = std::max(lastWritePs_, vaults_[write.vault].serve(arrivalPs, write.bank, write.row, true));
      writes_.pop();
    } else {
      return false; // every core has ended
    }
  }
  return true;
}

void Weave::compact(size_t core) {
  Lane &lane = lanes_[core];
  std::vector<MemoryEvent> &events = lane.core->events();
  events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(lane.position));
  lane.position = 0;
}

void Weave::refill() {
  numStarved_ = 0;
  for (size_t i = 0; i < lanes_.size(); ++i)
    if (std::exchange(lanes_[i].isStarved, false))
      schedule(i);
}

void Weave::report(NmcLaunchStats &stats) const {
  stats.coreCycles = toCyclesUp(lastWritePs_);
  for (const Lane &lane : lanes_) {
    stats.coreCycles = std::max(stats.coreCycles, lane.endCycle);
    stats.memoryStallCycles += lane.stallCycles;
  }
  stats.timeNs = static_cast<double>(stats.coreCycles) * static_cast<double>(periodFs_) / 1e6;
  int64_t busyPs = 0;
  for (const Vault &vault : vaults_) {
    const VaultStats &s = vault.stats();
    stats.dramReads += s.reads, stats.dramWrites += s.writes;
    stats.rowHits += s.rowHits, stats.rowMisses += s.rowMisses, stats.rowConflicts += s.rowConflicts;
    busyPs += s.busBusyPs;
  }
  stats.dramBytes = (stats.dramReads + stats.dramWrites) * lineBytes_;
  if (stats.timeNs > 0)
    stats.vaultBusyShare = static_cast<double>(busyPs) / 1000 / static_cast<double>(vaults_.size()) / stats.timeNs;
}

} // namespace nearbank::sim
