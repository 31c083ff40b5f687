// SPDX-License-Identifier: Apache-2.0
// A simulated machine as the runtime's PIM device.
#pragma once

#include "sim/system/DeviceLaunch.h"
#include "sim/system/HostMachine.h"
#include "sim/system/NmcMachine.h"

#include <utility>

namespace nearbank::sim {

/// Simulates every launch with all of its instructions. One launch at a time.
template <typename Machine> class SimulatedDevice : public PimDevice {
public:
  /// @param options what the machine's constructor takes after the configuration
  template <typename... Options>
  explicit SimulatedDevice(const MachineConfig &config, Options &&...options)
      : machine_(config, std::forward<Options>(options)...) {}

  /// The kernel sees the buffers of its own operands and nothing else; those it only reads are write-protected.
  /// @throws DeviceError NB05xx when the kernel traps
  PimTiming execute(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                    std::span<const NestOperand> operands, KernelStatus &status) override {
    return executeOn(machine_, kernel, buffers, operands, status);
  }

  /// Times a kernel from windows of its tasks (SampledLaunch.h); for scratch data, of which it leaves parts unwritten.
  PimTiming estimate(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                     std::span<const NestOperand> operands) {
    return estimateOn(machine_, kernel, buffers, operands);
  }

private:
  Machine machine_;
};

using NmcDevice = SimulatedDevice<NmcMachine>;
using HostDevice = SimulatedDevice<HostMachine>; ///< What NmcDevice is, for a modelled host.

} // namespace nearbank::sim
