// SPDX-License-Identifier: Apache-2.0
// Transfers with MRAM at any address and of any length, and updates of parts of 8 MRAM bytes.
#pragma once

#include <mram.h>
#include <stdint.h>

/// Reads `nb_of_bytes` bytes at any address. `buffer` lies on 8 bytes and has room for 8 more; the result points at the
/// first byte inside it.
void *mram_read_unaligned(const __mram_ptr void *from, void *buffer, unsigned int nb_of_bytes);
/// Writes to any address, without changing the bytes around it.
void mram_write_unaligned(const void *from, __mram_ptr void *dest, unsigned int nb_of_bytes);
/// Lets `update_func` change one int of MRAM while no other tasklet does.
void mram_update_int_atomic(__mram_ptr void *dest, void (*update_func)(int *value, void *args), void *args);
void mram_update_byte_atomic(__mram_ptr void *dest, void (*update_func)(uint8_t *value, void *args), void *args);
void mram_write_int_atomic(__mram_ptr void *dest, int value);
void mram_write_byte_atomic(__mram_ptr void *dest, uint8_t value);
