// SPDX-License-Identifier: Apache-2.0
// Launches kernels: builds the guest's address space, runs the cores ahead on host threads, weaves their events.
#include "sim/system/NmcMachine.h"

#include "runtime/Error.h"
#include "sim/core/Interpreter.h"
#include "sim/system/KernelLaunch.h"
#include "sim/system/ThreadTeam.h"
#include "sim/system/TrapReport.h"
#include "sim/system/Weave.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <thread>

#include <sys/mman.h>

namespace nearbank::sim {
namespace {

/// Events a core may run ahead.
constexpr size_t chunkEvents = 512;

/// Zeroed memory straight from the system: what nobody touches costs nothing, whatever the allocator would do.
class ZeroedMemory {
public:
  explicit ZeroedMemory(uint64_t bytes) : bytes_(bytes) {
    void *mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      throw std::bad_alloc();
    data_ = static_cast<char *>(mapped);
  }
  ZeroedMemory(const ZeroedMemory &) = delete;
  ZeroedMemory &operator=(const ZeroedMemory &) = delete;
  ~ZeroedMemory() { ::munmap(data_, bytes_); }
  char *get() const { return data_; }

private:
  char *data_ = nullptr;
  uint64_t bytes_;
};

} // namespace

struct NmcMachine::Impl {
  Impl(const MachineConfig &machine, int simulatingThreads);
  NmcLaunchStats launch(const NmcLaunch &launch);

  /// Runs every active core that has fewer than half a chunk of events; cores are bound to threads.
  void runAhead(Weave *weave);
  void checkTraps(const GuestMemory &memory) const;
  /// Zeroes what the latest launch touched of the stacks; they are then zero throughout.
  void clearStacks();

  MachineConfig config;
  LatencyTable latency;
  std::vector<std::unique_ptr<Core>> cores;
  std::vector<size_t> activeIds; ///< Core numbers of the current launch.
  std::vector<Core *> active;
  std::optional<Weave> weave;
  std::unique_ptr<ThreadTeam> team;
  KernelCache kernels;
  KernelFrame frame;
  std::unique_ptr<ZeroedMemory> stacks; ///< Of all cores; zero at each launch.
};

NmcMachine::Impl::Impl(const MachineConfig &machine, int simulatingThreads)
    : config(machine), latency(machine.core, machine.l1d), frame(machine) {
  if (config.core.count <= 0 || !(config.core.clockGHz > 0) || config.core.stackKiB <= 0)
    throw UserError({.code = "NB0112",
                     .title = "machine has no usable cores",
                     .where = config.file.empty() ? config.name : config.file,
                     .expected = "positive core count, clock and stack",
                     .actual = fmt::format("{} cores, {} GHz, {} KiB", config.core.count, config.core.clockGHz,
                                           config.core.stackKiB),
                     .fix = "mend the machine file"});
  DramTiming checkDram(config.dram, config.l1d.lineBytes);
  weave.emplace(config);
  CoreParameters parameters{config.l1i,
                            config.l1d,
                            config.l2,
                            config.dram,
                            config.core.vectorBits,
                            config.core.vectorLanesBits,
                            config.core.vectorElementsPerCycle};
  for (int64_t i = 0; i < config.core.count; ++i)
    cores.push_back(std::make_unique<Core>(parameters));
  size_t threads = simulatingThreads > 0 ? static_cast<size_t>(simulatingThreads)
                                         : std::max(1u, std::thread::hardware_concurrency());
  team = std::make_unique<ThreadTeam>(std::min(threads, cores.size()));
  stacks = std::make_unique<ZeroedMemory>(cores.size() * frame.stackBytes());
}

void NmcMachine::Impl::runAhead(Weave *weave) {
  auto share = [&](size_t thread) {
    GuestFloatEnvironment environment;
    for (size_t i = thread; i < active.size(); i += team->size()) {
      if (active[i]->state != CoreState::Ready)
        continue;
      if (weave != nullptr) {
        if (weave->pending(i) > chunkEvents / 2)
          continue;
        weave->compact(i);
      }
      active[i]->run(chunkEvents);
    }
  };
  // Each thread has its own translation, so every share runs even where one thread does all.
  if (active.size() > 1)
    return team->run(share);
  share(0);
}

void NmcMachine::Impl::checkTraps(const GuestMemory &memory) const {
  for (size_t i = 0; i < active.size(); ++i)
    if (active[i]->state == CoreState::Trapped)
      throwTrap(active[i]->lastTrap(), activeIds[i], memory);
}

void NmcMachine::Impl::clearStacks() {
  for (size_t i = 0; i < active.size(); ++i) {
    const std::vector<char *> &lines = active[i]->scratchLines();
    if (lines.size() < Core::maxScratchLines)
      for (char *line : lines)
        std::memset(line, 0, static_cast<size_t>(config.l1d.lineBytes));
    else
      std::memset(stacks->get() + activeIds[i] * frame.stackBytes(), 0, frame.stackBytes());
  }
}

NmcLaunchStats NmcMachine::Impl::launch(const NmcLaunch &launch) {
  NmcLaunchStats stats;
  if (launch.tasks <= 0)
    return stats;

  LoadedKernel &kernel =
      kernels.load(launch.elf, frame.lineBytes(), team->size(), [&](const std::vector<TextSegment> &text) {
        return std::make_unique<Translation>(text, latency, interpreterHandlers());
      });
  GuestMemory memory;
  frame.layOut(memory, kernel.image, launch);
  clearStacks();

  auto numCores = static_cast<uint64_t>(cores.size());
  active.clear(), activeIds.clear();
  std::vector<int64_t> blockTasks; // of the active cores
  auto waitOf = [&](uint64_t core) { return launch.spreadCycles * (core + 1) / numCores; };
  for (uint64_t c = 0; c < numCores; c += static_cast<uint64_t>(std::max<int64_t>(1, launch.coreStride))) {
    TaskRange block = blockOfCore(launch, c, numCores), first = cutBlock(launch, block);
    std::vector<Core::Call> calls;
    for (const TaskRange &range : launch.calls) {
      uint64_t wait = calls.size() == launch.spreadCall ? waitOf(c) : 0;
      calls.push_back({static_cast<uint64_t>(std::min(block.end, block.begin + range.begin)),
                       static_cast<uint64_t>(std::min(block.end, block.begin + range.end)), wait});
    }
    if (!calls.empty()) {
      first = {static_cast<int64_t>(calls.front().begin), static_cast<int64_t>(calls.front().end)};
      calls.erase(calls.begin());
    }
    if (first.begin == first.end)
      continue;
    frame.addStack(memory, c, stacks->get() + c * frame.stackBytes(), /*isScratch=*/true);
    Core &core = *cores[c];
    core.start(*kernel.translations[active.size() % team->size()], memory, kernel.image.entry, KernelFrame::haltPc);
    frame.enter(core, c, first, launch);
    core.callAgain(std::move(calls));
    core.markProgress(launch.pointCycles, launch.ownCyclesLimit);
    blockTasks.push_back(block.end - block.begin);
    active.push_back(&core);
    activeIds.push_back(c);
  }

  if (active.empty())
    return stats;
  runAhead(nullptr);
  checkTraps(memory);
  weave->begin(active, activeIds);
  while (weave->advance()) {
    runAhead(&*weave);
    checkTraps(memory);
    weave->refill();
  }

  weave->report(stats);
  stats.coresUsed = static_cast<int64_t>(active.size());
  for (const auto &translation : kernel.translations)
    translation->collectCounts(stats);
  for (size_t i = 0; i < active.size(); ++i) {
    stats.l1dAccesses += active[i]->splitAccesses;
    stats.vectorLanes += active[i]->vectorLanes;
    stats.l1dMisses += active[i]->l1dMisses;
    stats.l1iMisses += active[i]->l1iMisses;
    if (config.l2) {
      stats.l2Accesses += active[i]->l1dMisses + active[i]->l1iMisses;
      stats.l2Misses += active[i]->l2Misses;
    }
    stats.writebacks += active[i]->writebacks;
    if (!launch.calls.empty() || launch.pointCycles > 0)
      stats.progress.push_back({blockTasks[i], waitOf(activeIds[i]), weave->marks(i)});
  }
  stats.status = frame.firstStatus(activeIds);
  return stats;
}

NmcMachine::NmcMachine(const MachineConfig &config, int simulatingThreads)
    : impl_(std::make_unique<Impl>(config, simulatingThreads)) {}
NmcMachine::~NmcMachine() = default;
NmcLaunchStats NmcMachine::launch(const NmcLaunch &launch) { return impl_->launch(launch); }
int64_t NmcMachine::numCores() const { return impl_->config.core.count; }
int64_t NmcMachine::l1dLines() const { return impl_->config.l1d.sizeBytes / impl_->config.l1d.lineBytes; }

} // namespace nearbank::sim
