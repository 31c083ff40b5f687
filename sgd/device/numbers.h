/* SPDX-License-Identifier: Apache-2.0 */
/* Number types and scalar operations of the variants of the training kernel; docs/model.md, SGD-1 to SGD-5. */
#ifndef NEARBANK_SGD_NUMBERS_H
#define NEARBANK_SGD_NUMBERS_H

#include <stdint.h>

/* What the variant is not, unless the build says that it is. */
#ifndef SGD_HINGE
#define SGD_HINGE 0
#endif
#ifndef SGD_SPARSE
#define SGD_SPARSE 0
#endif
#ifndef SGD_F32
#define SGD_F32 0
#endif
#ifndef SGD_PIMOPT
#define SGD_PIMOPT 0
#endif

#define ONE ((int64_t)1 << 31)

#if SGD_F32
typedef float value_t;
typedef float sum_t;
typedef float gradient_t;
#else
typedef int32_t value_t;
typedef int64_t sum_t;
#if SGD_PIMOPT && !SGD_SPARSE
typedef int32_t gradient_t;
#else
typedef int64_t gradient_t;
#endif
#endif

static inline int64_t shift_away(int64_t value, uint32_t shift) {
  int64_t shifted = value >> shift;
  return shifted == -1 ? 0 : shifted;
}

/* Saturation; under PIM-Opt 2^31 itself passes, and wraps where 32 bits store it. */
static inline int64_t saturated(int64_t value) {
  int64_t limit = SGD_PIMOPT ? ONE : ONE - 1;
  if (value > limit)
    return ONE - 1;
  return value < -limit ? -(ONE - 1) : value;
}

#define SIGMOID_ENTRIES 1026 /* 64 a unit, up to 16, and two more: an even number of 32-bit entries. */

/* Sigmoid of z in Q31; the table holds sigmoid - 1/2. */
static inline int64_t sigmoid_q31(const int32_t *table, int64_t z) {
  int64_t limit = ((int64_t)16 << 31) - 1;
  int64_t magnitude = z < 0 ? -z : z;
  if (magnitude > limit)
    magnitude = limit;
  uint32_t position = (uint32_t)(magnitude >> 17); /* 18 bits: entry and 8 bits between entries. */
  uint32_t index = position >> 8;
  int32_t fraction = (int32_t)(position & 255);
  int32_t value = table[index] + (((table[index + 1] - table[index]) * fraction) >> 8);
  return z < 0 ? ((int64_t)1 << 30) - value : ((int64_t)1 << 30) + value;
}

static inline float sigmoid_f32(const float *table, float z) {
  float magnitude = z < 0 ? -z : z;
  if (!(magnitude < 16.0f))
    magnitude = 16.0f;
  float scaled = magnitude * 64.0f;
  int32_t index = (int32_t)scaled;
  float value = table[index] + (scaled - (float)index) * (table[index + 1] - table[index]);
  return z < 0 ? 1.0f - value : value;
}

static inline uint32_t bits_of(float value) {
  union {
    float f;
    uint32_t u;
  } both = {.f = value};
  return both.u;
}

static inline float float_of(uint32_t bits) {
  union {
    uint32_t u;
    float f;
  } both = {.u = bits};
  return both.f;
}

/* value * 2^power for normal numbers and results; too large: the largest float; too small: nothing. */
static inline float scaled_float(float value, int32_t power) {
  uint32_t bits = bits_of(value);
  int32_t exponent = (int32_t)((bits >> 23) & 255) + power;
  if (exponent >= 255)
    return float_of(0x7f7fffffu);
  if (exponent < 1 || bits << 1 == 0)
    return 0.0f;
  return float_of(bits + ((uint32_t)power << 23));
}

#endif
