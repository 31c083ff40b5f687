// SPDX-License-Identifier: Apache-2.0
// c = a + b; a, b and c lie one after the other in MRAM.
#include "shared.h"

#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>

__host arguments_t arguments;
BARRIER_INIT(start, NR_TASKLETS);

int main(void) {
  if (me() == 0)
    mem_reset();
  barrier_wait(&start);
  uint32_t first = (uint32_t)DPU_MRAM_HEAP_POINTER, bytes = arguments.bytes;
  int32_t *a = mem_alloc(BLOCK_BYTES), *b = mem_alloc(BLOCK_BYTES);
  for (uint32_t at = me() * BLOCK_BYTES; at < bytes; at += NR_TASKLETS * BLOCK_BYTES) {
    uint32_t part = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
    mram_read((__mram_ptr void *)(first + at), a, part);
    mram_read((__mram_ptr void *)(first + bytes + at), b, part);
    for (uint32_t i = 0; i < part / sizeof(int32_t); i++)
      a[i] += b[i];
    mram_write(a, (__mram_ptr void *)(first + 2 * bytes + at), part);
  }
  return 0;
}
