// SPDX-License-Identifier: Apache-2.0
// What the launches of a program's nests on DPUs transfer, and what stays in MRAM from launch to launch.
#pragma once

#include "runtime/Executor.h"
#include "runtime/Machine.h"
#include "runtime/Program.h"

#include <span>
#include <vector>

namespace nearbank::driver {

struct DpuTransfers {
  NestTransfers perNest;                               ///< CX-5 of each launch.
  std::vector<uint64_t> residentBytes;                 ///< By nest: bytes in each DPU that stay there.
  std::vector<std::vector<uint32_t>> residentOperands; ///< By nest: numbers of the operands that do.
  double launchNs(size_t nest) const;                  ///< Sum of perNest.
};

/// Parameters, constants and what hoisted nests make of them stay in MRAM, in program order, as long as there is room
/// beside the largest nest's other operands; every other operand crosses at each launch.
DpuTransfers transfersOfProgram(const Program &program, std::span<const PimKernel> kernels,
                                const MachineConfig &machine);

} // namespace nearbank::driver
