// SPDX-License-Identifier: Apache-2.0

#include "upmem/host/System.h"

#include "upmem/host/include/dpu_log.h"

using namespace nearbank::upmem;

NB_API dpu_error_t dpulog_read_for_dpu(dpu_t *one, FILE *stream) {
  Call call;
  fwrite(one->dpu.log.data(), 1, one->dpu.log.size(), stream);
  one->dpu.log.clear();
  return DPU_OK;
}

NB_API dpu_error_t dpu_log_read(dpu_set_t set, FILE *stream) {
  for (dpu_t *one : dpusOf(set)) {
    if (set.kind != DPU_SET_DPU)
      fprintf(stream, "=== DPU#0x%x ===\n", one->indexInSet);
    dpulog_read_for_dpu(one, stream);
  }
  return DPU_OK;
}
