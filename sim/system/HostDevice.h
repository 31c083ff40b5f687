// SPDX-License-Identifier: Apache-2.0
// A modelled host as a device of the runtime: what NmcDevice is for near-memory cores.
#pragma once

#include "runtime/Executor.h"
#include "sim/system/HostMachine.h"

namespace nearbank::sim {

/// Simulates every launch with all of its instructions. One launch at a time.
class HostDevice : public PimDevice {
public:
  /// @param config of kind "host"
  explicit HostDevice(const MachineConfig &config, HostMachine::Start start = HostMachine::Start::Cold)
      : machine_(config, start) {}

  /// The kernel sees the buffers of its own operands and nothing else; those it only reads are write-protected.
  /// @throws DeviceError NB05xx when the kernel traps
  PimTiming execute(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                    std::span<const NestOperand> operands, KernelStatus &status) override;

  /// Times a kernel from windows of its tasks (SampledLaunch.h); for scratch data, of which it leaves parts unwritten.
  PimTiming estimate(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                     std::span<const NestOperand> operands);

private:
  HostMachine machine_;
};

} // namespace nearbank::sim
