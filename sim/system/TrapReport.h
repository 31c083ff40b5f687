// SPDX-License-Identifier: Apache-2.0
// Turns a trap of a core into a DeviceError.
#pragma once

#include "sim/core/Core.h"

namespace nearbank::sim {

/// @throws DeviceError NB0501 access outside, NB0502 write to read-only memory, NB0503 illegal instruction,
///   NB0504 jump outside the text, NB0507 environment call, NB0508 misaligned atomic
[[noreturn]] void throwTrap(const Trap &trap, size_t core, const GuestMemory &memory);

} // namespace nearbank::sim
