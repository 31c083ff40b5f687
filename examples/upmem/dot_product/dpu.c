// SPDX-License-Identifier: Apache-2.0
// The dot product of two int32 vectors in 64 bits; tasklet 0 adds up the sums of all.
#include "shared.h"

#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>

__host arguments_t arguments;
__host int64_t result;
__host uint64_t cycles;
BARRIER_INIT(start, NR_TASKLETS);
BARRIER_INIT(all_done, NR_TASKLETS);
static int64_t sums[NR_TASKLETS];

int main(void) {
  if (me() == 0) {
    mem_reset();
    perfcounter_config(COUNT_CYCLES, true);
  }
  barrier_wait(&start);
  uint32_t first = (uint32_t)DPU_MRAM_HEAP_POINTER, bytes = arguments.bytes;
  int32_t *a = mem_alloc(BLOCK_BYTES), *b = mem_alloc(BLOCK_BYTES);
  int64_t sum = 0;
  for (uint32_t at = me() * BLOCK_BYTES; at < bytes; at += NR_TASKLETS * BLOCK_BYTES) {
    uint32_t part = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
    mram_read((__mram_ptr void *)(first + at), a, part);
    mram_read((__mram_ptr void *)(first + bytes + at), b, part);
    for (uint32_t i = 0; i < part / sizeof(int32_t); i++)
      sum += (int64_t)a[i] * b[i];
  }
  sums[me()] = sum;
  barrier_wait(&all_done);
  if (me() == 0) {
    int64_t total = 0;
    for (uint32_t i = 0; i < NR_TASKLETS; i++)
      total += sums[i];
    result = total;
    cycles = perfcounter_get();
  }
  return 0;
}
