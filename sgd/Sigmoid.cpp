// SPDX-License-Identifier: Apache-2.0
// Fills the tables and evaluates PIM-Opt's exponential.
#include "sgd/Sigmoid.h"

#include "sgd/FixedPoint.h"

#include <bit>
#include <cmath>

namespace nearbank::sgd {

const SigmoidTable &SigmoidTable::shared() {
  static const SigmoidTable tables = [] {
    SigmoidTable made;
    for (int i = 0; i < kEntries; ++i) {
      double value = 1.0 / (1.0 + std::exp(-double(i) / (1 << kEntriesLog2)));
      made.q31.push_back(static_cast<int32_t>(std::lround((value - 0.5) * double(kOne))));
      made.f32.push_back(static_cast<float>(value));
    }
    return made;
  }();
  return tables;
}

PimOptSigmoid::PimOptSigmoid() : table_(size_t(1) << kTableLog2) {
  for (size_t i = 0; i < table_.size(); ++i)
    table_[i] = static_cast<float>(std::exp(double(std::ldexp(float(i), -kTableLog2))));
}

const PimOptSigmoid &PimOptSigmoid::shared() {
  static const PimOptSigmoid made;
  return made;
}

namespace {

/// x with 23 fraction bits, truncated towards zero; shift amounts wrap at 32 as in the DPU's shifter.
int32_t toFixed23(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  int exponent = static_cast<int>((bits >> 23) & 255) - 127;
  uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
  uint32_t magnitude = exponent < 0 ? mantissa >> (-exponent & 31) : mantissa << (exponent & 31);
  return static_cast<int32_t>(bits >> 31 ? 0u - magnitude : magnitude);
}

} // namespace

float PimOptSigmoid::exponential(float x) const {
  constexpr float log2OfE = 1.44269504089f, ln2 = 0.69314718056f;
  int32_t fixed = toFixed23(x * log2OfE);
  int32_t power = fixed >> 23;
  // Exact: fewer than 24 bits.
  float fraction = std::ldexp(static_cast<float>(fixed - (power << 23)), -23) * ln2;
  uint32_t index = static_cast<uint32_t>(static_cast<int32_t>(std::ldexp(fraction, kTableLog2 + 1)) + 1) >> 1;
  float value = table_[index];
  // Entries lie in [1, e): their exponent is 127 or 128. Too large: the largest float. Too small: next to one, which is
  // all that the caller adds it to, any denormal is nothing.
  int exponent = static_cast<int>((std::bit_cast<uint32_t>(value) >> 23) & 255);
  if (exponent + power >= 255)
    return std::bit_cast<float>(uint32_t(0x7f7fffff));
  return exponent + power < 1 ? 0.0f : std::ldexp(value, power);
}

int64_t PimOptSigmoid::operator()(int64_t z) const {
  constexpr float one = 2147483648.0f;
  float exponent = -(static_cast<float>(z) / one);
  return static_cast<int64_t>(double(one) / (1.0 + double(exponential(exponent))));
}

} // namespace nearbank::sgd
