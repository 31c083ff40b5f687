// SPDX-License-Identifier: Apache-2.0
// What host and DPU agree upon.
#pragma once

#include <stdint.h>

#define BLOCK_BYTES 256
#define BINS 256

typedef struct {
  uint32_t bytes; ///< Of pixels in one DPU.
  uint32_t shift; ///< From a pixel to its bin.
} arguments_t;
