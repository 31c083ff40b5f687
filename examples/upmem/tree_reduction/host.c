// SPDX-License-Identifier: Apache-2.0
// Adds up 64-bit numbers, a part in each DPU.
#include "shared.h"

#include <dpu.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  uint32_t perDpu = argc > 1 ? strtoul(argv[1], NULL, 10) : 4000;
  struct dpu_set_t set, dpu;
  uint32_t numDpus, i;
  DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_get_nr_dpus(set, &numDpus));
  int64_t *values = malloc((size_t)perDpu * numDpus * 8), expected = 0, sum = 0;
  for (size_t k = 0; k < (size_t)perDpu * numDpus; k++) {
    values[k] = (int64_t)(k * 0x9e3779b97f4a7c15u) >> 20;
    expected += values[k];
  }
  arguments_t arguments = {perDpu * 8, 0};
  DPU_ASSERT(dpu_broadcast_to(set, "arguments", 0, &arguments, sizeof arguments, DPU_XFER_DEFAULT));
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, values + (size_t)i * perDpu)); }
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, perDpu * 8, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  int64_t *parts = malloc(numDpus * 8);
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, parts + i)); }
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "result", 0, 8, DPU_XFER_DEFAULT));
  for (i = 0; i < numDpus; i++)
    sum += parts[i];
  DPU_ASSERT(dpu_free(set));
  printf("%s: sum %lld, expected %lld\n", sum == expected ? "OK" : "FAILED", (long long)sum, (long long)expected);
  return sum != expected;
}
