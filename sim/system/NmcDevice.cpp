// SPDX-License-Identifier: Apache-2.0
#include "sim/system/NmcDevice.h"

#include "sim/system/DeviceLaunch.h"

namespace nearbank::sim {

PimTiming NmcDevice::execute(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                             std::span<const NestOperand> operands, KernelStatus &status) {
  return executeOn(machine_, kernel, buffers, operands, status);
}

PimTiming NmcDevice::estimate(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                              std::span<const NestOperand> operands) {
  return estimateOn(machine_, kernel, buffers, operands);
}

} // namespace nearbank::sim
