// SPDX-License-Identifier: Apache-2.0
// The portable loops, and the choice between them and those for AVX2.
#include "sgd/DenseKernels.h"

#include "sgd/FixedPoint.h"

namespace nearbank::sgd {

namespace {

int64_t valueOf(int32_t x, bool isUnsigned) { return isUnsigned ? int64_t(uint32_t(x)) : int64_t(x); }

int64_t dot(const int32_t *x, const int32_t *w, int64_t n, bool isUnsigned) {
  int64_t sum = 0;
  for (int64_t j = 0; j < n; ++j)
    sum += (valueOf(x[j], isUnsigned) * int64_t(w[j])) >> 31;
  return sum;
}

void addScaled(int64_t *g, const int32_t *x, int64_t n, int64_t c, int shift, bool isMinus) {
  for (int64_t j = 0; j < n; ++j) {
    int64_t step = shiftAway(int64_t(x[j]) * c, shift);
    g[j] += isMinus ? -step : step;
  }
}

void addScaled32(int32_t *g, const int32_t *x, int64_t n, int64_t c, int shift) {
  for (int64_t j = 0; j < n; ++j) {
    int32_t step = static_cast<int32_t>((valueOf(x[j], true) * c) >> shift);
    if (step != -1)
      g[j] = static_cast<int32_t>(uint32_t(g[j]) + uint32_t(step));
  }
}

void addShifted(int64_t *g, const int32_t *x, int64_t n, int shift, bool isMinus) {
  for (int64_t j = 0; j < n; ++j) {
    int64_t step = shiftAway(x[j], shift);
    g[j] += isMinus ? -step : step;
  }
}

void addShifted32(int32_t *g, const int32_t *x, int64_t n, int shift, bool isMinus) {
  for (int64_t j = 0; j < n; ++j) {
    uint32_t step = static_cast<uint32_t>(shiftAway(x[j], shift));
    g[j] = static_cast<int32_t>(uint32_t(g[j]) + (isMinus ? 0u - step : step));
  }
}

float dotFloat(const float *x, const float *w, int64_t n) {
  float sum = 0;
  for (int64_t base = 0; base < n; base += 64) {
    float lanes[8] = {};
    for (int64_t k = 0; k < 8; ++k)
      for (int64_t lane = 0; lane < 8; ++lane) {
        int64_t j = base + 8 * k + lane;
        lanes[lane] = lanes[lane] + (j < n ? x[j] * w[j] : 0.0f);
      }
    sum += ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  }
  return sum;
}

void addScaledFloat(float *g, const float *x, int64_t n, float c) {
  for (int64_t j = 0; j < n; ++j)
    g[j] += x[j] * c;
}

void addWeights(int64_t *sum, const int32_t *value, int64_t n) {
  for (int64_t j = 0; j < n; ++j)
    sum[j] += value[j];
}

} // namespace

const DenseKernels &baselineDenseKernels() {
  static const DenseKernels kernels = {dot,          addScaled, addScaled32,    addShifted,
                                       addShifted32, dotFloat,  addScaledFloat, addWeights};
  return kernels;
}

bool hasAvx2() { return __builtin_cpu_supports("avx2"); }

const DenseKernels &denseKernels() {
  static const DenseKernels &kernels = hasAvx2() ? avx2DenseKernels() : baselineDenseKernels();
  return kernels;
}

} // namespace nearbank::sgd
