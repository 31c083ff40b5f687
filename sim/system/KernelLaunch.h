// SPDX-License-Identifier: Apache-2.0
// What launches have in common on every machine: decoded kernels, the guest's address space, blocks of tasks, and the
// registers with which a core enters a kernel.
#pragma once

#include "sim/core/Core.h"
#include "sim/core/OpPlan.h"
#include "sim/system/ElfImage.h"
#include "sim/system/SimulatedMachine.h"

#include <functional>
#include <list>
#include <memory>

namespace nearbank::sim {

/// A kernel that a machine has launched.
struct LoadedKernel {
  std::vector<std::byte> elf; ///< Empty when the kernel has data and must be loaded anew.
  ElfImage image;
  std::vector<std::unique_ptr<Translation>> translations; ///< One per thread; they refer to `image`.
  std::unique_ptr<PlanTable> plans;                       ///< Hosts: of its blocks.
};

/// Recently launched kernels, so that their text is not decoded again.
class KernelCache {
public:
  using Translate = std::function<std::unique_ptr<Translation>(const std::vector<TextSegment> &text)>;

  /// The kernel of `elf`, from an earlier launch where there was one; else decoded and translated `copies` times.
  LoadedKernel &load(std::span<const std::byte> elf, uint64_t lineBytes, size_t copies, const Translate &translate);

private:
  std::list<LoadedKernel> kernels_; ///< Latest first.
};

/// Tasks of a core's whole block, counted from the launch's first.
TaskRange blockOfCore(const NmcLaunch &launch, uint64_t core, uint64_t numCores);
/// What NmcLaunch::firstTaskOfCore and tasksOfCore leave of a block.
TaskRange cutBlock(const NmcLaunch &launch, TaskRange block);

/// The guest's address space around a kernel.
class KernelFrame {
public:
  /// Where a kernel returns to; nothing is mapped there.
  static constexpr uint64_t haltPc = (uint64_t{1} << 62) - 4096;

  explicit KernelFrame(const MachineConfig &config);

  uint64_t lineBytes() const { return lineBytes_; }
  uint64_t stackBytes() const { return stackBytes_; }
  uint64_t tableAddress() const;

  /// Adds the kernel's segments, the launch's operands, their table, and zeroed status words. The frame must outlive
  /// the memory's use.
  void layOut(GuestMemory &memory, ElfImage &image, const NmcLaunch &launch);
  /// Adds the stack of a core: stackBytes() at `host`.
  void addStack(GuestMemory &memory, uint64_t core, char *host, bool isScratch = false) const;
  /// Sets the registers of a started core, number `id`, for the call of the kernel with these tasks.
  void enter(Core &core, uint64_t id, TaskRange tasks, const NmcLaunch &launch);
  /// Status of the first of these cores that has set one.
  KernelStatus firstStatus(const std::vector<size_t> &coreIds) const;

private:
  uint64_t lineBytes_, stackBytes_, stackStride_;
  std::vector<uint64_t> table_; ///< Operand addresses.
  std::vector<char> statuses_;  ///< By core.
};

} // namespace nearbank::sim
