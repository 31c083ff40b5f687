// SPDX-License-Identifier: Apache-2.0
// Many mutexes on few atomic bits: mutex i shares the bit of i modulo the pool's size.
#pragma once

#include <mutex.h>

struct mutex_pool {
  uint8_t nb_hw_mutexes;
  mutex_id_t hw_mutexes;
};

#define MUTEX_POOL_INIT(NAME, NB_MUTEXES)                                                                              \
  _Static_assert(((NB_MUTEXES) & ((NB_MUTEXES) - 1)) == 0, "the size of a mutex pool is a power of two");              \
  ATOMIC_BIT_INIT(__MUTEX_POOL_##NAME)[NB_MUTEXES];                                                                    \
  struct mutex_pool NAME = {.nb_hw_mutexes = NB_MUTEXES, .hw_mutexes = ATOMIC_BIT_GET(__MUTEX_POOL_##NAME)};

NB_ALWAYS_INLINE mutex_id_t __mutex_pool_bit(const struct mutex_pool *pool, uint16_t id) {
  return pool->hw_mutexes + (id & (pool->nb_hw_mutexes - 1));
}
NB_ALWAYS_INLINE void mutex_pool_lock(struct mutex_pool *pool, uint16_t id) { mutex_lock(__mutex_pool_bit(pool, id)); }
NB_ALWAYS_INLINE bool mutex_pool_trylock(struct mutex_pool *pool, uint16_t id) {
  return mutex_trylock(__mutex_pool_bit(pool, id));
}
NB_ALWAYS_INLINE void mutex_pool_unlock(struct mutex_pool *pool, uint16_t id) {
  mutex_unlock(__mutex_pool_bit(pool, id));
}
