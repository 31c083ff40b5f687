// SPDX-License-Identifier: Apache-2.0
// The local solver in float32. Every operation is rounded once: compiled without contraction.
#include "sgd/LocalSolver.h"
#include "sgd/Sigmoid.h"

namespace nearbank::sgd {

template <> void LocalSolver<F32>::setDivisor(int64_t samples);

template <>
LocalSolver<F32>::LocalSolver(const Settings &settings, int64_t features, bool isSparse)
    : settings_(settings), features_(features), isSparse_(isSparse), decayRate_(settings.rate * settings.l2),
      wide_(features) {
  if (isSparse)
    isTouched_.resize(features);
  setDivisor(settings.batch);
}

template <> void LocalSolver<F32>::setDivisor(int64_t samples) {
  divisor_ = samples;
  stepRate_ = settings_.rate / static_cast<float>(samples);
}

template <> void LocalSolver<F32>::addGradient(const Rows &rows, const float *weights, float bias) {
  const float *table = SigmoidTable::shared().f32.data();
  for (int64_t row = 0; row < rows.count; ++row) {
    float z = 0;
    int64_t begin = 0, end = 0;
    if (!isSparse_) {
      z = kernels_.dotFloat(rows.denseFloat + row * features_, weights, features_);
    } else {
      begin = rows.offsets[row];
      end = rows.offsets[row + 1];
      for (int64_t k = begin; k < end; ++k) {
        float weight = weights[rows.indices[k]];
        z += rows.valuesFloat ? rows.valuesFloat[k] * weight : weight;
      }
    }
    z += bias;
    bool isPositive = rows.labels[row] == 1;
    float coefficient;
    if (settings_.loss == Loss::Hinge) {
      if ((isPositive ? z : -z) >= 1.0f)
        continue;
      coefficient = isPositive ? -1.0f : 1.0f;
    } else {
      coefficient = sigmoidF32(table, z) - (isPositive ? 1.0f : 0.0f);
    }
    coefficient *= settings_.floatClassWeights[isPositive];
    biasGradient_ += coefficient;
    if (!isSparse_) {
      kernels_.addScaledFloat(wide_.data(), rows.denseFloat + row * features_, features_, coefficient);
      continue;
    }
    for (int64_t k = begin; k < end; ++k) {
      uint32_t j = rows.indices[k];
      touch(j);
      wide_[j] += rows.valuesFloat ? rows.valuesFloat[k] * coefficient : coefficient;
    }
  }
}

template <> float LocalSolver<F32>::stepped(int64_t j, float weight) const {
  return weight - (wide_[j] * stepRate_ + weight * decayRate_);
}

template <> float LocalSolver<F32>::steppedBias(float bias, float gradient) const {
  return bias - gradient * stepRate_;
}

template <>
void LocalSolver<F32>::stepWith(const float *gradient, float biasGradient, float *weights, float &bias) const {
  for (int64_t j = 0; j < features_; ++j)
    weights[j] = weights[j] - (gradient[j] * stepRate_ + weights[j] * decayRate_);
  bias = steppedBias(bias, biasGradient);
}

template <> void LocalSolver<F32>::decay(const float *weights, float *decayed) const {
  for (int64_t j = 0; j < features_; ++j)
    decayed[j] = weights[j] - (0.0f + weights[j] * decayRate_);
}

template <> void LocalSolver<F32>::step(float *weights, float &bias, const float *pull) {
  for (int64_t j = 0; j < features_; ++j) {
    float pulled = pull ? weights[j] + pull[j] : weights[j];
    weights[j] = weights[j] - (wide_[j] * stepRate_ + pulled * decayRate_);
  }
  bias = steppedBias(bias);
  clear();
}

} // namespace nearbank::sgd
