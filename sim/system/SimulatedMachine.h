// SPDX-License-Identifier: Apache-2.0
// What every simulated machine offers: launches of kernels, executed and timed.
#pragma once

#include "runtime/Machine.h"
#include "runtime/Program.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nearbank::sim {

/// Host memory that the guest sees. Guest bases follow buffer order, never host pointers, so that runs repeat exactly.
struct GuestRegion {
  uint64_t guestBase = 0;
  void *hostBase = nullptr;
  uint64_t bytes = 0;
  bool isWritable = true;
};

/// Instruction classes that statistics tell apart.
enum class InstructionClass : uint8_t {
  IntAlu,
  IntMulDiv,
  Branch,
  Load,
  Store,
  FloatAdd,
  FloatMul,
  FloatFma,
  FloatDiv,
  FloatOther,
  Other
};
inline constexpr size_t numInstructionClasses = 11;

/// One launch of a kernel on a simulated machine.
struct NmcLaunch {
  std::span<const std::byte> elf;             ///< PimKernel::elf.
  std::span<const GuestRegion> regions;       ///< Sorted by guestBase, disjoint; below 1 << 40.
  std::span<const uint64_t> operandAddresses; ///< Guest pointers of the kernel's operand table.
  int64_t tasks = 0;                          ///< Split into one contiguous block per core.
  int64_t firstTaskOfCore = 0;                ///< Sampling: tasks of each core's block that are left out at its start.
  int64_t tasksOfCore = 0;                    ///< Sampling: tasks that each core executes at most; 0 means all.
  double reductionTrips = 0;                  ///< PimKernel::reductionTrips.
  int64_t tripLimit = 0;                      ///< Sampling: trips of that loop that each task makes; 0 means all.
  /// Sampling: lines that each core's left-out tasks would have brought into its caches, and how many of them they
  /// would have written. Hosts take their second and last levels as holding such lines; others start cold.
  double linesBefore = 0, dirtyLinesBefore = 0;
};

struct NmcLaunchStats {
  uint64_t coreCycles = 0;   ///< Cycles of the slowest core, core clock.
  double timeNs = 0;         ///< coreCycles at the core clock; simulated.
  uint64_t instructions = 0; ///< Over all cores.
  std::array<uint64_t, numInstructionClasses> instructionsByClass{};
  int64_t coresUsed = 0;
  uint64_t l1dAccesses = 0, l1dMisses = 0, l1iMisses = 0, writebacks = 0;
  uint64_t dramReads = 0, dramWrites = 0; ///< Lines.
  uint64_t dramBytes = 0;
  uint64_t l2Accesses = 0, l2Misses = 0, l3Accesses = 0, l3Misses = 0; ///< Lines asked for, prefetches included.
  uint64_t vectorLanes = 0;    ///< 64-bit lanes that vector arithmetic filled, over all cores.
  uint64_t dirtiedLines = 0;   ///< Hosts: first-level lines that stores touched.
  uint64_t mispredictions = 0; ///< Hosts only.
  uint64_t rowHits = 0, rowMisses = 0, rowConflicts = 0;
  uint64_t memoryStallCycles = 0; ///< Summed over cores.
  double vaultBusyShare = 0;      ///< Mean over vaults or channels of data-bus busy time / timeNs.
  KernelStatus status;            ///< Of the lowest-numbered core that set one.
};

/// Thread-safe for separate instances; one launch at a time per instance.
class SimulatedMachine {
public:
  virtual ~SimulatedMachine() = default;

  /// Executes every instruction of the kernel on all cores and returns its timing.
  /// Caches start empty and the DRAM idle: a launch does not depend on the launches before it.
  /// @throws DeviceError NB05xx on an illegal instruction, an access outside the regions or a malformed ELF
  virtual NmcLaunchStats launch(const NmcLaunch &launch) = 0;

  virtual int64_t numCores() const = 0;
  virtual int64_t l1dLines() const = 0; ///< Lines of one core's first-level data cache.
  /// Whether launches honour tripLimit.
  virtual bool honoursCuts() const { return false; }
};

} // namespace nearbank::sim
