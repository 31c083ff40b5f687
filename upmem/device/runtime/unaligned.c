// SPDX-License-Identifier: Apache-2.0
// MRAM at any address.
#include <atomic_bit.h>
#include <mram_unaligned.h>
#include <string.h>

ATOMIC_BIT_INIT(__nb_unaligned);

static void readPieces(uint32_t from, uint8_t *to, uint32_t bytes) {
  while (bytes > 0) {
    uint32_t piece = bytes > 2048 ? 2048 : bytes;
    mram_read((const __mram_ptr void *)from, to, piece);
    from += piece;
    to += piece;
    bytes -= piece;
  }
}

void *mram_read_unaligned(const __mram_ptr void *from, void *buffer, unsigned int nb_of_bytes) {
  uint32_t skipped = (uint32_t)from & 7;
  readPieces((uint32_t)from - skipped, buffer, (skipped + nb_of_bytes + 7) & ~7u);
  return (uint8_t *)buffer + skipped;
}

// Changes up to 8 bytes inside one aligned double word.
static void writePart(const uint8_t *from, uint32_t dest, uint32_t bytes) {
  __dma_aligned uint8_t word[8];
  __mram_ptr void *aligned = (__mram_ptr void *)(dest & ~7u);
  ATOMIC_BIT_ACQUIRE(__nb_unaligned);
  mram_read(aligned, word, 8);
  memcpy(word + (dest & 7), from, bytes);
  mram_write(word, aligned, 8);
  ATOMIC_BIT_RELEASE(__nb_unaligned);
}

void mram_write_unaligned(const void *from, __mram_ptr void *dest, unsigned int nb_of_bytes) {
  const uint8_t *source = from;
  uint32_t to = (uint32_t)dest, left = nb_of_bytes;
  while (left > 0) {
    uint32_t room = 8 - (to & 7), bytes = left < room ? left : room;
    if (bytes == 8 && ((uint32_t)source & 7) == 0) {
      bytes = left > 2048 ? 2048 : left & ~7u;
      mram_write(source, (__mram_ptr void *)to, bytes);
    } else {
      writePart(source, to, bytes);
    }
    source += bytes;
    to += bytes;
    left -= bytes;
  }
}

void mram_update_int_atomic(__mram_ptr void *dest, void (*update_func)(int *value, void *args), void *args) {
  __dma_aligned int word[2];
  __mram_ptr void *aligned = (__mram_ptr void *)((uint32_t)dest & ~7u);
  ATOMIC_BIT_ACQUIRE(__nb_unaligned);
  mram_read(aligned, word, 8);
  update_func(&word[((uint32_t)dest >> 2) & 1], args);
  mram_write(word, aligned, 8);
  ATOMIC_BIT_RELEASE(__nb_unaligned);
}

void mram_update_byte_atomic(__mram_ptr void *dest, void (*update_func)(uint8_t *value, void *args), void *args) {
  __dma_aligned uint8_t word[8];
  __mram_ptr void *aligned = (__mram_ptr void *)((uint32_t)dest & ~7u);
  ATOMIC_BIT_ACQUIRE(__nb_unaligned);
  mram_read(aligned, word, 8);
  update_func(&word[(uint32_t)dest & 7], args);
  mram_write(word, aligned, 8);
  ATOMIC_BIT_RELEASE(__nb_unaligned);
}

void mram_write_int_atomic(__mram_ptr void *dest, int value) { writePart((uint8_t *)&value, (uint32_t)dest, 4); }
void mram_write_byte_atomic(__mram_ptr void *dest, uint8_t value) { writePart(&value, (uint32_t)dest, 1); }

// What dpu-upmem-dpurte-clang calls for copies of whole structures; the last argument is the compiler's "volatile".
void __nb_copy_from_mram(void *to, const __mram_ptr void *from, size_t size, int isVolatile) {
  __dma_aligned uint8_t buffer[72];
  (void)isVolatile;
  for (size_t done = 0; done < size; done += 64) {
    size_t part = size - done < 64 ? size - done : 64;
    memcpy((uint8_t *)to + done, mram_read_unaligned((const __mram_ptr uint8_t *)from + done, buffer, part), part);
  }
}
void __nb_copy_to_mram(__mram_ptr void *to, const void *from, size_t size, int isVolatile) {
  (void)isVolatile;
  mram_write_unaligned(from, to, size);
}
void __nb_copy_in_mram(__mram_ptr void *to, const __mram_ptr void *from, size_t size, int isVolatile) {
  __dma_aligned uint8_t buffer[64];
  for (size_t done = 0; done < size; done += 64) {
    size_t part = size - done < 64 ? size - done : 64;
    __nb_copy_from_mram(buffer, (const __mram_ptr uint8_t *)from + done, part, isVolatile);
    mram_write_unaligned(buffer, (__mram_ptr uint8_t *)to + done, part);
  }
}
void __nb_set_mram(__mram_ptr void *to, uint8_t value, size_t size, int isVolatile) {
  __dma_aligned uint8_t buffer[64];
  (void)isVolatile;
  memset(buffer, value, sizeof buffer);
  for (size_t done = 0; done < size; done += 64)
    mram_write_unaligned(buffer, (__mram_ptr uint8_t *)to + done, size - done < 64 ? size - done : 64);
}
