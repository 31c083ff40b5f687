// SPDX-License-Identifier: Apache-2.0
// Traces a prefix and windows of a nest's task range and scales what the cache model counted to the whole nest.
#pragma once

#include "compiler/profile/NestProfile.h"
#include "compiler/profile/ScratchArena.h"

namespace nearbank::profile {

/// CM-2 and CM-3 (docs/model.md). The caches start empty.
/// @param accessBudget accesses to feed to the cache model; a nest with no more than that is traced whole
CacheProfile traceNest(const HostKernel &code, ScratchArena &arena, const NestFacts &facts, const HostConfig &host,
                       uint64_t accessBudget);

} // namespace nearbank::profile
