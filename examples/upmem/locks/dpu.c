// SPDX-License-Identifier: Apache-2.0
// Mutexes, a pool of them, virtual ones, a semaphore and handshakes, each guarding a counter.
#include "shared.h"

#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mutex.h>
#include <mutex_pool.h>
#include <sem.h>
#include <stdint.h>
#include <stdio.h>
#include <vmutex.h>

__host uint32_t counter, pooled[SLOTS], virtual_slots[SLOTS], guarded, tokens;
__host uint32_t most_inside;
MUTEX_INIT(counter_lock);
MUTEX_POOL_INIT(pool, 4);
VMUTEX_INIT(many, SLOTS, 4);
SEMAPHORE_INIT(two_places, 2);
MUTEX_INIT(inside_lock);
BARRIER_INIT(everyone, NR_TASKLETS);
static volatile uint32_t inside;

int main(void) {
  for (uint32_t round = 0; round < ROUNDS; round++) {
    mutex_lock(counter_lock);
    counter++;
    mutex_unlock(counter_lock);
    uint32_t slot = (round * 7 + me()) % SLOTS;
    mutex_pool_lock(&pool, slot);
    pooled[slot]++;
    mutex_pool_unlock(&pool, slot);
    vmutex_lock(&many, slot);
    virtual_slots[slot]++;
    vmutex_unlock(&many, slot);
  }
  sem_take(&two_places);
  mutex_lock(inside_lock);
  inside++;
  if (inside > most_inside)
    most_inside = inside;
  mutex_unlock(inside_lock);
  for (volatile uint32_t i = 0; i < 20; i++) {
  }
  mutex_lock(inside_lock);
  inside--;
  guarded++;
  mutex_unlock(inside_lock);
  sem_give(&two_places);
  barrier_wait(&everyone);
  // A token goes from tasklet to tasklet.
  if (me() > 0)
    handshake_wait_for(me() - 1);
  tokens = tokens * 3 + me();
  if (me() + 1 < NR_TASKLETS)
    handshake_notify();
  if (me() == 0)
    printf("counter %u, %s %lld %.2f\n", counter, "text", 1234567890123LL, 0.5);
  return 0;
}
