// SPDX-License-Identifier: Apache-2.0
// The performance counter of the DPU: its values are multiples of 16.
#pragma once

#include <dpu_instructions.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint64_t perfcounter_t;
typedef enum _perfcounter_config_t {
  COUNT_SAME = 0,
  COUNT_CYCLES = 1,
  COUNT_INSTRUCTIONS = 2,
  COUNT_NOTHING = 3,
} perfcounter_config_t;

#undef CLOCKS_PER_SEC
#define CLOCKS_PER_SEC ((perfcounter_t)__nb_clock_hz())

/// Chooses what is counted; returns the value before.
NB_ALWAYS_INLINE perfcounter_t perfcounter_config(perfcounter_config_t config, bool reset_value) {
  return (perfcounter_t)__nb_counter_config(config, reset_value) << 4;
}
NB_ALWAYS_INLINE perfcounter_t perfcounter_get(void) { return (perfcounter_t)__nb_counter_get() << 4; }
