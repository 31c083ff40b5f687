// SPDX-License-Identifier: Apache-2.0
// y = A x in float; x lies in WRAM, each tasklet takes pairs of rows.
#include "shared.h"

#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>

__host arguments_t arguments;
__host __dma_aligned float x[MAX_COLUMNS];
BARRIER_INIT(start, NR_TASKLETS);

int main(void) {
  if (me() == 0)
    mem_reset();
  barrier_wait(&start);
  uint32_t rows = arguments.rows, columns = arguments.columns;
  uint32_t matrix = (uint32_t)DPU_MRAM_HEAP_POINTER, vector = matrix + rows * columns * sizeof(float);
  float *row = mem_alloc(MAX_COLUMNS * sizeof(float)), *y = mem_alloc(2 * sizeof(float));
  for (uint32_t pair = me() * 2; pair < rows; pair += NR_TASKLETS * 2) {
    for (uint32_t k = 0; k < 2; k++) {
      mram_read((__mram_ptr void *)(matrix + (pair + k) * columns * sizeof(float)), row, columns * sizeof(float));
      float sum = 0;
      for (uint32_t i = 0; i < columns; i++)
        sum += row[i] * x[i];
      y[k] = sum;
    }
    mram_write(y, (__mram_ptr void *)(vector + pair * sizeof(float)), 2 * sizeof(float));
  }
  return 0;
}
