// SPDX-License-Identifier: Apache-2.0
// Runs a placed program: binds buffers, executes nests in order on host or PIM, charges what crosses sides.
#pragma once

#include "runtime/Machine.h"
#include "runtime/Program.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace nearbank {

enum class Site : uint8_t { Host, Pim };

/// What one PIM launch reported; simulated.
struct PimTiming {
  double timeNs = 0;
  uint64_t instructions = 0;
  uint64_t coreCycles = 0;
  uint64_t dramBytes = 0;
  uint64_t l1dAccesses = 0, l1dMisses = 0;
  int64_t coresUsed = 0;
  bool isSampled = false;                               ///< timeNs is an estimate from windows of the tasks.
  double lowNs = 0, highNs = 0;                         ///< Sampled only: 95 % confidence interval of timeNs.
  std::vector<std::pair<std::string, double>> counters; ///< Further statistics by name, for the report.
};

/// A PIM device as the runtime sees it. The simulator implements it.
class PimDevice {
public:
  virtual ~PimDevice() = default;
  /// Executes a kernel on the given host pointers; `guestAddresses` are those of the program's memory map.
  /// @param buffers host address and size of every live buffer, by buffer index (null when not live)
  struct BoundBuffer {
    void *host = nullptr;
    uint64_t bytes = 0;
    uint64_t guestBase = 0;
    bool isWritable = true;
  };
  virtual PimTiming execute(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                            std::span<const NestOperand> operands, KernelStatus &status) = 0;
};

/// One nest execution in the record.
struct LaunchRecord {
  uint32_t nest = 0; ///< Index into Program::nests.
  Site site = Site::Host;
  double hostNs = 0; ///< Measured; host nests only.
  PimTiming pim;     ///< Simulated; PIM nests only.
  double wallNs = 0; ///< Measured time that the launch took on this host, simulation included.
};

/// Data or control that crossed sides before a nest ran; modelled.
struct CrossingRecord {
  uint32_t nest = 0; ///< Nest that needed it.
  /// "flush" host→PIM data, "fetch" PIM→host data, "launch" host→PIM control, "return" PIM→host control; of DPUs
  /// "scatter", "broadcast", "gather", "launch", "arrange" for what the host copies before or after, "load" for
  /// programs.
  std::string kind;
  int64_t buffer = -1; ///< Index, or -1 for control.
  uint64_t bytes = 0;
  double timeNs = 0;
};

/// What each launch of a nest on DPUs pays besides its kernel, by nest index; empty for machines that share the host's
/// memory, where crossings follow from where data lies.
using NestTransfers = std::vector<std::vector<CrossingRecord>>;

struct RunRecord {
  std::vector<LaunchRecord> launches;
  std::vector<CrossingRecord> crossings;
  double wallNs = 0; ///< Measured wall time of the whole run, simulation included.
};

struct ExecutorInput {
  const Program &program;
  std::span<const HostKernel> hostKernels; ///< By kernel index; `run` null when the kernel never runs on the host.
  std::span<const PimKernel> pimKernels;   ///< By kernel index; empty `elf` when it never runs on PIM.
  std::span<const Site> placement;         ///< By nest index.
  std::span<void *const> arguments;        ///< By argument index; contiguous host memory of the declared shape.
  std::span<void *const> outputBuffers;    ///< One per buffer of kind Output, in buffer order.
  const MachineConfig &machine;
  PimDevice *pim = nullptr;      ///< May be null when no nest is placed on PIM.
  int threads = 0;               ///< Host threads; 0 means all.
  bool poisonPimOutputs = false; ///< Fills what a PIM nest writes only (reads not) with 0xCB first; tests use it.
  const NestTransfers *transfers = nullptr; ///< Of machines with DPUs.
};

/// Guest address of every buffer: in buffer order, each on a page of its own with an unmapped page behind it.
std::vector<uint64_t> guestAddresses(const Program &program);

/// Executes a placed program once. Hoisted nests run first-class too; the caller leaves them out of timed sums.
/// @throws UserError NB0301 when an index is out of range (Python raises IndexError), DeviceError from the PIM device
RunRecord executeProgram(const ExecutorInput &input);

/// Times of crossings for a placement without executing it: the same model as executeProgram's.
std::vector<CrossingRecord> modelCrossings(const Program &program, std::span<const Site> placement,
                                           const MachineConfig &machine, const NestTransfers *transfers = nullptr);

/// Runs tasks [0, tasks) of a host kernel over a fixed pool of threads; returns the status of the lowest task block
/// that set one.
KernelStatus runHostKernel(KernelFunction kernel, void **operands, int64_t tasks, int threads);

} // namespace nearbank
