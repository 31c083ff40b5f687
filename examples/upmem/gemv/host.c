// SPDX-License-Identifier: Apache-2.0
// Multiplies a matrix with a vector; floats on a DPU are software, and give the same bits.
#include "shared.h"

#include <dpu.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  uint32_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) & ~1u : 32, columns = 64;
  struct dpu_set_t set, dpu;
  uint32_t numDpus, i;
  DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_get_nr_dpus(set, &numDpus));
  size_t total = (size_t)rows * numDpus;
  float *matrix = malloc(total * columns * sizeof(float)), *y = malloc(total * sizeof(float)), x[MAX_COLUMNS] = {0};
  for (size_t k = 0; k < total * columns; k++)
    matrix[k] = (float)((int32_t)(k * 2654435761u) >> 8) / 65536.0f;
  for (uint32_t k = 0; k < columns; k++)
    x[k] = 1.0f / (float)(k + 1);
  arguments_t arguments = {rows, columns};
  DPU_ASSERT(dpu_broadcast_to(set, "arguments", 0, &arguments, sizeof arguments, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_broadcast_to(set, "x", 0, x, sizeof x, DPU_XFER_DEFAULT));
  size_t bytes = (size_t)rows * columns * sizeof(float);
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, matrix + (size_t)i * rows * columns)); }
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, bytes, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, y + (size_t)i * rows)); }
  DPU_ASSERT(
      dpu_push_xfer(set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME, bytes, rows * sizeof(float), DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_free(set));
  size_t wrong = 0;
  for (size_t r = 0; r < total; r++) {
    volatile float sum = 0; // In the order of the DPU, without fused multiply-add.
    for (uint32_t k = 0; k < columns; k++) {
      volatile float product = matrix[r * columns + k] * x[k];
      sum += product;
    }
    wrong += sum != y[r];
  }
  printf("%s: %zu of %zu rows wrong\n", wrong ? "FAILED" : "OK", wrong, total);
  return wrong != 0;
}
