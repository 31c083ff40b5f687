// SPDX-License-Identifier: Apache-2.0
// Virtual mutexes: one bit of WRAM each, guarded by few atomic bits.
#pragma once

#include <mutex_pool.h>

struct vmutex {
  uint8_t *bits;
  uint16_t nb_vmutexes;
  struct mutex_pool *pool;
};

#define VMUTEX_INIT(NAME, NB_VMUTEXES, NB_HW_MUTEXES)                                                                  \
  _Static_assert(((NB_VMUTEXES) & 7) == 0, "the number of virtual mutexes is a multiple of 8");                        \
  MUTEX_POOL_INIT(__VMUTEX_##NAME, NB_HW_MUTEXES)                                                                      \
  uint8_t __vmutex_bits_##NAME[(NB_VMUTEXES) >> 3];                                                                    \
  struct vmutex NAME = {.bits = __vmutex_bits_##NAME, .nb_vmutexes = NB_VMUTEXES, .pool = &__VMUTEX_##NAME};

/// Tries once.
NB_ALWAYS_INLINE bool vmutex_trylock(struct vmutex *vmutex, uint16_t id) {
  uint16_t group = id >> 3;
  uint8_t bit = 1u << (id & 7);
  mutex_pool_lock(vmutex->pool, group);
  volatile uint8_t *byte = vmutex->bits + group;
  bool isFree = (*byte & bit) == 0;
  if (isFree)
    *byte |= bit;
  mutex_pool_unlock(vmutex->pool, group);
  return isFree;
}
NB_ALWAYS_INLINE void vmutex_lock(struct vmutex *vmutex, uint16_t id) {
  while (!vmutex_trylock(vmutex, id)) {
  }
}
NB_ALWAYS_INLINE void vmutex_unlock(struct vmutex *vmutex, uint16_t id) {
  uint16_t group = id >> 3;
  mutex_pool_lock(vmutex->pool, group);
  volatile uint8_t *byte = vmutex->bits + group;
  *byte &= ~(1u << (id & 7));
  mutex_pool_unlock(vmutex->pool, group);
}
