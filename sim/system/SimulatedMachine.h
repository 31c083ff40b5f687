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

/// Tasks [begin, end), counted from the start of a core's block.
struct TaskRange {
  int64_t begin = 0, end = 0;
};

/// One launch of a kernel on a simulated machine.
struct NmcLaunch {
  std::span<const std::byte> elf;             ///< PimKernel::elf.
  std::span<const GuestRegion> regions;       ///< Sorted by guestBase, disjoint; below 1 << 40.
  std::span<const uint64_t> operandAddresses; ///< Guest pointers of the kernel's operand table.
  int64_t tasks = 0;                          ///< Split into one contiguous block per core.
  int64_t firstTaskOfCore = 0;                ///< Sampling: tasks of each core's block that are left out at its start.
  int64_t tasksOfCore = 0;                    ///< Sampling: tasks that each core executes at most; 0 means all.
  /// Sampling: each core calls the kernel for these parts of its block, one after the other, instead of once;
  /// NmcLaunchStats::progress tells when each ended. For machines that honour calls.
  std::span<const TaskRange> calls = {};
  /// Sampling: the first core waits this many cycles before its call number spreadCall, the others spread over as many:
  /// cores that began in step then go on out of step.
  uint64_t spreadCycles = 0;
  size_t spreadCall = 0;
  int64_t coreStride = 1; ///< Sampling: only every so many cores run.
  /// Sampling: each core's progress has a point whenever it has made so many cycles of its own (those not counted in
  /// which it waits for memory), and it stops after about so many. 0: no points, no end. As calls.
  uint64_t pointCycles = 0, ownCyclesLimit = 0;
  double reductionTrips = 0; ///< PimKernel::reductionTrips.
  int64_t tripLimit = 0;     ///< Sampling: trips of that loop that each task makes; 0 means all.
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
  /// Where a core was.
  struct Point {
    uint64_t cycle = 0;
    uint64_t stallCycles = 0; ///< Of them, those in which it waited for memory.
    uint64_t ownCycles() const { return cycle - stallCycles; }
  };
  struct CoreProgress {
    int64_t blockTasks = 0;    ///< Of the core's whole block.
    uint64_t waitCycles = 0;   ///< Of NmcLaunch::spreadCycles.
    std::vector<Point> points; ///< Ends of calls, in order, and those of NmcLaunch::pointCycles.
  };
  std::vector<CoreProgress> progress; ///< By core that ran, when NmcLaunch asks for calls or points.
  KernelStatus status;                ///< Of the lowest-numbered core that set one.
};

/// Calls visit(member) for each count that grows with the work done, instructionsByClass apart.
template <typename Visit> void forEachCount(Visit visit) {
  for (auto member : {&NmcLaunchStats::instructions, &NmcLaunchStats::l1dAccesses, &NmcLaunchStats::l1dMisses,
                      &NmcLaunchStats::l1iMisses, &NmcLaunchStats::writebacks, &NmcLaunchStats::dramReads,
                      &NmcLaunchStats::dramWrites, &NmcLaunchStats::dramBytes, &NmcLaunchStats::l2Accesses,
                      &NmcLaunchStats::l2Misses, &NmcLaunchStats::l3Accesses, &NmcLaunchStats::l3Misses,
                      &NmcLaunchStats::vectorLanes, &NmcLaunchStats::mispredictions, &NmcLaunchStats::rowHits,
                      &NmcLaunchStats::rowMisses, &NmcLaunchStats::rowConflicts, &NmcLaunchStats::memoryStallCycles})
    visit(member);
}

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
  /// Whether launches honour calls and coreStride.
  virtual bool honoursCalls() const { return false; }
};

} // namespace nearbank::sim
