// SPDX-License-Identifier: Apache-2.0
// Executes micro-ops. Two builds of one loop exist, for hosts with and without FMA instructions; both give the same
// results bit for bit.
#pragma once

#include <cfenv>
#include <cstdint>

namespace nearbank::sim {

class Core;

/// Label addresses by opcode, then pseudo-op; Translation puts them into micro-ops.
const void *const *interpreterHandlers();

/// Runs `core` from core.op until it halts, traps or has no space for events.
/// The host's floating-point environment must be the guest's (GuestFloatEnvironment, setHostRounding).
void interpret(Core &core);

/// Sets the host's rounding mode to frm 0-3.
void setHostRounding(uint32_t mode);
/// Host exception flags as fflags bits.
uint32_t hostFlags();
/// Moves the host's exception flags into `flags`: none stay raised for the core that this thread runs next.
void takeHostFlags(uint32_t &flags);

/// The default floating-point environment while it lives; the caller's afterwards.
class GuestFloatEnvironment {
public:
  GuestFloatEnvironment();
  ~GuestFloatEnvironment();
  GuestFloatEnvironment(const GuestFloatEnvironment &) = delete;
  GuestFloatEnvironment &operator=(const GuestFloatEnvironment &) = delete;

private:
  std::fenv_t saved_;
};

namespace baseline {
void run(Core *core, const void *const **handlers);
}
namespace withFma {
void run(Core *core, const void *const **handlers);
}

} // namespace nearbank::sim
