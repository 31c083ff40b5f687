// SPDX-License-Identifier: Apache-2.0
// Blocks of powers of two out of one piece of heap.
#pragma once

#include <stddef.h>

/// Reserves the heap; `size_of_heap` is a power of two up to 32768.
void buddy_init(size_t size_of_heap);
void buddy_reset(void);
/// Null and errno ENOMEM when no block is free.
void *buddy_alloc(size_t size);
void buddy_free(void *pointer);
void *buddy_realloc(void *ptr, size_t size);
