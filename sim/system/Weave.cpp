// SPDX-License-Identifier: Apache-2.0
// Replays memory events in global time order.
#include "sim/system/Weave.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace nearbank::sim {

Weave::Weave(const MachineConfig &config, const std::vector<size_t> &coreIds, size_t numCores)
    : timing_(config.dram, config.l1d.lineBytes), map_(config.dram), periodPs_(1000.0 / config.core.clockGHz),
      lineBytes_(static_cast<uint64_t>(config.l1d.lineBytes)) {
  auto numVaults = static_cast<size_t>(config.dram.vaults);
  vaults_.assign(numVaults, Vault(timing_));
  int64_t width = std::max<int64_t>(1, config.network.meshWidth);
  auto perHop = static_cast<int64_t>(std::llround(config.network.hopNs * 1000));
  for (size_t core : coreIds) {
    auto home = static_cast<int64_t>(core * numVaults / numCores);
    for (int64_t vault = 0; vault < config.dram.vaults; ++vault)
      hopPs_.push_back(perHop * (std::abs(home % width - vault % width) + std::abs(home / width - vault / width)));
  }
}

int64_t Weave::toPs(uint64_t coreCycles) const { return static_cast<int64_t>(std::llround(static_cast<double>(coreCycles) * periodPs_)); }

uint64_t Weave::toCyclesUp(int64_t ps) const {
  auto cycles = static_cast<uint64_t>(static_cast<double>(ps) / periodPs_);
  while (cycles > 0 && toPs(cycles - 1) >= ps) --cycles;
  while (toPs(cycles) < ps) ++cycles;
  return cycles;
}

void Weave::begin(const std::vector<Core *> &cores) {
  lanes_.resize(cores.size());
  for (size_t i = 0; i < cores.size(); ++i) lanes_[i].core = cores[i];
  for (size_t i = 0; i < cores.size(); ++i) schedule(static_cast<uint32_t>(i));
}

void Weave::schedule(uint32_t index) {
  Lane &lane = lanes_[index];
  const std::vector<MemoryEvent> &events = lane.core->events();
  while (lane.position < events.size()) {
    const MemoryEvent &event = events[lane.position++];
    uint64_t cycle = lane.resumedAt + event.gapCycles;
    if (event.kind == EventKind::End) {
      lane.endCycle = cycle;
      lane.hasEnded = true;
      ++numEnded_;
      return;
    }
    bool isWrite = event.kind == EventKind::Write;
    DramLocation where = map_.locate(event.address);
    int64_t hop = hopPs(index, where.vault);
    queue_.push({toPs(cycle) + hop, 2 * index + (isWrite ? 1u : 0u), static_cast<int32_t>(where.vault), where.bank, where.row, hop});
    if (isWrite) continue;
    lane.readIssued = cycle;
    lane.drain = event.drainCycles;
    return;
  }
  lane.isStarved = true;
  ++numStarved_;
}

void Weave::complete(const Request &request) {
  bool isWrite = (request.order & 1) != 0;
  int64_t donePs = vaults_[static_cast<size_t>(request.vault)].serve(request.arrivalPs, request.bank, request.row, isWrite);
  if (isWrite) {
    lastWritePs_ = std::max(lastWritePs_, donePs);
    return;
  }
  Lane &lane = lanes_[request.order / 2];
  lane.resumedAt = std::max(toCyclesUp(donePs + request.hopPs), lane.readIssued + lane.drain);
  lane.stallCycles += lane.resumedAt - lane.readIssued;
  schedule(request.order / 2);
}

bool Weave::advance() {
  while (numStarved_ == 0 && !queue_.empty()) {
    Request request = queue_.top();
    queue_.pop();
    complete(request);
  }
  return numStarved_ != 0;
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
    if (std::exchange(lanes_[i].isStarved, false)) schedule(static_cast<uint32_t>(i));
}

void Weave::report(NmcLaunchStats &stats) const {
  stats.coreCycles = toCyclesUp(lastWritePs_);
  for (const Lane &lane : lanes_) {
    stats.coreCycles = std::max(stats.coreCycles, lane.endCycle);
    stats.memoryStallCycles += lane.stallCycles;
  }
  stats.timeNs = static_cast<double>(stats.coreCycles) * periodPs_ / 1000;
  int64_t busyPs = 0;
  for (const Vault &vault : vaults_) {
    const VaultStats &s = vault.stats();
    stats.dramReads += s.reads, stats.dramWrites += s.writes;
    stats.rowHits += s.rowHits, stats.rowMisses += s.rowMisses, stats.rowConflicts += s.rowConflicts;
    busyPs += s.busBusyPs;
  }
  stats.dramBytes = (stats.dramReads + stats.dramWrites) * lineBytes_;
  if (stats.timeNs > 0) stats.vaultBusyShare = static_cast<double>(busyPs) / 1000 / static_cast<double>(vaults_.size()) / stats.timeNs;
}

} // namespace nearbank::sim
