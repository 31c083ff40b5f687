/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a DPU program's source on the host, tasklets as threads: a check of its function, without any timing. */
#ifndef NEARBANK_SGD_NATIVE_DEFS_H
#define NEARBANK_SGD_NATIVE_DEFS_H

#include <stdint.h>

#define __host
#define __mram_ptr
#define __dma_aligned __attribute__((aligned(8)))

uint32_t sgd_native_tasklet(void);
void *sgd_native_heap(void);

#define DPU_MRAM_HEAP_POINTER sgd_native_heap()

static inline uint32_t me(void) { return sgd_native_tasklet(); }

#endif
