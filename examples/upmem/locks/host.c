// SPDX-License-Identifier: Apache-2.0
// Checks what the tasklets counted under locks.
#include "shared.h"

#include <dpu.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t fetch(struct dpu_set_t dpu, const char *name) {
  uint32_t value;
  DPU_ASSERT(dpu_copy_from(dpu, name, 0, &value, 4));
  return value;
}

int main(void) {
  struct dpu_set_t set, dpu;
  DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
  DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  int wrong = 0;
  uint32_t token = 0, n = NR_TASKLETS;
  for (uint32_t i = 0; i < n; i++)
    token = token * 3 + i;
  DPU_FOREACH(set, dpu) {
    uint32_t pooled[SLOTS], virtuals[SLOTS], sum = 0, virtualSum = 0;
    DPU_ASSERT(dpu_copy_from(dpu, "pooled", 0, pooled, sizeof pooled));
    DPU_ASSERT(dpu_copy_from(dpu, "virtual_slots", 0, virtuals, sizeof virtuals));
    for (int i = 0; i < SLOTS; i++)
      sum += pooled[i], virtualSum += virtuals[i];
    wrong += fetch(dpu, "counter") != n * ROUNDS || sum != n * ROUNDS || virtualSum != n * ROUNDS;
    wrong += fetch(dpu, "guarded") != n || fetch(dpu, "most_inside") > 2 || fetch(dpu, "tokens") != token;
  }
  DPU_ASSERT(dpu_log_read(set, stdout));
  DPU_ASSERT(dpu_free(set));
  printf("%s: %d checks failed\n", wrong ? "FAILED" : "OK", wrong);
  return wrong != 0;
}
