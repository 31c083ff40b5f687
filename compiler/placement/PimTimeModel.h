// SPDX-License-Identifier: Apache-2.0
// PL-3 (docs/model.md): predicts a nest's time on PIM in closed form, from its facts, its host profile and the machine.
#pragma once

#include "compiler/profile/NestProfile.h"
#include "runtime/Machine.h"
#include "runtime/Program.h"

namespace nearbank::placement {

/// The terms of PL-3.
struct PimTimePrediction {
  double coresUsed = 0;   ///< Cores that get at least one task.
  double imbalance = 1;   ///< Longest block of tasks over the mean.
  double issueCycles = 0; ///< PL-3.1, over all cores.
  double stallCycles = 0; ///< PL-3.2, over all cores.
  double dramBytes = 0;   ///< PL-3.3.
  double computeNs = 0;   ///< Issue and stalls of the slowest core.
  double bandwidthNs = 0; ///< dramBytes over the bandwidth of all vaults.
  double kernelNs = 0;    ///< The larger of the two.
  double totalNs = 0;     ///< With launch and return.
};

/// @param dpuKernel how DPUs run the nest: then PL-10 predicts, and without it nothing does on a machine with DPUs
PimTimePrediction predictPimTime(const NestFacts &facts, const profile::NestProfile &profile,
                                 const MachineConfig &machine, const DpuKernel *dpuKernel = nullptr);

} // namespace nearbank::placement
