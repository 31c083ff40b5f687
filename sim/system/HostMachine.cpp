// SPDX-License-Identifier: Apache-2.0
// Launches on a modelled host: builds the guest's address space, and lets the cores go on in order of time.
#include "sim/system/HostMachine.h"

#include "runtime/Error.h"
#include "sim/core/Interpreter.h"
#include "sim/core/OutOfOrderCore.h"
#include "sim/system/KernelLaunch.h"
#include "sim/system/TrapReport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nearbank::sim {
namespace {

MachineConfig checked(const MachineConfig &config) {
  const OutOfOrderConfig &w = config.outOfOrder;
  bool hasCores = config.core.count > 0 && config.core.clockGHz > 0 && config.core.stackKiB > 0 && config.l2;
  bool hasWindow = std::min({w.dispatchWidth, w.retireWidth, w.robEntries, w.loadQueueEntries, w.storeQueueEntries,
                             w.outstandingMisses, w.intPorts, w.intMulPorts, w.branchPorts, w.fpPorts, w.fpAddPorts,
                             w.fpMulPorts, w.memoryPorts, w.loadPorts, w.storePorts}) > 0;
  if (!hasCores || !hasWindow)
    throw UserError({.code = "NB0112",
                     .title = "machine has no usable cores",
                     .where = config.file.empty() ? config.name : config.file,
                     .expected = "a host: positive core count, clock and stack, a second-level cache, and at least one "
                                 "port and entry of every kind",
                     .actual = fmt::format("kind {}, {} cores, {} GHz, {} KiB of stack, window of {}", config.kind,
                                           config.core.count, config.core.clockGHz, config.core.stackKiB, w.robEntries),
                     .fix = "name a machine of kind host, or mend the machine file"});
  return config;
}

} // namespace

struct HostMachine::Impl {
  Impl(const MachineConfig &machine, Start start);
  NmcLaunchStats launch(const NmcLaunch &launch);
  void warm(const NmcLaunch &launch, const std::vector<size_t> &coreIds);
  /// Runs all active cores to their ends, always the one whose next access comes first.
  void simulate(const GuestMemory &memory);
  NmcLaunchStats report(LoadedKernel &kernel) const;

  MachineConfig config;
  Start start;
  LatencyTable latency; ///< For the translation, whose in-order timing is not used.
  HostMemory memory;
  std::vector<std::unique_ptr<TracingCore>> functional; ///< By core.
  std::vector<std::unique_ptr<OutOfOrderCore>> cores;
  std::vector<size_t> activeIds;
  KernelCache kernels;
  KernelFrame frame;
  std::vector<std::vector<char>> stacks;
  uint64_t line;
};

HostMachine::Impl::Impl(const MachineConfig &machine, Start startState)
    : config(checked(machine)), start(startState), latency(config.core, config.l1d), memory(config), frame(config),
      line(frame.lineBytes()) {
  auto numCores = static_cast<size_t>(config.core.count);
  // The functional cores' own caches time nothing.
  CacheConfig least{.sizeBytes = 64, .ways = 1, .lineBytes = 64, .hitCycles = 1};
  CoreParameters parameters{least,
                            least,
                            std::nullopt,
                            config.dram,
                            config.core.vectorBits,
                            config.core.vectorLanesBits,
                            config.core.vectorElementsPerCycle};
  for (size_t i = 0; i < numCores; ++i)
    functional.push_back(std::make_unique<TracingCore>(parameters));
  cores.resize(numCores);
  stacks.resize(numCores);
}

void HostMachine::Impl::warm(const NmcLaunch &launch, const std::vector<size_t> &coreIds) {
  // Each last-level cache has seen the share of every operand that its cores work on; which share that is, only the
  // kernel knows: contiguous blocks, as tasks are split.
  auto sharedBy = static_cast<size_t>(std::max<int64_t>(1, config.l3SharedBy));
  size_t numCaches = std::max<size_t>(1, cores.size() / sharedBy);
  size_t usedCaches = std::min(numCaches, coreIds.back() / sharedBy + 1);
  for (const GuestRegion &region : launch.regions)
    for (uint64_t offset = 0; offset < region.bytes; offset += line)
      memory.warm(static_cast<int64_t>(static_cast<__int128>(offset) * static_cast<__int128>(usedCaches) /
                                       static_cast<__int128>(region.bytes)) *
                      static_cast<int64_t>(sharedBy),
                  region.guestBase + offset);
  // The private levels hold the core's own share, the operand table, and the text.
  for (size_t i = 0; i < coreIds.size(); ++i) {
    OutOfOrderCore &core = *cores[coreIds[i]];
    core.warmText();
    core.warm(frame.tableAddress());
    for (const GuestRegion &region : launch.regions) {
      uint64_t lines = (region.bytes + line - 1) / line, end = lines * (i + 1) / coreIds.size();
      for (uint64_t l = lines * i / coreIds.size(); l < end; ++l)
        core.warm(region.guestBase + l * line);
    }
  }
}

void HostMachine::Impl::simulate(const GuestMemory &guest) {
  GuestFloatEnvironment environment;
  std::vector<int64_t> next(activeIds.size(), 0);
  int64_t forgotten = 0;
  constexpr int64_t forgetPs = 2'000'000; // requests of one core may leave out of order by about this much
  double periodPs = 1000 / config.core.clockGHz;
  for (;;) {
    size_t first = 0;
    int64_t horizon = OutOfOrderCore::ended;
    for (size_t i = 1; i < next.size(); ++i) {
      if (next[i] < next[first]) {
        horizon = next[first];
        first = i;
      } else {
        horizon = std::min(horizon, next[i]);
      }
    }
    if (next[first] == OutOfOrderCore::ended)
      return;
    auto ps = static_cast<int64_t>(static_cast<double>(next[first]) * periodPs);
    if (ps > forgotten + 2 * forgetPs)
      memory.advance(forgotten = ps - forgetPs);
    size_t id = activeIds[first];
    next[first] = cores[id]->run(horizon);
    if (functional[id]->state == CoreState::Trapped)
      throwTrap(functional[id]->lastTrap(), id, guest);
  }
}

NmcLaunchStats HostMachine::Impl::launch(const NmcLaunch &launch) {
  activeIds.clear();
  if (launch.tasks <= 0)
    return {};

  LoadedKernel &kernel = kernels.load(launch.elf, line, 1, [&](const std::vector<TextSegment> &text) {
    return std::make_unique<Translation>(text, latency, tracingHandlers());
  });
  if (!kernel.plans)
    kernel.plans = std::make_unique<PlanTable>(config);
  Translation &translation = *kernel.translations.front();
  GuestMemory guest;
  frame.layOut(guest, kernel.image, launch);

  auto numCores = static_cast<uint64_t>(config.core.count);
  std::vector<TaskRange> blocks;
  for (uint64_t c = 0; c < numCores; ++c) {
    TaskRange block = cutBlock(launch, blockOfCore(launch, c, numCores));
    if (block.begin == block.end)
      continue;
    stacks[c].assign(frame.stackBytes(), 0);
    frame.addStack(guest, c, stacks[c].data());
    activeIds.push_back(c);
    blocks.push_back(block);
  }
  if (activeIds.empty())
    return {};

  memory.reset();
  double dirtyShare = launch.linesBefore > 0 ? launch.dirtyLinesBefore / launch.linesBefore : 0;
  if (launch.linesBefore > 0)
    memory.age(static_cast<int64_t>(launch.linesBefore), dirtyShare, static_cast<int64_t>(activeIds.size()));
  int64_t startCycle =
      activeIds.size() > 1 ? static_cast<int64_t>(std::ceil(config.threads.forkNs * config.core.clockGHz)) : 0; // HM-9
  for (size_t i = 0; i < activeIds.size(); ++i) {
    size_t c = activeIds[i];
    TracingCore &core = *functional[c];
    core.start(translation, guest, kernel.image.entry, KernelFrame::haltPc);
    if (core.state == CoreState::Trapped)
      throwTrap(core.lastTrap(), c, guest);
    frame.enter(core, c, blocks[i], launch);
    if (!cores[c])
      cores[c] = std::make_unique<OutOfOrderCore>(config, static_cast<int64_t>(c), memory);
    cores[c]->start(core, *kernel.plans, translation.textBytes(), startCycle);
    if (launch.linesBefore > 0)
      cores[c]->age(launch.linesBefore, dirtyShare);
  }
  if (start == Start::Warm)
    warm(launch, activeIds);
  simulate(guest);
  return report(kernel);
}

NmcLaunchStats HostMachine::Impl::report(LoadedKernel &kernel) const {
  NmcLaunchStats stats;
  stats.coresUsed = static_cast<int64_t>(activeIds.size());
  kernel.translations.front()->collectCounts(stats);
  int64_t end = 0;
  for (size_t id : activeIds) {
    const OutOfOrderStats &s = cores[id]->stats();
    stats.l1dAccesses += functional[id]->splitAccesses;
    stats.vectorLanes += functional[id]->vectorLanes;
    end = std::max(end, cores[id]->endCycle());
    stats.l1dMisses += s.l1dMisses;
    stats.l1iMisses += s.l1iMisses;
    stats.l2Accesses += s.l2Accesses;
    stats.l2Misses += s.l2Misses;
    stats.writebacks += s.writebacks;
    stats.dirtiedLines += s.dirtied;
    stats.mispredictions += s.mispredictions;
    stats.memoryStallCycles += s.stallCycles;
  }
  double joinNs = activeIds.size() > 1 ? config.threads.joinNs : 0; // HM-9
  stats.coreCycles = static_cast<uint64_t>(end + static_cast<int64_t>(std::ceil(joinNs * config.core.clockGHz)));
  stats.timeNs = static_cast<double>(stats.coreCycles) / config.core.clockGHz;
  HostMemoryStats shared = memory.stats();
  stats.l3Accesses = shared.l3Accesses, stats.l3Misses = shared.l3Misses;
  stats.dramReads = shared.reads, stats.dramWrites = shared.writes;
  stats.dramBytes = (shared.reads + shared.writes) * line;
  stats.rowHits = shared.rowHits, stats.rowMisses = shared.rowMisses, stats.rowConflicts = shared.rowConflicts;
  if (stats.timeNs > 0)
    stats.vaultBusyShare = shared.busBusyPs / 1000 / static_cast<double>(config.dram.vaults) / stats.timeNs;
  stats.status = frame.firstStatus(activeIds);
  return stats;
}

HostMachine::HostMachine(const MachineConfig &config, Start start) : impl_(std::make_unique<Impl>(config, start)) {}
HostMachine::~HostMachine() = default;
NmcLaunchStats HostMachine::launch(const NmcLaunch &launch) { return impl_->launch(launch); }
int64_t HostMachine::numCores() const { return impl_->config.core.count; }
int64_t HostMachine::l1dLines() const { return impl_->config.l1d.sizeBytes / impl_->config.l1d.lineBytes; }

} // namespace nearbank::sim
