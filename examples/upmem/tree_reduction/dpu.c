// SPDX-License-Identifier: Apache-2.0
// The sum of int64 values: tasklets add in pairs, half as many in each round.
#include "shared.h"

#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <seqread.h>

__host arguments_t arguments;
__host int64_t result;
BARRIER_INIT(start, NR_TASKLETS);
BARRIER_INIT(round_done, NR_TASKLETS);
static int64_t sums[NR_TASKLETS];

int main(void) {
  if (me() == 0)
    mem_reset();
  barrier_wait(&start);
  uint32_t values = arguments.bytes / sizeof(int64_t), share = (values + NR_TASKLETS - 1) / NR_TASKLETS;
  uint32_t begin = me() * share, end = begin + share < values ? begin + share : values;
  seqreader_t reader;
  int64_t sum = 0;
  seqreader_buffer_t buffer = seqread_alloc();
  if (begin < end) {
    int64_t *value =
        seqread_init(buffer, (__mram_ptr void *)(DPU_MRAM_HEAP_POINTER + begin * sizeof(int64_t)), &reader);
    for (uint32_t i = begin; i < end; i++) {
      sum += *value;
      value = seqread_get(value, sizeof(int64_t), &reader);
    }
  }
  sums[me()] = sum;
  for (uint32_t distance = 1; distance < NR_TASKLETS; distance *= 2) {
    barrier_wait(&round_done);
    if (me() % (2 * distance) == 0 && me() + distance < NR_TASKLETS)
      sums[me()] += sums[me() + distance];
  }
  if (me() == 0)
    result = sums[0];
  return 0;
}
