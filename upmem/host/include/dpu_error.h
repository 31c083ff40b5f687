// SPDX-License-Identifier: Apache-2.0
// Errors of the host library.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpu_error_t {
  DPU_OK,
  DPU_ERR_INTERNAL,
  DPU_ERR_SYSTEM,
  DPU_ERR_DRIVER,
  DPU_ERR_ALLOCATION,
  DPU_ERR_INVALID_DPU_SET,
  DPU_ERR_INVALID_THREAD_ID,
  DPU_ERR_INVALID_NOTIFY_ID,
  DPU_ERR_INVALID_WRAM_ACCESS,
  DPU_ERR_INVALID_IRAM_ACCESS,
  DPU_ERR_INVALID_MRAM_ACCESS,
  DPU_ERR_INVALID_SYMBOL_ACCESS,
  DPU_ERR_MRAM_BUSY,
  DPU_ERR_TRANSFER_ALREADY_SET,
  DPU_ERR_NO_PROGRAM_LOADED,
  DPU_ERR_DIFFERENT_DPU_PROGRAMS,
  DPU_ERR_CORRUPTED_MEMORY,
  DPU_ERR_DPU_DISABLED,
  DPU_ERR_DPU_ALREADY_RUNNING,
  DPU_ERR_INVALID_MEMORY_TRANSFER,
  DPU_ERR_INVALID_LAUNCH_POLICY,
  DPU_ERR_DPU_FAULT,
  DPU_ERR_ELF_INVALID_FILE,
  DPU_ERR_ELF_NO_SUCH_FILE,
  DPU_ERR_ELF_NO_SUCH_SECTION,
  DPU_ERR_TIMEOUT,
  DPU_ERR_INVALID_PROFILE,
  DPU_ERR_UNKNOWN_SYMBOL,
  DPU_ERR_LOG_FORMAT,
  DPU_ERR_LOG_CONTEXT_MISSING,
  DPU_ERR_LOG_BUFFER_TOO_SMALL,
  DPU_ERR_INVALID_BUFFER_SIZE,
  DPU_ERR_NONBLOCKING_SYNC_CALLBACK,
  DPU_ERR_SG_TOO_MANY_BLOCKS,
  DPU_ERR_SG_LENGTH_MISMATCH,
  DPU_ERR_SG_NOT_ACTIVATED,
  DPU_ERR_SG_NOT_MRAM_SYMBOL,
  DPU_ERR_ASYNC_JOBS,
} dpu_error_t;

/// The text of an error, which the caller frees.
char *dpu_error_to_string(dpu_error_t status);

/// Runs `statement`; on an error prints it and ends the program.
#define DPU_ASSERT(statement)                                                                                          \
  do {                                                                                                                 \
    dpu_error_t __dpu_status = (statement);                                                                            \
    if (__dpu_status != DPU_OK) {                                                                                      \
      char *__dpu_text = dpu_error_to_string(__dpu_status);                                                            \
      fprintf(stderr, "%s:%d(%s): DPU Error (%s)\n", __FILE__, __LINE__, __func__, __dpu_text);                        \
      free(__dpu_text);                                                                                                \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

/// Runs `statement`; on an error runs what follows.
#define DPU_CHECK(statement, ...)                                                                                      \
  do {                                                                                                                 \
    if ((statement) != DPU_OK) {                                                                                       \
      __VA_ARGS__;                                                                                                     \
    }                                                                                                                  \
  } while (0)

#ifdef __cplusplus
}
#endif
