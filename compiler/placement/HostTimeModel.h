// SPDX-License-Identifier: Apache-2.0
// PL-9 (docs/model.md): predicts a nest's time on a modelled host in closed form, as PL-3 does for PIM.
#pragma once

#include "compiler/profile/NestProfile.h"
#include "runtime/Machine.h"
#include "runtime/Program.h"

namespace nearbank::placement {

/// The terms of PL-9.
struct HostTimePrediction {
  double coresUsed = 0;     ///< Cores that get at least one task.
  double imbalance = 1;     ///< Longest block of tasks over the mean.
  double lanes = 1;         ///< Elements of a vector instruction.
  double computeCycles = 0; ///< PL-9.1, over all cores: the larger of dispatch and arithmetic ports.
  double stallCycles = 0;   ///< PL-9.2, over all cores: misses that nothing hides.
  double dramBytes = 0;     ///< PL-9.3.
  double computeNs = 0;     ///< Of the slowest core.
  double bandwidthNs = 0;   ///< dramBytes over the bandwidth of all channels.
  double timeNs = 0;        ///< The larger of the two, with fork and join.
};

/// @param host machine of kind host
HostTimePrediction predictHostTime(const NestFacts &facts, const profile::NestProfile &profile,
                                   const MachineConfig &host);

} // namespace nearbank::placement
