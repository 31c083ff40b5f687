// SPDX-License-Identifier: Apache-2.0
// Mutual exclusion.
#pragma once

#include <atomic_bit.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint8_t *mutex_id_t;

#define MUTEX_GET(_name) _name
#define MUTEX_INIT(_name)                                                                                              \
  ATOMIC_BIT_INIT(__MUTEX_##_name);                                                                                    \
  const mutex_id_t MUTEX_GET(_name) = &ATOMIC_BIT_GET(__MUTEX_##_name);

NB_ALWAYS_INLINE void mutex_lock(mutex_id_t mutex) { __nb_acquire((uint32_t)mutex); }
NB_ALWAYS_INLINE bool mutex_trylock(mutex_id_t mutex) { return __nb_try_acquire((uint32_t)mutex) == 0; }
NB_ALWAYS_INLINE void mutex_unlock(mutex_id_t mutex) { __nb_release((uint32_t)mutex); }
