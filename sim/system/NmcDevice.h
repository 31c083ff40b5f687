// SPDX-License-Identifier: Apache-2.0
// The machine of near-memory cores as the runtime's PIM device.
#pragma once

#include "runtime/Executor.h"
#include "sim/system/NmcMachine.h"

namespace nearbank::sim {

/// Simulates every launch with all of its instructions. One launch at a time.
class NmcDevice : public PimDevice {
public:
  /// @param simulatingThreads host threads; 0 means all; results are the same for any number
  explicit NmcDevice(const MachineConfig &config, int simulatingThreads = 0) : machine_(config, simulatingThreads) {}

  /// The kernel sees the buffers of its own operands and nothing else; those it only reads are write-protected.
  /// @throws DeviceError NB05xx when the kernel traps
  PimTiming execute(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                    std::span<const NestOperand> operands, KernelStatus &status) override;

  /// Times a kernel from windows of its tasks (SampledLaunch.h); for scratch data, of which it leaves parts unwritten.
  PimTiming estimate(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                     std::span<const NestOperand> operands);

private:
  NmcMachine machine_;
};

} // namespace nearbank::sim
