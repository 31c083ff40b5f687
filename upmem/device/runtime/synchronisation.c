// SPDX-License-Identifier: Apache-2.0
// Barriers, semaphores and handshakes, made of atomic bits, stop and resume.
#include "wait_queue.h"

#include <barrier.h>
#include <errno.h>
#include <handshake.h>
#include <sem.h>

uint8_t __sys_wait_queue_table[NB_MAX_TASKLETS];

void barrier_wait(barrier_t *barrier) {
  uint8_t lock = barrier->lock;
  __nb_acquire(lock);
  uint8_t last = barrier->wait_queue;
  uint8_t count = barrier->count;
  if (count == 1) {
    if (last != NB_NOBODY) {
      uint8_t sleeper = __sys_wait_queue_table[last];
      while (sleeper != last) {
        // Read first: who is awake may wait in another queue at once.
        uint8_t next = __sys_wait_queue_table[sleeper];
        __nb_resume(sleeper);
        sleeper = next;
      }
      __nb_resume(last);
      barrier->wait_queue = NB_NOBODY;
    }
    barrier->count = barrier->initial_count;
    __nb_release(lock);
    return;
  }
  __nb_enqueue(&barrier->wait_queue, me());
  barrier->count = count - 1;
  __nb_release(lock);
  __nb_stop();
}

void sem_take(struct sem_t *sem) {
  uint8_t lock = sem->lock;
  __nb_acquire(lock);
  int8_t count = sem->count - 1;
  sem->count = count;
  if (count < 0) {
    __nb_enqueue(&sem->wait_queue, me());
    __nb_release(lock);
    __nb_stop();
  } else {
    __nb_release(lock);
  }
}

void sem_give(struct sem_t *sem) {
  uint8_t lock = sem->lock;
  __nb_acquire(lock);
  sem->count++;
  uint8_t last = sem->wait_queue;
  if (last != NB_NOBODY) {
    uint8_t first = __sys_wait_queue_table[last];
    if (first == last)
      sem->wait_queue = NB_NOBODY;
    else
      __sys_wait_queue_table[last] = __sys_wait_queue_table[first];
    __nb_resume(first);
  }
  __nb_release(lock);
}

ATOMIC_BIT_INIT(__nb_handshake);
// One more than the tasklet that sleeps for the meeting of each notifier; 0 when none does.
static volatile uint8_t meetings[NB_MAX_TASKLETS];

void handshake_notify(void) {
  uint8_t self = me();
  ATOMIC_BIT_ACQUIRE(__nb_handshake);
  uint8_t other = meetings[self];
  if (other == 0) {
    meetings[self] = self + 1;
    ATOMIC_BIT_RELEASE(__nb_handshake);
    __nb_stop();
    return;
  }
  meetings[self] = 0;
  __nb_resume(other - 1);
  ATOMIC_BIT_RELEASE(__nb_handshake);
}

int handshake_wait_for(sysname_t notifier) {
  ATOMIC_BIT_ACQUIRE(__nb_handshake);
  uint8_t other = meetings[notifier];
  if (other == 0) {
    meetings[notifier] = me() + 1;
    ATOMIC_BIT_RELEASE(__nb_handshake);
    __nb_stop();
    return 0;
  }
  if (other != notifier + 1) {
    ATOMIC_BIT_RELEASE(__nb_handshake);
    return EALREADY;
  }
  meetings[notifier] = 0;
  __nb_resume(notifier);
  ATOMIC_BIT_RELEASE(__nb_handshake);
  return 0;
}
