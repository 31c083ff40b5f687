// SPDX-License-Identifier: Apache-2.0
// What one DPU computes: the gradient of some rows and steps of its model (SGD-1 to SGD-5 in docs/model.md).
#pragma once

#include "sgd/DenseKernels.h"
#include "sgd/Rows.h"
#include "sgd/Settings.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nearbank::sgd {

/// Number types of the fixed-point arithmetic.
struct Q31 {
  using Weight = int32_t;
  using Bias = int64_t;
  using Sum = int64_t; ///< Gradients, and sums over DPUs.
};

/// Number types of the float32 arithmetic.
struct F32 {
  using Weight = float;
  using Bias = float;
  using Sum = float;
};

/// A linear model in the arithmetic of the DPUs.
template <class A> struct Model {
  std::vector<typename A::Weight> weights;
  typename A::Bias bias = 0;
};

/// Computes as one DPU after the other. Holds one gradient; not thread-safe.
template <class A> class LocalSolver {
public:
  using Weight = typename A::Weight;
  using Bias = typename A::Bias;
  using Sum = typename A::Sum;

  LocalSolver(const Settings &settings, int64_t features, bool isSparse);

  /// Adds the gradient of `rows` at the model, each row's share scaled by the rate (Q31) or not (float32).
  void addGradient(const Rows &rows, const Weight *weights, Bias bias);

  /// One step with the gradient that has been added up, in place, and clears the gradient. `pull` is u - z of ADMM, or
  /// null.
  void step(Weight *weights, Bias &bias, const Weight *pull);

  /// Value of weight j after a step from `weight`, without pull. Clears nothing.
  Weight stepped(int64_t j, Weight weight) const;
  Bias steppedBias(Bias bias) const { return steppedBias(bias, biasGradient_); }
  /// What a step without gradient makes of the weights.
  void decay(const Weight *weights, Weight *decayed) const;

  Sum gradient(int64_t j) const { return narrow_.empty() ? wide_[j] : static_cast<Sum>(narrow_[j]); }
  Sum biasGradient() const { return biasGradient_; }
  /// Features whose gradient may differ from zero; sparse rows only.
  std::span<const uint32_t> touched() const { return touched_; }
  void addGradientTo(Sum *sum) const;
  void clear();

  /// A step of the server with the sum of all DPUs' gradients.
  void stepWith(const Sum *gradient, Sum biasGradient, Weight *weights, Bias &bias) const;

  /// Batch that steps divide by, in place of the settings' own.
  void setDivisor(int64_t samples);

private:
  Bias steppedBias(Bias bias, Sum gradient) const;
  void addDense(const int32_t *x, int64_t coefficient, bool isPositive);
  void addSparse(const Rows &rows, int64_t row, int64_t coefficient, bool isPositive);
  void addSparsePimOpt(const Rows &rows, int64_t row, int64_t coefficient, bool isPositive);
  void touch(uint32_t j) {
    if (!isTouched_[j]) {
      isTouched_[j] = 1;
      touched_.push_back(j);
    }
  }

  const Settings settings_;
  const int64_t features_;
  const bool isSparse_;
  const DenseKernels &kernels_ = denseKernels();
  int shift_ = 0;       ///< Rate and weight exponent together (Q31).
  int decayShift_ = 0;  ///< Rate and L2 together (Q31).
  int divisorLog2_ = 0; ///< -1 when the divisor is no power of two.
  int64_t divisor_ = 1;
  float stepRate_ = 0;  ///< rate / batch (float32).
  float decayRate_ = 0; ///< rate * l2 (float32).
  std::vector<Sum> wide_;
  std::vector<int32_t> narrow_; ///< In place of wide_: PIM-Opt's dense gradient has 32 bits.
  Sum biasGradient_ = 0;
  std::vector<uint32_t> touched_;
  std::vector<uint8_t> isTouched_;
};

} // namespace nearbank::sgd
