// SPDX-License-Identifier: Apache-2.0
// Identity and life of tasklets.
#pragma once

#include <attributes.h>
#include <dpu_instructions.h>
#include <sysdef.h>

/// Number of the calling tasklet.
NB_ALWAYS_INLINE sysname_t me(void) {
  sysname_t id;
  __asm__("mv %0, gp" : "=r"(id));
  return id;
}

/// Ends the calling tasklet with its DPU in fault state.
NB_ALWAYS_INLINE void halt(void) { __nb_fault(1, 0); }

/// Bytes that the stack of the calling tasklet still has; negative when it has overflown.
int check_stack(void);
