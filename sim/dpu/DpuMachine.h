// SPDX-License-Identifier: Apache-2.0
// Machines of kind upmem as the compiler and the runtime see them.
#pragma once

#include "runtime/Machine.h"

#include <string>
#include <utility>
#include <vector>

namespace nearbank::dpu {

/// As loadMachine(), which it calls for machines without DPUs. Names of those with DPUs are `upmem-N`, for N DPUs of
/// UPMEM's v1A, and files of kind upmem. The host beside them is host-16, for the cache model of profiles.
/// @throws UserError NB01xx
MachineConfig loadAnyMachine(const std::string &nameOrPath, const std::string &searchFolder,
                             const std::vector<std::pair<std::string, std::string>> &overrides = {});

/// Lets DPUs of `machine` run on the engine that NEARBANK_UPMEM names; `exact` when it is not set.
/// @param upmemHome folder of the translator for `fast`
/// @throws UserError NB0802 when there is no such engine
void chooseEngine(MachineConfig &machine, const std::string &upmemHome);

} // namespace nearbank::dpu
