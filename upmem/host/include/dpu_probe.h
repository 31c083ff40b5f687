// SPDX-License-Identifier: Apache-2.0
// Time and energy of parts of a host program. Energy is modelled: power of the DPUs times their time.
#pragma once

#include <dpu_error.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum _dpu_probe_value_t { DPU_ENERGY, DPU_TIME } dpu_probe_value_t;
typedef enum _dpu_probe_mode_t { DPU_AVERAGE, DPU_ACCUMULATE } dpu_probe_mode_t;

struct dpu_probe_t {
  const char *name;
  double start_seconds, seconds, start_joules, joules;
  uint32_t count;
};

dpu_error_t dpu_probe_init(const char *name, struct dpu_probe_t *probe);
dpu_error_t dpu_probe_deinit(struct dpu_probe_t *probe);
dpu_error_t dpu_probe_start(struct dpu_probe_t *probe);
dpu_error_t dpu_probe_stop(struct dpu_probe_t *probe);
/// Joules or seconds, over all stretches or on average for each.
dpu_error_t dpu_probe_get(struct dpu_probe_t *probe, dpu_probe_value_t value, dpu_probe_mode_t mode, double *result);

#ifdef __cplusplus
}
#endif
