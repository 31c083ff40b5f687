// SPDX-License-Identifier: Apache-2.0
// WRAM allocators.
#pragma once

#include <buddy_alloc.h>
#include <fsb.h>
#include <stddef.h>

/// `size` bytes on 8 bytes, until mem_reset(). The DPU faults when WRAM is full.
void *mem_alloc(size_t size);
/// Gives everything back; returns where the heap begins.
void *mem_reset(void);
