// SPDX-License-Identifier: Apache-2.0
// Times a launch of few long tasks from the first part of them, where a task is alike throughout (SA-4 of
// docs/model.md).
#pragma once

#include "sim/system/SampledLaunch.h"

#include <optional>

namespace nearbank::sim {

/// Estimates a launch on a machine that honours calls; nothing when its tasks are short, or not alike throughout.
std::optional<SampledTiming> samplePart(SimulatedMachine &machine, const NmcLaunch &launch,
                                        const SamplingOptions &options);

} // namespace nearbank::sim
