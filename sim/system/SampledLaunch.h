// SPDX-License-Identifier: Apache-2.0
// Times a long launch from windows of its tasks, and from fewer trips of their reductions, instead of all.
#pragma once

#include "sim/system/SimulatedMachine.h"

namespace nearbank::sim {

struct SamplingOptions {
  int64_t windows = 3;                 ///< SA-1: places in each core's block where the rate is measured.
  uint64_t windowInstructions = 20000; ///< SA-1: per core and window, at least; twice as much warms the caches up.
  /// A launch of fewer instructions than this many times what sampling would execute is run whole.
  double leastGain = 2.0;
  double leastInstructions = 1e8; ///< SA-3, SA-4: a launch of fewer instructions is run whole.
};

/// An estimate with its uncertainty; all times simulated.
struct SampledTiming {
  NmcLaunchStats stats;         ///< Counts scaled to the whole launch; coreCycles and timeNs are the estimate.
  double lowNs = 0, highNs = 0; ///< 95 % confidence interval of timeNs; both timeNs when the launch ran whole.
  double sampledShare = 1;      ///< Work executed, or with SA-1 that of measured windows, over all work.
  bool isExact = true;          ///< The launch ran whole.
};

/// Estimates a launch: from parts of it on near-memory cores (SA-3 and SA-4 of docs/model.md), from windows on hosts
/// (SA-1), and with large reductions cut short (SA-2). Memory contents afterwards are those of the executed tasks only:
/// for timing on scratch data.
SampledTiming launchSampled(SimulatedMachine &machine, const NmcLaunch &launch, const SamplingOptions &options = {});

} // namespace nearbank::sim
