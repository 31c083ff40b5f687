// SPDX-License-Identifier: Apache-2.0
#include "sim/system/HostDevice.h"

#include "sim/system/DeviceLaunch.h"

namespace nearbank::sim {

PimTiming HostDevice::execute(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                              std::span<const NestOperand> operands, KernelStatus &status) {
  return executeOn(machine_, kernel, buffers, operands, status);
}

PimTiming HostDevice::estimate(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                               std::span<const NestOperand> operands) {
  return estimateOn(machine_, kernel, buffers, operands);
}

} // namespace nearbank::sim
