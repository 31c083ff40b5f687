// SPDX-License-Identifier: Apache-2.0
// Times a long launch from one short launch whose cores call the kernel for a few parts of their blocks (SA-3 of
// docs/model.md).
#pragma once

#include "sim/system/SampledLaunch.h"

#include <optional>

namespace nearbank::sim {

/// Estimates a launch on a machine that honours calls; nothing when executing it whole is little more work.
std::optional<SampledTiming> sampleCalls(SimulatedMachine &machine, const NmcLaunch &launch,
                                         const SamplingOptions &options);

/// Instructions that an estimate of a launch of so many executes on such a machine, roughly.
double expectedSample(double instructions, const SamplingOptions &options);

} // namespace nearbank::sim
