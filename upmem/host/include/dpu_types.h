// SPDX-License-Identifier: Apache-2.0
// Types of the host library.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dpu_rank_t;
struct dpu_t;

typedef enum _dpu_set_kind_t { DPU_SET_RANKS, DPU_SET_DPU } dpu_set_kind_t;

/// DPUs by rank, or one DPU.
struct dpu_set_t {
  dpu_set_kind_t kind;
  union {
    struct {
      uint32_t nr_ranks;
      struct dpu_rank_t **ranks;
    } list;
    struct dpu_t *dpu;
  };
};

struct dpu_program_t;

struct dpu_symbol_t {
  uint32_t address;
  uint32_t size;
};

struct dpu_incbin_t {
  uint8_t *buffer;
  size_t size;
  const char *path;
};

typedef enum _dpu_launch_policy_t { DPU_ASYNCHRONOUS, DPU_SYNCHRONOUS } dpu_launch_policy_t;
typedef enum _dpu_xfer_t { DPU_XFER_TO_DPU, DPU_XFER_FROM_DPU } dpu_xfer_t;
typedef enum _dpu_xfer_flags_t {
  DPU_XFER_DEFAULT = 0,
  DPU_XFER_NO_RESET = 1 << 0,
  DPU_XFER_ASYNC = 1 << 1,
  DPU_XFER_PARALLEL = 1 << 2,
} dpu_xfer_flags_t;
typedef enum _dpu_sg_xfer_flags_t {
  DPU_SG_XFER_DEFAULT = 0,
  DPU_SG_XFER_ASYNC = 1 << 1,
  /// Blocks may be less than the length; the rest of MRAM is zeroed.
  DPU_SG_XFER_DISABLE_LENGTH_CHECK = 1 << 2,
} dpu_sg_xfer_flags_t;
typedef enum _dpu_callback_flags_t {
  DPU_CALLBACK_DEFAULT = 0,
  DPU_CALLBACK_ASYNC = 1 << 0,
  DPU_CALLBACK_NONBLOCKING = 1 << 1,
  DPU_CALLBACK_SINGLE_CALL = 1 << 2,
} dpu_callback_flags_t;

/// One block of a scatter-gather transfer.
struct sg_block_info {
  uint8_t *addr;
  uint32_t length;
};
/// Fills `out` with block `block_index` of DPU `dpu_index`; false when there is none.
typedef bool (*get_block_func_t)(struct sg_block_info *out, uint32_t dpu_index, uint32_t block_index, void *args);
typedef struct get_block_t {
  get_block_func_t f;
  void *args;
  size_t args_size;
} get_block_t;

#ifdef __cplusplus
}
#endif
