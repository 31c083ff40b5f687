// SPDX-License-Identifier: Apache-2.0
// The loops for AVX2. Products of 32 by 32 bits come two halves at a time: even elements, then odd ones.
#include "sgd/DenseKernels.h"

#include "sgd/FixedPoint.h"

#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2")

namespace nearbank::sgd {

namespace {

__m256i load(const void *from) { return _mm256_loadu_si256(static_cast<const __m256i *>(from)); }
void store(void *to, __m256i value) { _mm256_storeu_si256(static_cast<__m256i *>(to), value); }

/// x with the sign turned where values are unsigned: 2^31 has no 32-bit form, -2^31 has.
__m256i turned(__m256i x, bool isUnsigned) { return isUnsigned ? _mm256_sub_epi32(_mm256_setzero_si256(), x) : x; }

/// Products shifted to the right, rounded down. |product| <= 2^62: a bias makes a logical shift do.
struct Shifter {
  __m256i bias, back;
  __m128i count;

  explicit Shifter(int shift)
      : bias(_mm256_set1_epi64x(int64_t(1) << 62)), back(_mm256_set1_epi64x((int64_t(1) << 62) >> shift)),
        count(_mm_cvtsi32_si128(shift)) {}
  __m256i operator()(__m256i product, bool isNegated) const {
    __m256i biased = isNegated ? _mm256_sub_epi64(bias, product) : _mm256_add_epi64(bias, product);
    return _mm256_sub_epi64(_mm256_srl_epi64(biased, count), back);
  }
};

int64_t sumOf(__m256i value) {
  alignas(32) int64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i *>(lanes), value);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

int64_t dot(const int32_t *x, const int32_t *w, int64_t n, bool isUnsigned) {
  __m256i sum = _mm256_setzero_si256();
  __m256i bias = _mm256_set1_epi64x(int64_t(1) << 62);
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    __m256i xs = turned(load(x + j), isUnsigned), ws = load(w + j);
    __m256i even = _mm256_mul_epi32(xs, ws);
    __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(xs, 32), _mm256_srli_epi64(ws, 32));
    even = isUnsigned ? _mm256_sub_epi64(bias, even) : _mm256_add_epi64(bias, even);
    odd = isUnsigned ? _mm256_sub_epi64(bias, odd) : _mm256_add_epi64(bias, odd);
    sum = _mm256_add_epi64(sum, _mm256_add_epi64(_mm256_srli_epi64(even, 31), _mm256_srli_epi64(odd, 31)));
  }
  int64_t rest = j < n ? baselineDenseKernels().dot(x + j, w + j, n - j, isUnsigned) : 0;
  return sumOf(sum) - j * (int64_t(1) << 31) + rest;
}

/// Factor of 32 bits and whether the product with it has the wrong sign.
struct Factor {
  __m256i value;
  bool isNegated;

  Factor(int64_t c, bool isUnsigned) {
    bool isTurned = c == kOne;
    value = _mm256_set1_epi32(static_cast<int32_t>(isTurned ? -c : c));
    isNegated = isTurned != isUnsigned;
  }
};

__m256i dropMinusOne(__m256i value) {
  return _mm256_sub_epi64(value, _mm256_cmpeq_epi64(value, _mm256_set1_epi64x(-1)));
}

void addOrSubtract(int64_t *g, __m256i step, bool isMinus) {
  store(g, isMinus ? _mm256_sub_epi64(load(g), step) : _mm256_add_epi64(load(g), step));
}

void addScaled(int64_t *g, const int32_t *x, int64_t n, int64_t c, int shift, bool isMinus) {
  Shifter shifted(shift);
  Factor factor(c, false);
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    __m256i xs = load(x + j);
    __m256i even = dropMinusOne(shifted(_mm256_mul_epi32(xs, factor.value), factor.isNegated));
    __m256i odd = dropMinusOne(shifted(_mm256_mul_epi32(_mm256_srli_epi64(xs, 32), factor.value), factor.isNegated));
    __m256i low = _mm256_unpacklo_epi64(even, odd), high = _mm256_unpackhi_epi64(even, odd);
    addOrSubtract(g + j, _mm256_permute2x128_si256(low, high, 0x20), isMinus);
    addOrSubtract(g + j + 4, _mm256_permute2x128_si256(low, high, 0x31), isMinus);
  }
  if (j < n)
    baselineDenseKernels().addScaled(g + j, x + j, n - j, c, shift, isMinus);
}

void addScaled32(int32_t *g, const int32_t *x, int64_t n, int64_t c, int shift) {
  Shifter shifted(shift);
  Factor factor(c, true);
  __m256i minusOne = _mm256_set1_epi32(-1);
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    __m256i xs = turned(load(x + j), true);
    __m256i even = shifted(_mm256_mul_epi32(xs, factor.value), factor.isNegated);
    __m256i odd = shifted(_mm256_mul_epi32(_mm256_srli_epi64(xs, 32), factor.value), factor.isNegated);
    __m256i step = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    step = _mm256_sub_epi32(step, _mm256_cmpeq_epi32(step, minusOne));
    store(g + j, _mm256_add_epi32(load(g + j), step));
  }
  if (j < n)
    baselineDenseKernels().addScaled32(g + j, x + j, n - j, c, shift);
}

/// shiftAway() of eight elements.
__m256i shiftedAway(__m256i value, __m128i count) {
  __m256i shifted = _mm256_sra_epi32(value, count);
  return _mm256_sub_epi32(shifted, _mm256_cmpeq_epi32(shifted, _mm256_set1_epi32(-1)));
}

void addShifted(int64_t *g, const int32_t *x, int64_t n, int shift, bool isMinus) {
  __m128i count = _mm_cvtsi32_si128(shift);
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    __m256i step = shiftedAway(load(x + j), count);
    __m256i low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(step));
    __m256i high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(step, 1));
    addOrSubtract(g + j, low, isMinus);
    addOrSubtract(g + j + 4, high, isMinus);
  }
  if (j < n)
    baselineDenseKernels().addShifted(g + j, x + j, n - j, shift, isMinus);
}

void addShifted32(int32_t *g, const int32_t *x, int64_t n, int shift, bool isMinus) {
  __m128i count = _mm_cvtsi32_si128(shift);
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    __m256i step = shiftedAway(load(x + j), count);
    store(g + j, isMinus ? _mm256_sub_epi32(load(g + j), step) : _mm256_add_epi32(load(g + j), step));
  }
  if (j < n)
    baselineDenseKernels().addShifted32(g + j, x + j, n - j, shift, isMinus);
}

float dotFloat(const float *x, const float *w, int64_t n) {
  float sum = 0;
  int64_t base = 0;
  for (; base + 64 <= n; base += 64) {
    __m256 lanes = _mm256_setzero_ps();
    for (int k = 0; k < 8; ++k)
      lanes = _mm256_add_ps(lanes, _mm256_mul_ps(_mm256_loadu_ps(x + base + 8 * k), _mm256_loadu_ps(w + base + 8 * k)));
    __m128 fours = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    __m128 pairs = _mm_add_ps(fours, _mm_movehl_ps(fours, fours));
    sum += _mm_cvtss_f32(_mm_add_ss(pairs, _mm_shuffle_ps(pairs, pairs, 1)));
  }
  return base < n ? sum + baselineDenseKernels().dotFloat(x + base, w + base, n - base) : sum;
}

void addScaledFloat(float *g, const float *x, int64_t n, float c) {
  __m256 factor = _mm256_set1_ps(c);
  int64_t j = 0;
  for (; j + 8 <= n; j += 8)
    _mm256_storeu_ps(g + j, _mm256_add_ps(_mm256_loadu_ps(g + j), _mm256_mul_ps(_mm256_loadu_ps(x + j), factor)));
  if (j < n)
    baselineDenseKernels().addScaledFloat(g + j, x + j, n - j, c);
}

void addWeights(int64_t *sum, const int32_t *value, int64_t n) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    __m256i wide = _mm256_cvtepi32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i *>(value + j)));
    store(sum + j, _mm256_add_epi64(load(sum + j), wide));
  }
  if (j < n)
    baselineDenseKernels().addWeights(sum + j, value + j, n - j);
}

} // namespace

const DenseKernels &avx2DenseKernels() {
  static const DenseKernels kernels = {dot,          addScaled, addScaled32,    addShifted,
                                       addShifted32, dotFloat,  addScaledFloat, addWeights};
  return kernels;
}

} // namespace nearbank::sgd

#pragma GCC pop_options
