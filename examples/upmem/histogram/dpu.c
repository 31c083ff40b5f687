// SPDX-License-Identifier: Apache-2.0
// One histogram for each tasklet in WRAM, added up at the end.
#include "shared.h"

#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <string.h>

__host arguments_t arguments;
__mram_noinit uint32_t histogram[BINS];
BARRIER_INIT(start, NR_TASKLETS);
BARRIER_INIT(counted, NR_TASKLETS);
static uint32_t *counts_of[NR_TASKLETS];
static __dma_aligned uint32_t sums[BINS];
BARRIER_INIT(added, NR_TASKLETS);

int main(void) {
  if (me() == 0)
    mem_reset();
  barrier_wait(&start);
  uint32_t *counts = mem_alloc(BINS * sizeof(uint32_t));
  uint16_t *pixels = mem_alloc(BLOCK_BYTES);
  memset(counts, 0, BINS * sizeof(uint32_t));
  counts_of[me()] = counts;
  uint32_t first = (uint32_t)DPU_MRAM_HEAP_POINTER, bytes = arguments.bytes, shift = arguments.shift;
  for (uint32_t at = me() * BLOCK_BYTES; at < bytes; at += NR_TASKLETS * BLOCK_BYTES) {
    uint32_t part = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
    mram_read((__mram_ptr void *)(first + at), pixels, part);
    for (uint32_t i = 0; i < part / sizeof(uint16_t); i++)
      counts[pixels[i] >> shift]++;
  }
  barrier_wait(&counted);
  for (uint32_t bin = me(); bin < BINS; bin += NR_TASKLETS) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < NR_TASKLETS; i++)
      sum += counts_of[i][bin];
    sums[bin] = sum;
  }
  barrier_wait(&added);
  if (me() == 0)
    mram_write(sums, histogram, sizeof sums);
  return 0;
}
