// SPDX-License-Identifier: Apache-2.0
// Atomic bits, of which locks are made.
#pragma once

#include <attributes.h>
#include <dpu_instructions.h>
#include <stdint.h>

#define ATOMIC_BIT_GET(_name) __atomic_bit_##_name
#define ATOMIC_BIT_INIT(_name) uint8_t __atomic_bit ATOMIC_BIT_GET(_name)
#define ATOMIC_BIT_EXTERN(_name) extern uint8_t ATOMIC_BIT_GET(_name)
#define __ATOMIC_BIT_ACQUIRE(_reg, _value) __nb_acquire((uint32_t)(_reg) + (_value))
#define __ATOMIC_BIT_RELEASE(_reg, _value) __nb_release((uint32_t)(_reg) + (_value))
#define ATOMIC_BIT_ACQUIRE(_name) __nb_acquire((uint32_t)&ATOMIC_BIT_GET(_name))
#define ATOMIC_BIT_RELEASE(_name) __nb_release((uint32_t)&ATOMIC_BIT_GET(_name))
