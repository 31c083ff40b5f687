// SPDX-License-Identifier: Apache-2.0
// Counting semaphores.
#pragma once

#include <barrier.h>

struct sem_t {
  uint8_t wait_queue;    ///< Last tasklet that waits; 0xff when none does.
  int8_t count;          ///< Units left; negative: tasklets that wait.
  uint8_t initial_count; ///< Units at the start.
  uint8_t lock;          ///< Atomic bit that guards the rest.
};

#define SEMAPHORE_INIT(_name, _counter)                                                                                \
  __NB_LOCKED_RECORD(_name, struct sem_t, __SEMAPHORE_##_name, __NB_VALUE(_counter) ", " __NB_VALUE(_counter))

void sem_give(struct sem_t *sem);
void sem_take(struct sem_t *sem);
