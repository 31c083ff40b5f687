// SPDX-License-Identifier: Apache-2.0
// What DPU programs printed.
#pragma once

#include <dpu_error.h>
#include <dpu_types.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Prints the logs of all DPUs of the set.
dpu_error_t dpu_log_read(struct dpu_set_t set, FILE *stream);
/// The older name, for one DPU.
dpu_error_t dpulog_read_for_dpu(struct dpu_t *dpu, FILE *stream);

#ifdef __cplusplus
}
#endif
