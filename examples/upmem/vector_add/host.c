// SPDX-License-Identifier: Apache-2.0
// Adds two vectors on all DPUs and compares with the host.
#define _GNU_SOURCE
#include "shared.h"

#include <dpu.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static double seconds(void) {
  struct timeval now;
  gettimeofday(&now, NULL);
  return now.tv_sec + now.tv_usec * 1e-6;
}

int main(int argc, char **argv) {
  uint32_t perDpu = argc > 1 ? strtoul(argv[1], NULL, 10) & ~1u : 8192;
  struct dpu_set_t set, dpu;
  uint32_t numDpus, i;
  DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_get_nr_dpus(set, &numDpus));
  size_t total = (size_t)perDpu * numDpus;
  int32_t *a = malloc(total * 4), *b = malloc(total * 4), *c = calloc(total, 4);
  if (!a || !b || !c) {
    fprintf(stderr, "no memory for %zu elements\n", total);
    return 1;
  }
  for (size_t k = 0; k < total; k++) {
    a[k] = (int32_t)(k * 2654435761u);
    b[k] = (int32_t)(k ^ 0x5bd1e995);
  }
  arguments_t arguments = {perDpu * 4, 0};
  DPU_ASSERT(dpu_broadcast_to(set, "arguments", 0, &arguments, sizeof arguments, DPU_XFER_DEFAULT));
  double begin = seconds();
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, a + (size_t)i * perDpu)); }
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, perDpu * 4, DPU_XFER_DEFAULT));
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, b + (size_t)i * perDpu)); }
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, perDpu * 4, perDpu * 4, DPU_XFER_DEFAULT));
  double loaded = seconds();
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  double computed = seconds();
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, c + (size_t)i * perDpu)); }
  DPU_ASSERT(
      dpu_push_xfer(set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME, perDpu * 8, perDpu * 4, DPU_XFER_DEFAULT));
  double end = seconds();
  printf("to DPUs %.3f ms, kernel %.3f ms, from DPUs %.3f ms\n", (loaded - begin) * 1e3, (computed - loaded) * 1e3,
         (end - computed) * 1e3);
  size_t wrong = 0;
  for (size_t k = 0; k < total; k++)
    wrong += c[k] != (int32_t)((uint32_t)a[k] + (uint32_t)b[k]);
  DPU_ASSERT(dpu_free(set));
  printf("%s: %zu of %zu elements wrong\n", wrong ? "FAILED" : "OK", wrong, total);
  return wrong != 0;
}
