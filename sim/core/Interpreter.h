// SPDX-License-Identifier: Apache-2.0
// Executes micro-ops. Two builds of one loop exist, for hosts with and without FMA instructions; both give the same
// results bit for bit.
#pragma once

#include <cstdint>

namespace nearbank::sim {

class Core;

/// Label addresses by opcode, then pseudo-op; Translation puts them into micro-ops.
const void *const *interpreterHandlers();

/// Runs `core` from core.op until it halts, traps or has no space for events.
/// The host's floating-point environment must be the guest's.
void interpret(Core &core);

/// Sets the host's rounding mode to frm 0-3.
void setHostRounding(uint32_t mode);
/// Host exception flags as fflags bits.
uint32_t hostFlags();

namespace baseline {
void run(Core *core, const void *const **handlers);
}
namespace withFma {
void run(Core *core, const void *const **handlers);
}

} // namespace nearbank::sim
