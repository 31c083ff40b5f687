// SPDX-License-Identifier: Apache-2.0
// Sends a part of two vectors to each DPU and adds up what comes back.
#include "shared.h"

#include <dpu.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  uint32_t perDpu = argc > 1 ? strtoul(argv[1], NULL, 10) & ~1u : 4096;
  struct dpu_set_t set, dpu;
  uint32_t numDpus, i;
  DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_get_nr_dpus(set, &numDpus));
  size_t total = (size_t)perDpu * numDpus;
  int32_t *a = malloc(total * 4), *b = malloc(total * 4);
  int64_t expected = 0;
  for (size_t k = 0; k < total; k++) {
    a[k] = (int32_t)(k * 2654435761u) >> 4;
    b[k] = (int32_t)(k * 40503u) - 100000;
    expected += (int64_t)a[k] * b[k];
  }
  arguments_t arguments = {perDpu * 4, 0};
  DPU_ASSERT(dpu_broadcast_to(set, "arguments", 0, &arguments, sizeof arguments, DPU_XFER_DEFAULT));
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, a + (size_t)i * perDpu)); }
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, perDpu * 4, DPU_XFER_DEFAULT));
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, b + (size_t)i * perDpu)); }
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, perDpu * 4, perDpu * 4, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_ASYNCHRONOUS));
  DPU_ASSERT(dpu_sync(set));
  int64_t sum = 0;
  uint64_t cycles = 0;
  DPU_FOREACH(set, dpu) {
    int64_t part;
    uint64_t took;
    DPU_ASSERT(dpu_copy_from(dpu, "result", 0, &part, sizeof part));
    DPU_ASSERT(dpu_copy_from(dpu, "cycles", 0, &took, sizeof took));
    sum += part;
    cycles = took > cycles ? took : cycles;
  }
  DPU_ASSERT(dpu_free(set));
  printf("%s: sum %lld, expected %lld, %llu cycles\n", sum == expected ? "OK" : "FAILED", (long long)sum,
         (long long)expected, (unsigned long long)cycles);
  return sum != expected;
}
