// SPDX-License-Identifier: Apache-2.0
// Barriers between tasklets.
#pragma once

#include <atomic_bit.h>
#include <stdint.h>

typedef struct barrier_t {
  uint8_t wait_queue;    ///< Last tasklet that waits; 0xff when none does.
  uint8_t count;         ///< Tasklets that are still to come.
  uint8_t initial_count; ///< Tasklets that take part.
  uint8_t lock;          ///< Atomic bit that guards the rest.
} barrier_t;

#define __NB_TEXT(x) #x
#define __NB_VALUE(x) __NB_TEXT(x)
/// A byte cannot hold an address in C, hence the assembly.
#define __NB_LOCKED_RECORD(_name, _type, _lock, _first)                                                                \
  ATOMIC_BIT_INIT(_lock) __attribute__((used));                                                                        \
  extern _type _name;                                                                                                  \
  __asm__(".pushsection .data." #_name ",\"aw\",@progbits\n.p2align 2\n.globl " #_name "\n.type " #_name               \
          ", @object\n.size " #_name ", 4\n" #_name ":\n.byte 0xff, " _first "\n.byte __atomic_bit_" #_lock            \
          " - __nb_atomic_start\n.popsection\n");
#define BARRIER_INIT(_name, _counter)                                                                                  \
  __NB_LOCKED_RECORD(_name, barrier_t, __BARRIER_##_name, __NB_VALUE(_counter) ", " __NB_VALUE(_counter))

/// Sleeps until all have come.
void barrier_wait(barrier_t *barrier);
