// SPDX-License-Identifier: Apache-2.0
// What devices of simulated machines share: buffers and operands as guest memory, statistics as a timing.
#pragma once

#include "runtime/Executor.h"
#include "sim/system/SimulatedMachine.h"

#include <span>
#include <vector>

namespace nearbank::sim {

/// Guest memory and operand pointers of a launch: the buffers of the operands and nothing else.
struct GuestOperands {
  std::vector<GuestRegion> regions;
  std::vector<uint64_t> addresses;

  GuestOperands(std::span<const PimDevice::BoundBuffer> buffers, std::span<const NestOperand> operands);
};

/// Executes a kernel with all of its instructions. @throws DeviceError NB05xx when it traps
PimTiming executeOn(SimulatedMachine &machine, const PimKernel &kernel, std::span<const PimDevice::BoundBuffer> buffers,
                    std::span<const NestOperand> operands, KernelStatus &status);
/// Times a kernel from windows of its tasks (SampledLaunch.h); for scratch data, of which it leaves parts unwritten.
PimTiming estimateOn(SimulatedMachine &machine, const PimKernel &kernel,
                     std::span<const PimDevice::BoundBuffer> buffers, std::span<const NestOperand> operands);

} // namespace nearbank::sim
