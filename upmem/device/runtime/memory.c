// SPDX-License-Identifier: Apache-2.0
// memset, memcpy and memmove in the steps of the SDK's: bytes up to a word, words, bytes. The C library's go byte by
// byte.

#include <stddef.h>
#include <stdint.h>

static size_t bytesToWord(uintptr_t address, size_t size) {
  size_t bytes = -address & 3;
  return bytes < size ? bytes : size;
}

void *memset(void *target, int value, size_t size) {
  uint8_t *bytes = target;
  size_t head = bytesToWord((uintptr_t)bytes, size);
  for (size_t i = 0; i < head; ++i)
    bytes[i] = (uint8_t)value;
  uint32_t word = (uint8_t)value;
  word |= word << 8;
  word |= word << 16;
  uint32_t *body = (uint32_t *)(bytes + head);
  size_t words = (size - head) / 4;
  for (size_t i = 0; i < words; ++i)
    body[i] = word;
  for (size_t i = head + 4 * words; i < size; ++i)
    bytes[i] = (uint8_t)value;
  return target;
}

void *memcpy(void *restrict target, const void *restrict source, size_t size) {
  uint8_t *to = target;
  const uint8_t *from = source;
  size_t done = 0;
  if ((((uintptr_t)to ^ (uintptr_t)from) & 3) == 0) {
    size_t head = bytesToWord((uintptr_t)to, size);
    for (size_t i = 0; i < head; ++i)
      to[i] = from[i];
    uint32_t *body = (uint32_t *)(to + head);
    const uint32_t *bodyFrom = (const uint32_t *)(from + head);
    size_t words = (size - head) / 4;
    for (size_t i = 0; i < words; ++i)
      body[i] = bodyFrom[i];
    done = head + 4 * words;
  }
  for (size_t i = done; i < size; ++i)
    to[i] = from[i];
  return target;
}

void *memmove(void *target, const void *source, size_t size) {
  uint8_t *to = target;
  const uint8_t *from = source;
  if (to <= from || to >= from + size)
    return memcpy(target, source, size);
  while (size-- > 0)
    to[size] = from[size];
  return target;
}
