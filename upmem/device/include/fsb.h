// SPDX-License-Identifier: Apache-2.0
// Blocks of one size.
#pragma once

#include <stddef.h>

typedef void *fsb_allocator_t;

fsb_allocator_t fsb_alloc(size_t block_size, unsigned int nb_of_blocks);
/// A free block, or null.
void *fsb_get(fsb_allocator_t allocator);
void fsb_free(fsb_allocator_t allocator, void *ptr);
