// SPDX-License-Identifier: Apache-2.0
// Launches kernels: builds the guest's address space, runs the cores ahead on host threads, weaves their events.
#include "sim/system/NmcMachine.h"

#include "runtime/Error.h"
#include "sim/core/Interpreter.h"
#include "sim/system/ElfImage.h"
#include "sim/system/ThreadTeam.h"
#include "sim/system/TrapReport.h"
#include "sim/system/Weave.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <new>
#include <optional>
#include <thread>

#include <sys/mman.h>

namespace nearbank::sim {
namespace {

/// The machine's own guest ranges lie above every kernel and region.
constexpr uint64_t tableBase = uint64_t{1} << 40, statusBase = tableBase + (uint64_t{1} << 36),
                   stackBase = uint64_t{1} << 41;
/// Return address of a kernel; nothing is mapped there.
constexpr uint64_t haltPc = (uint64_t{1} << 62) - 4096;
/// Each core's status words have a line of their own.
constexpr uint64_t statusStride = 256;
/// Behind the words that a kernel sets lies the one that limits its reductions.
constexpr uint64_t tripLimitOffset = sizeof(KernelStatus);
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

/// Kernels whose decoded text is kept: more than the distinct nests of one model.
constexpr size_t maxLoadedKernels = 128;

struct LoadedKernel {
  std::vector<std::byte> elf; ///< Empty when the kernel has data and must be loaded anew.
  ElfImage image;
  std::vector<std::unique_ptr<Translation>> translations; ///< One per thread; they refer to `image`.
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
  /// Decoded text of `elf`, kept from an earlier launch where there was one.
  LoadedKernel &load(std::span<const std::byte> elf);

  std::vector<std::unique_ptr<Core>> cores;
  std::vector<size_t> activeIds; ///< Core numbers of the current launch.
  std::vector<Core *> active;
  std::optional<Weave> weave;
  std::unique_ptr<ThreadTeam> team;
  std::list<LoadedKernel> kernels;                ///< Recently launched, latest first.
  std::unique_ptr<ZeroedMemory> stacks, statuses; ///< Of all cores; zero at each launch.
  uint64_t stackBytes;
};

NmcMachine::Impl::Impl(const MachineConfig &machine, int simulatingThreads)
    : config(machine), latency(machine.core, machine.l1d) {
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
  uint64_t line = static_cast<uint64_t>(config.l1d.lineBytes);
  stackBytes = (static_cast<uint64_t>(config.core.stackKiB) * 1024 + line - 1) / line * line;
  stacks = std::make_unique<ZeroedMemory>(cores.size() * stackBytes);
  statuses = std::make_unique<ZeroedMemory>(cores.size() * statusStride);
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
      std::memset(stacks->get() + activeIds[i] * stackBytes, 0, stackBytes);
  }
}

LoadedKernel &NmcMachine::Impl::load(std::span<const std::byte> elf) {
  for (auto kernel = kernels.begin(); kernel != kernels.end(); ++kernel)
    if (kernel->elf.size() == elf.size() && std::memcmp(kernel->elf.data(), elf.data(), elf.size()) == 0) {
      kernels.splice(kernels.begin(), kernels, kernel);
      return kernels.front();
    }
  LoadedKernel kernel;
  kernel.image = loadElf(elf, static_cast<uint64_t>(config.l1d.lineBytes));
  std::vector<TextSegment> text;
  bool hasData = false;
  for (const ElfSegment &segment : kernel.image.segments) {
    if (segment.isExecutable)
      text.push_back({segment.guestBase, std::span<const std::byte>(segment.bytes)});
    hasData |= segment.isWritable;
  }
  for (size_t i = 0; i < team->size(); ++i)
    kernel.translations.push_back(std::make_unique<Translation>(text, latency, interpreterHandlers()));
  // Data must be fresh at each launch: such a kernel matches no later one.
  if (!hasData)
    kernel.elf.assign(elf.begin(), elf.end());
  if (kernels.size() >= maxLoadedKernels)
    kernels.pop_back();
  kernels.push_front(std::move(kernel));
  return kernels.front();
}

NmcLaunchStats NmcMachine::Impl::launch(const NmcLaunch &launch) {
  NmcLaunchStats stats;
  if (launch.tasks <= 0)
    return stats;

  LoadedKernel &kernel = load(launch.elf);
  GuestMemory memory;
  for (ElfSegment &segment : kernel.image.segments)
    memory.add(segment.guestBase, segment.bytes.data(), segment.bytes.size(), segment.isWritable,
               "segment of the kernel");
  for (const GuestRegion &region : launch.regions)
    if (region.bytes != 0)
      memory.add(region.guestBase, region.hostBase, region.bytes, region.isWritable, "operand buffer");

  auto numCores = static_cast<uint64_t>(cores.size());
  uint64_t line = static_cast<uint64_t>(config.l1d.lineBytes);
  auto roundUp = [](uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; };
  std::vector<uint64_t> table(roundUp(std::max<uint64_t>(1, launch.operandAddresses.size() * 8), line) / 8);
  std::copy(launch.operandAddresses.begin(), launch.operandAddresses.end(), table.begin());
  memory.add(tableBase, table.data(), table.size() * 8, false, "operand table");
  std::memset(statuses->get(), 0, numCores * statusStride);
  clearStacks();
  memory.add(statusBase, statuses->get(), numCores * statusStride, true, "status words");
  // An unmapped guard follows each stack; its odd size spreads the stacks over the vaults.
  uint64_t stackStride = stackBytes + 4096 + roundUp(static_cast<uint64_t>(config.dram.interleaveBytes), line);

  active.clear(), activeIds.clear();
  std::vector<int64_t> blockTasks; // of the active cores
  auto waitOf = [&](uint64_t core) { return launch.spreadCycles * (core + 1) / numCores; };
  for (uint64_t c = 0; c < numCores; c += static_cast<uint64_t>(std::max<int64_t>(1, launch.coreStride))) {
    auto split = [&](uint64_t i) {
      return static_cast<int64_t>(static_cast<__int128>(i) * launch.tasks / static_cast<__int128>(numCores));
    };
    int64_t begin = split(c), end = split(c + 1);
    begin = std::min(end, begin + launch.firstTaskOfCore);
    int64_t blockEnd = end, blockBegin = begin;
    if (launch.tasksOfCore > 0)
      end = std::min(end, begin + launch.tasksOfCore);
    std::vector<Core::Call> calls;
    for (const TaskRange &range : launch.calls) {
      uint64_t wait = calls.size() == launch.spreadCall ? waitOf(c) : 0;
      calls.push_back({static_cast<uint64_t>(std::min(blockEnd, blockBegin + range.begin)),
                       static_cast<uint64_t>(std::min(blockEnd, blockBegin + range.end)), wait});
    }
    if (!calls.empty()) {
      begin = static_cast<int64_t>(calls.front().begin), end = static_cast<int64_t>(calls.front().end);
      calls.erase(calls.begin());
    }
    if (begin == end)
      continue;
    std::memcpy(statuses->get() + c * statusStride + tripLimitOffset, &launch.tripLimit, sizeof launch.tripLimit);
    memory.add(stackBase + c * stackStride, stacks->get() + c * stackBytes, stackBytes, true, "stack",
               /*isScratch=*/true);
    Core &core = *cores[c];
    core.start(*kernel.translations[active.size() % team->size()], memory, kernel.image.entry, haltPc);
    core.registers[1] = haltPc;
    core.registers[2] = stackBase + c * stackStride + stackBytes;
    // Thread-local data of the C library (errno) is a few bytes; it lies at the far end of the stack.
    core.registers[4] = stackBase + c * stackStride;
    core.registers[10] = tableBase;
    core.registers[11] = static_cast<uint64_t>(begin);
    core.registers[12] = static_cast<uint64_t>(end);
    core.registers[13] = statusBase + c * statusStride;
    core.callAgain(std::move(calls));
    core.markProgress(launch.pointCycles, launch.ownCyclesLimit);
    blockTasks.push_back(blockEnd - blockBegin);
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
  for (size_t i = active.size(); i-- > 0;) {
    KernelStatus status;
    std::memcpy(&status, statuses->get() + activeIds[i] * statusStride, sizeof status);
    if (status.code != 0)
      stats.status = status;
  }
  return stats;
}

NmcMachine::NmcMachine(const MachineConfig &config, int simulatingThreads)
    : impl_(std::make_unique<Impl>(config, simulatingThreads)) {}
NmcMachine::~NmcMachine() = default;
NmcLaunchStats NmcMachine::launch(const NmcLaunch &launch) { return impl_->launch(launch); }
int64_t NmcMachine::numCores() const { return impl_->config.core.count; }
int64_t NmcMachine::l1dLines() const { return impl_->config.l1d.sizeBytes / impl_->config.l1d.lineBytes; }

} // namespace nearbank::sim
