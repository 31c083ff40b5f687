/* SPDX-License-Identifier: Apache-2.0 */
/* MRAM as host memory; refuses what the hardware does not do. */
#ifndef NEARBANK_SGD_NATIVE_MRAM_H
#define NEARBANK_SGD_NATIVE_MRAM_H

#include "defs.h"

void mram_read(const void *from, void *to, uint32_t bytes);
void mram_write(const void *from, void *to, uint32_t bytes);

#endif
