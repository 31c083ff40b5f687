// SPDX-License-Identifier: Apache-2.0
// Times a long launch from windows of its tasks, and from fewer trips of their reductions, instead of all.
#pragma once

#include "sim/system/SimulatedMachine.h"

namespace nearbank::sim {

struct SamplingOptions {
  int64_t windows = 3;                 ///< Places in each core's block where the rate is measured.
  uint64_t windowInstructions = 20000; ///< Per core and window, at least; twice as much warms the caches up.
  /// A launch of fewer instructions than this many times what sampling would execute is run whole.
  double leastGain = 2.0;
};

/// An estimate with its uncertainty; all times simulated.
struct SampledTiming {
  NmcLaunchStats stats;         ///< Counts scaled to the whole launch; coreCycles and timeNs are the estimate.
  double lowNs = 0, highNs = 0; ///< 95 % confidence interval of timeNs; both timeNs when the launch ran whole.
  double sampledShare = 1;      ///< Tasks executed in measured windows over all tasks.
  bool isExact = true;          ///< The launch ran whole.
};

/// Estimates a launch. Every window runs on all cores at once, so that they contend for the vaults as in the whole
/// launch: each core executes tasks [o, o+2m) and, in a second launch, [o, o+3m); the difference is the time of m tasks
/// with warm caches. The start of the block (cold caches) is executed as it is. Large reductions are cut short (SA-2 of
/// docs/model.md). Memory contents afterwards are those
/// of the executed tasks only: for timing on scratch data.
SampledTiming launchSampled(SimulatedMachine &machine, const NmcLaunch &launch, const SamplingOptions &options = {});

} // namespace nearbank::sim
