// SPDX-License-Identifier: Apache-2.0
// Counts grey values of a generated image.
#include "shared.h"

#include <dpu.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  uint32_t perDpu = argc > 1 ? strtoul(argv[1], NULL, 10) & ~3u : 8192;
  struct dpu_set_t set, dpu;
  uint32_t numDpus, i;
  DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_get_nr_dpus(set, &numDpus));
  size_t total = (size_t)perDpu * numDpus;
  uint16_t *image = malloc(total * 2);
  uint32_t expected[BINS] = {0}, sums[BINS] = {0};
  for (size_t k = 0; k < total; k++) {
    image[k] = (uint16_t)((k * 2654435761u) >> 17 & 4095);
    expected[image[k] >> 4]++;
  }
  arguments_t arguments = {perDpu * 2, 4};
  DPU_ASSERT(dpu_broadcast_to(set, "arguments", 0, &arguments, sizeof arguments, DPU_XFER_DEFAULT));
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, image + (size_t)i * perDpu)); }
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, perDpu * 2, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  uint32_t (*parts)[BINS] = malloc(numDpus * sizeof *parts);
  DPU_FOREACH(set, dpu, i) { DPU_ASSERT(dpu_prepare_xfer(dpu, parts[i])); }
  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "histogram", 0, sizeof *parts, DPU_XFER_DEFAULT));
  DPU_ASSERT(dpu_free(set));
  int wrong = 0;
  for (uint32_t bin = 0; bin < BINS; bin++) {
    for (uint32_t k = 0; k < numDpus; k++)
      sums[bin] += parts[k][bin];
    wrong += sums[bin] != expected[bin];
  }
  printf("%s: %d of %d bins wrong\n", wrong ? "FAILED" : "OK", wrong, BINS);
  return wrong != 0;
}
