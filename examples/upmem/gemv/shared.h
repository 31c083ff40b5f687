// SPDX-License-Identifier: Apache-2.0
// What host and DPU agree upon.
#pragma once

#include <stdint.h>

#define MAX_COLUMNS 256

typedef struct {
  uint32_t rows;    ///< Of one DPU, even.
  uint32_t columns; ///< Even, at most MAX_COLUMNS.
} arguments_t;
