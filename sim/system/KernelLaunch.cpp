// SPDX-License-Identifier: Apache-2.0
#include "sim/system/KernelLaunch.h"

#include <algorithm>
#include <cstring>

namespace nearbank::sim {
namespace {

/// The machine's own guest ranges lie above every kernel and region.
constexpr uint64_t tableBase = uint64_t{1} << 40, statusBase = tableBase + (uint64_t{1} << 36),
                   stackBase = uint64_t{1} << 41;
/// Each core's status words have a line of their own.
constexpr uint64_t statusStride = 256;
/// Behind the words that a kernel sets lies the one that limits its reductions.
constexpr uint64_t tripLimitOffset = sizeof(KernelStatus);
/// Kernels whose decoded text is kept: more than the distinct nests of one model.
constexpr size_t maxLoadedKernels = 128;

uint64_t roundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

} // namespace

LoadedKernel &KernelCache::load(std::span<const std::byte> elf, uint64_t lineBytes, size_t copies,
                                const Translate &translate) {
  for (auto kernel = kernels_.begin(); kernel != kernels_.end(); ++kernel)
    if (std::equal(elf.begin(), elf.end(), kernel->elf.begin(), kernel->elf.end())) {
      kernels_.splice(kernels_.begin(), kernels_, kernel);
      return kernels_.front();
    }
  LoadedKernel kernel;
  kernel.image = loadElf(elf, lineBytes);
  std::vector<TextSegment> text;
  bool hasData = false;
  for (const ElfSegment &segment : kernel.image.segments) {
    if (segment.isExecutable)
      text.push_back({segment.guestBase, std::span<const std::byte>(segment.bytes)});
    hasData |= segment.isWritable;
  }
  for (size_t i = 0; i < copies; ++i)
    kernel.translations.push_back(translate(text));
  // Data must be fresh at each launch: such a kernel matches no later one.
  if (!hasData)
    kernel.elf.assign(elf.begin(), elf.end());
  if (kernels_.size() >= maxLoadedKernels)
    kernels_.pop_back();
  kernels_.push_front(std::move(kernel));
  return kernels_.front();
}

TaskRange blockOfCore(const NmcLaunch &launch, uint64_t core, uint64_t numCores) {
  auto split = [&](uint64_t i) {
    return static_cast<int64_t>(static_cast<__int128>(i) * launch.tasks / static_cast<__int128>(numCores));
  };
  return {split(core), split(core + 1)};
}

TaskRange cutBlock(const NmcLaunch &launch, TaskRange block) {
  block.begin = std::min(block.end, block.begin + launch.firstTaskOfCore);
  if (launch.tasksOfCore > 0)
    block.end = std::min(block.end, block.begin + launch.tasksOfCore);
  return block;
}

KernelFrame::KernelFrame(const MachineConfig &config)
    : lineBytes_(static_cast<uint64_t>(config.l1d.lineBytes)),
      stackBytes_(roundUp(static_cast<uint64_t>(config.core.stackKiB) * 1024, lineBytes_)),
      // An unmapped guard follows each stack; its odd size spreads the stacks over vaults or channels.
      stackStride_(stackBytes_ + 4096 + roundUp(static_cast<uint64_t>(config.dram.interleaveBytes), lineBytes_)),
      statuses_(static_cast<size_t>(config.core.count) * statusStride) {}

uint64_t KernelFrame::tableAddress() const { return tableBase; }

void KernelFrame::layOut(GuestMemory &memory, ElfImage &image, const NmcLaunch &launch) {
  for (ElfSegment &segment : image.segments)
    memory.add(segment.guestBase, segment.bytes.data(), segment.bytes.size(), segment.isWritable,
               "segment of the kernel");
  for (const GuestRegion &region : launch.regions)
    if (region.bytes != 0)
      memory.add(region.guestBase, region.hostBase, region.bytes, region.isWritable, "operand buffer");
  table_.assign(roundUp(std::max<uint64_t>(1, launch.operandAddresses.size() * 8), lineBytes_) / 8, 0);
  std::copy(launch.operandAddresses.begin(), launch.operandAddresses.end(), table_.begin());
  memory.add(tableBase, table_.data(), table_.size() * 8, false, "operand table");
  std::fill(statuses_.begin(), statuses_.end(), 0);
  memory.add(statusBase, statuses_.data(), statuses_.size(), true, "status words");
}

void KernelFrame::addStack(GuestMemory &memory, uint64_t core, char *host, bool isScratch) const {
  memory.add(stackBase + core * stackStride_, host, stackBytes_, true, "stack", isScratch);
}

void KernelFrame::enter(Core &core, uint64_t id, TaskRange tasks, const NmcLaunch &launch) {
  std::memcpy(statuses_.data() + id * statusStride + tripLimitOffset, &launch.tripLimit, sizeof launch.tripLimit);
  uint64_t stack = stackBase + id * stackStride_;
  core.registers[1] = haltPc;
  core.registers[2] = stack + stackBytes_;
  // Thread-local data of the C library (errno) is a few bytes; it lies at the far end of the stack.
  core.registers[4] = stack;
  core.registers[10] = tableBase;
  core.registers[11] = static_cast<uint64_t>(tasks.begin);
  core.registers[12] = static_cast<uint64_t>(tasks.end);
  core.registers[13] = statusBase + id * statusStride;
}

KernelStatus KernelFrame::firstStatus(const std::vector<size_t> &coreIds) const {
  for (size_t id : coreIds) {
    KernelStatus status;
    std::memcpy(&status, statuses_.data() + id * statusStride, sizeof status);
    if (status.code != 0)
      return status;
  }
  return {};
}

} // namespace nearbank::sim
