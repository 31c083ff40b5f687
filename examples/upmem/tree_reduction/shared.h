// SPDX-License-Identifier: Apache-2.0
// What host and DPU agree upon.
#pragma once

#include <stdint.h>

#define BLOCK_BYTES 512

typedef struct {
  uint32_t bytes; ///< Of each vector in one DPU.
  uint32_t unused;
} arguments_t;
