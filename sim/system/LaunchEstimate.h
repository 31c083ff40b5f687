// SPDX-License-Identifier: Apache-2.0
// From what parts of the cores' work took to what all of it takes (SA-3 of docs/model.md).
#pragma once

#include "sim/system/SampledLaunch.h"

#include <vector>

namespace nearbank::sim {

/// What one core did and is still to do. Work is counted in units of the sampler's choice, tasks for one.
struct CoreSample {
  double startCycles = 0;    ///< Of what it executed at the start of its block.
  double startOwnCycles = 0; ///< Of them, those in which it did not wait for memory.
  double endCycle = 0;       ///< When it had executed all that it did.
  double executedOwnCycles = 0;
  double rest = 0;             ///< Units after the start, executed or not.
  std::vector<double> rates;   ///< Cycles per unit, at as many places of the rest for all cores.
  std::vector<double> efforts; ///< Of them, own cycles.
};

/// Scales `stats` of a launch that executed what `samples` tell, one for each core that ran, to all of their work.
/// @param unitsOfPlace units whose mean each rate is
/// @param laterCycles that every core still takes beyond start and rates
SampledTiming estimateLaunch(const NmcLaunchStats &stats, std::vector<CoreSample> samples, double unitsOfPlace,
                             double laterCycles);

} // namespace nearbank::sim
