// SPDX-License-Identifier: Apache-2.0
// Basic types of the DPU runtime.
#pragma once

#include <stdint.h>

/// Number of a tasklet.
typedef unsigned int sysname_t;
typedef uint8_t thread_id_t;
#define NB_MAX_TASKLETS 24
