// SPDX-License-Identifier: Apache-2.0
// Text goes to the log of the DPU; there are no streams.
#pragma once

#include_next <stdio.h>

#undef putchar
#undef puts
