// SPDX-License-Identifier: Apache-2.0
// The local solver in fixed point.
#include "sgd/FixedPoint.h"
#include "sgd/LocalSolver.h"
#include "sgd/Sigmoid.h"

#include <bit>

namespace nearbank::sgd {

template <> void LocalSolver<Q31>::setDivisor(int64_t samples);

template <>
LocalSolver<Q31>::LocalSolver(const Settings &settings, int64_t features, bool isSparse)
    : settings_(settings), features_(features), isSparse_(isSparse),
      shift_(settings.rateShift + settings.weightExponent - settings.classShift),
      decayShift_(settings.l2Shift == kNoTerm ? kNoTerm : settings.rateShift + settings.l2Shift) {
  if (settings.isPimOpt && !isSparse)
    narrow_.resize(features);
  else
    wide_.resize(features);
  if (isSparse)
    isTouched_.resize(features);
  setDivisor(settings.batch);
}

template <> void LocalSolver<Q31>::setDivisor(int64_t samples) {
  divisor_ = samples;
  divisorLog2_ =
      settings_.isPimOpt || std::has_single_bit(uint64_t(samples)) ? std::bit_width(uint64_t(samples)) - 1 : -1;
}

template <> void LocalSolver<Q31>::addDense(const int32_t *x, int64_t coefficient, bool isPositive) {
  bool isHinge = settings_.loss == Loss::Hinge;
  if (settings_.isPimOpt) {
    int64_t biasStep;
    if (isHinge) {
      kernels_.addShifted32(narrow_.data(), x, features_, settings_.rateShift, isPositive);
      biasStep = shiftAway(kOne, settings_.rateShift);
      biasGradient_ += isPositive ? -biasStep : biasStep;
    } else {
      kernels_.addScaled32(narrow_.data(), x, features_, coefficient, 31 + settings_.rateShift);
      biasGradient_ += shiftAway(coefficient, settings_.rateShift);
    }
    return;
  }
  int64_t weight = settings_.classWeights[isPositive];
  if (isHinge) {
    if (weight == 256)
      kernels_.addShifted(wide_.data(), x, features_, shift_, isPositive);
    else
      kernels_.addScaled(wide_.data(), x, features_, weight << 23, 31 + shift_, isPositive);
    int64_t biasStep = shiftAway(weight << 23, shift_);
    biasGradient_ += isPositive ? -biasStep : biasStep;
  } else {
    int64_t weighted = (coefficient * weight) >> 8;
    kernels_.addScaled(wide_.data(), x, features_, weighted, 31 + shift_, false);
    biasGradient_ += shiftAway(weighted, shift_);
  }
}

template <>
void LocalSolver<Q31>::addSparsePimOpt(const Rows &rows, int64_t row, int64_t coefficient, bool isPositive) {
  // Class 0 counts a half, class 1 fifteen times; -1 is dropped at each stage, and an accumulator at -1 stays there.
  int64_t step = (settings_.loss == Loss::Hinge ? kOne : coefficient) >> settings_.rateShift;
  if (step == -1)
    return;
  int64_t weighted = isPositive ? (step << 4) - step : step >> 1;
  if (weighted != -1)
    step = weighted;
  if (settings_.loss == Loss::Hinge && isPositive)
    step = -step;
  for (int64_t k = rows.offsets[row]; k < rows.offsets[row + 1]; ++k) {
    uint32_t j = rows.indices[k];
    touch(j);
    if (wide_[j] != -1)
      wide_[j] += step;
  }
  biasGradient_ += step;
}

template <> void LocalSolver<Q31>::addSparse(const Rows &rows, int64_t row, int64_t coefficient, bool isPositive) {
  int64_t weight = settings_.classWeights[isPositive];
  bool isHinge = settings_.loss == Loss::Hinge;
  int64_t weighted = isHinge ? weight << 23 : (coefficient * weight) >> 8;
  int64_t unit = shiftAway(weighted, shift_);
  if (isHinge && isPositive)
    unit = -unit;
  biasGradient_ += unit;
  for (int64_t k = rows.offsets[row]; k < rows.offsets[row + 1]; ++k) {
    uint32_t j = rows.indices[k];
    touch(j);
    if (!rows.values) {
      wide_[j] += unit;
    } else {
      int64_t step = shiftAway(int64_t(rows.values[k]) * weighted, 31 + shift_);
      wide_[j] += isHinge && isPositive ? -step : step;
    }
  }
}

template <> void LocalSolver<Q31>::addGradient(const Rows &rows, const int32_t *weights, int64_t bias) {
  const int32_t *table = SigmoidTable::shared().q31.data();
  for (int64_t row = 0; row < rows.count; ++row) {
    int64_t dot = bias;
    if (!isSparse_) {
      dot += kernels_.dot(rows.dense + row * features_, weights, features_, settings_.isPimOpt);
    } else {
      for (int64_t k = rows.offsets[row]; k < rows.offsets[row + 1]; ++k) {
        int64_t weight = weights[rows.indices[k]];
        dot += rows.values ? (rows.values[k] * weight) >> 31 : weight;
      }
    }
    bool isPositive = rows.labels[row] == 1;
    int64_t z = settings_.isPimOpt ? dot : dot << settings_.weightExponent;
    int64_t coefficient = 0;
    if (settings_.loss == Loss::Hinge) {
      // PIM-Opt's margin is 2^-15.
      if ((isPositive ? z : -z) >= (settings_.isPimOpt ? 0x10000 : kOne))
        continue;
    } else {
      int64_t sigmoid = settings_.isPimOpt ? PimOptSigmoid::shared()(z) : sigmoidQ31(table, z);
      coefficient = sigmoid - (isPositive ? kOne : 0);
    }
    if (!isSparse_)
      addDense(rows.dense + row * features_, coefficient, isPositive);
    else if (settings_.isPimOpt)
      addSparsePimOpt(rows, row, coefficient, isPositive);
    else
      addSparse(rows, row, coefficient, isPositive);
  }
}

namespace {

/// Divides a sum of gradients; rounds down as the shift does.
int64_t dividedGradient(int64_t gradient, int divisorLog2, int64_t divisor) {
  if (divisorLog2 >= 0)
    return shiftAway(gradient, divisorLog2);
  int64_t quotient = gradient / divisor;
  quotient -= quotient * divisor > gradient ? 1 : 0;
  return quotient == -1 ? 0 : quotient;
}

int32_t stored(int64_t value, bool isPimOpt) {
  return isPimOpt ? storedWeight<true>(value) : storedWeight<false>(value);
}

template <bool isPimOpt>
void decayAll(const int32_t *weights, const int32_t *pull, int32_t *decayed, int64_t n, int shift) {
  for (int64_t j = 0; j < n; ++j) {
    int64_t pulled = int64_t(weights[j]) + (pull ? pull[j] : 0);
    decayed[j] = storedWeight<isPimOpt>(weights[j] - shiftAway(pulled, shift));
  }
}

} // namespace

template <> int32_t LocalSolver<Q31>::stepped(int64_t j, int32_t weight) const {
  int64_t update = dividedGradient(gradient(j), divisorLog2_, divisor_) + shiftAway(weight, decayShift_);
  return stored(weight - update, settings_.isPimOpt);
}

template <> int64_t LocalSolver<Q31>::steppedBias(int64_t bias, int64_t gradient) const {
  int64_t value = bias - dividedGradient(gradient, divisorLog2_, divisor_);
  if (!settings_.isPimOpt)
    return saturate(value);
  // Sparse models keep the bias among the weights, in 32 bits.
  return isSparse_ ? storedWeight<true>(value) : saturatePimOpt(value);
}

template <> void LocalSolver<Q31>::decay(const int32_t *weights, int32_t *decayed) const {
  if (settings_.isPimOpt)
    decayAll<true>(weights, nullptr, decayed, features_, decayShift_);
  else
    decayAll<false>(weights, nullptr, decayed, features_, decayShift_);
}

template <> void LocalSolver<Q31>::step(int32_t *weights, int64_t &bias, const int32_t *pull) {
  auto pulled = [&](int64_t j) { return int64_t(weights[j]) + (pull ? pull[j] : 0); };
  auto update = [&](int64_t j) {
    return dividedGradient(gradient(j), divisorLog2_, divisor_) + shiftAway(pulled(j), decayShift_);
  };
  if (!isSparse_) {
    for (int64_t j = 0; j < features_; ++j)
      weights[j] = stored(weights[j] - update(j), settings_.isPimOpt);
  } else if (decayShift_ == kNoTerm) {
    for (uint32_t j : touched_)
      weights[j] = stored(weights[j] - update(j), settings_.isPimOpt);
  } else {
    // Most features have no gradient: decay all, then set those that have one.
    std::vector<int32_t> values(touched_.size());
    for (size_t k = 0; k < touched_.size(); ++k)
      values[k] = stored(weights[touched_[k]] - update(touched_[k]), settings_.isPimOpt);
    if (settings_.isPimOpt)
      decayAll<true>(weights, pull, weights, features_, decayShift_);
    else
      decayAll<false>(weights, pull, weights, features_, decayShift_);
    for (size_t k = 0; k < touched_.size(); ++k)
      weights[touched_[k]] = values[k];
  }
  bias = steppedBias(bias);
  clear();
}

template <>
void LocalSolver<Q31>::stepWith(const int64_t *gradient, int64_t biasGradient, int32_t *weights, int64_t &bias) const {
  for (int64_t j = 0; j < features_; ++j) {
    int64_t update = dividedGradient(gradient[j], divisorLog2_, divisor_) + shiftAway(weights[j], decayShift_);
    weights[j] = stored(weights[j] - update, settings_.isPimOpt);
  }
  bias = steppedBias(bias, biasGradient);
}

} // namespace nearbank::sgd
