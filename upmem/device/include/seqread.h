// SPDX-License-Identifier: Apache-2.0
// Reads MRAM from front to back through a small WRAM cache of two pages.
#pragma once

#include <mram.h>
#include <stdint.h>

#ifndef SEQREAD_CACHE_SIZE
#define SEQREAD_CACHE_SIZE 256
#endif
#define PAGE_SIZE SEQREAD_CACHE_SIZE
_Static_assert((SEQREAD_CACHE_SIZE & (SEQREAD_CACHE_SIZE - 1)) == 0 && SEQREAD_CACHE_SIZE >= 32 &&
                   SEQREAD_CACHE_SIZE <= 1024,
               "SEQREAD_CACHE_SIZE is a power of two between 32 and 1024");

typedef uint32_t seqreader_buffer_t;
typedef struct {
  seqreader_buffer_t wram_cache;
  uint32_t mram_addr; ///< Address of the first byte in the cache.
} seqreader_t;

void *__nb_seqread_alloc(unsigned int size);

/// A cache for one reader.
NB_ALWAYS_INLINE seqreader_buffer_t seqread_alloc(void) {
  return (seqreader_buffer_t)__nb_seqread_alloc(SEQREAD_CACHE_SIZE);
}
/// Moves to `mram_addr` and returns where its byte lies in WRAM.
NB_ALWAYS_INLINE void *seqread_seek(__mram_ptr void *mram_addr, seqreader_t *reader) {
  uint32_t first = (uint32_t)mram_addr & ~(uint32_t)(SEQREAD_CACHE_SIZE - 1);
  reader->mram_addr = first;
  mram_read((const __mram_ptr void *)first, (void *)reader->wram_cache, 2 * SEQREAD_CACHE_SIZE);
  return (void *)(reader->wram_cache + ((uint32_t)mram_addr - first));
}
NB_ALWAYS_INLINE void *seqread_init(seqreader_buffer_t cache, __mram_ptr void *mram_addr, seqreader_t *reader) {
  reader->wram_cache = cache;
  return seqread_seek(mram_addr, reader);
}
/// Goes on by `inc` bytes, at most one page.
NB_ALWAYS_INLINE void *seqread_get(void *ptr, uint32_t inc, seqreader_t *reader) {
  uint32_t next = (uint32_t)ptr + inc;
  if (__builtin_expect(next - reader->wram_cache >= SEQREAD_CACHE_SIZE, 0)) {
    reader->mram_addr += SEQREAD_CACHE_SIZE;
    mram_read((const __mram_ptr void *)reader->mram_addr, (void *)reader->wram_cache, 2 * SEQREAD_CACHE_SIZE);
    next -= SEQREAD_CACHE_SIZE;
  }
  return (void *)next;
}
/// MRAM address of a byte in the cache.
NB_ALWAYS_INLINE __mram_ptr void *seqread_tell(void *ptr, seqreader_t *reader) {
  return (__mram_ptr void *)((uint32_t)ptr - reader->wram_cache + reader->mram_addr);
}
