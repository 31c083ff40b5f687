// SPDX-License-Identifier: Apache-2.0
// Transfers between MRAM and WRAM: both addresses on 8 bytes, length a multiple of 8 between 8 and 2048.
#pragma once

#include <attributes.h>
#include <dpu_instructions.h>
#include <stdint.h>

extern __mram_ptr __dma_aligned uint8_t __sys_used_mram_end[];
/// First MRAM byte after the program's own variables.
#define DPU_MRAM_HEAP_POINTER ((__mram_ptr void *)(__sys_used_mram_end))

NB_ALWAYS_INLINE void mram_read(const __mram_ptr void *from, void *to, unsigned int nb_of_bytes) {
  if (__builtin_constant_p(nb_of_bytes))
    __nb_load_dma((uint32_t)to, (uint32_t)from, nb_of_bytes);
  else
    __nb_load_dma_variable((uint32_t)to, (uint32_t)from, nb_of_bytes);
}

NB_ALWAYS_INLINE void mram_write(const void *from, __mram_ptr void *to, unsigned int nb_of_bytes) {
  if (__builtin_constant_p(nb_of_bytes))
    __nb_store_dma((uint32_t)from, (uint32_t)to, nb_of_bytes);
  else
    __nb_store_dma_variable((uint32_t)from, (uint32_t)to, nb_of_bytes);
}
