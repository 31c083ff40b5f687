// SPDX-License-Identifier: Apache-2.0
// Sleeping tasklets as a ring: each entry names the next one, the queue's head the last one.
#pragma once

#include <defs.h>

#define NB_NOBODY 0xff

extern uint8_t __sys_wait_queue_table[NB_MAX_TASKLETS];

NB_ALWAYS_INLINE void __nb_enqueue(volatile uint8_t *last, uint8_t who) {
  uint8_t head = *last;
  if (head == NB_NOBODY) {
    __sys_wait_queue_table[who] = who;
  } else {
    __sys_wait_queue_table[who] = __sys_wait_queue_table[head];
    __sys_wait_queue_table[head] = who;
  }
  *last = who;
}
