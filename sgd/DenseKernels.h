// SPDX-License-Identifier: Apache-2.0
// Inner loops over the features of dense rows, vectorised where the processor can; every variant gives the same bits.
#pragma once

#include <cstdint>

namespace nearbank::sgd {

/// Loops of one instruction set. `x` is signed Q31, or unsigned where `isUnsigned`.
struct DenseKernels {
  /// Sum of (x[j] * w[j]) >> 31.
  int64_t (*dot)(const int32_t *x, const int32_t *w, int64_t n, bool isUnsigned);
  /// g[j] += or -= shiftAway(x[j] * c, shift); |c| <= 2^31, 31 <= shift <= 62, x signed.
  void (*addScaled)(int64_t *g, const int32_t *x, int64_t n, int64_t c, int shift, bool isMinus);
  /// Adds the same into 32 bits that wrap, x unsigned.
  void (*addScaled32)(int32_t *g, const int32_t *x, int64_t n, int64_t c, int shift);
  /// g[j] += or -= shiftAway(x[j], shift), 0 <= shift <= 31.
  void (*addShifted)(int64_t *g, const int32_t *x, int64_t n, int shift, bool isMinus);
  void (*addShifted32)(int32_t *g, const int32_t *x, int64_t n, int shift, bool isMinus);
  /// The sum of FT-1 (docs/model.md): blocks of 64 features, 8 lanes each.
  float (*dotFloat)(const float *x, const float *w, int64_t n);
  /// g[j] += x[j] * c, rounded twice.
  void (*addScaledFloat)(float *g, const float *x, int64_t n, float c);
  /// sum[j] += value[j].
  void (*addWeights)(int64_t *sum, const int32_t *value, int64_t n);
};

/// What every x86-64 processor can do.
const DenseKernels &baselineDenseKernels();
/// With AVX2; only for processors that have it.
const DenseKernels &avx2DenseKernels();
/// The best that this processor can do.
const DenseKernels &denseKernels();
bool hasAvx2();

} // namespace nearbank::sgd
