// SPDX-License-Identifier: Apache-2.0
// Sigmoids by table, as DPUs without floating-point units compute them (SGD-4 in docs/model.md).
#pragma once

#include <cstdint>
#include <vector>

namespace nearbank::sgd {

/// Default sigmoid: 64 entries a unit up to 16, linear in between.
struct SigmoidTable {
  static constexpr int kEntriesLog2 = 6; ///< Entries of one unit.
  static constexpr int kEntries = (16 << kEntriesLog2) + 2;

  /// round((sigmoid(i / 64) - 0.5) * 2^31).
  std::vector<int32_t> q31;
  /// sigmoid(i / 64).
  std::vector<float> f32;

  static const SigmoidTable &shared();
};

/// Sigmoid of z in Q31, in Q31 (0 to 2^31).
inline int64_t sigmoidQ31(const int32_t *table, int64_t z) {
  constexpr int64_t limit = (int64_t(16) << 31) - 1;
  int64_t magnitude = z < 0 ? -z : z;
  if (magnitude > limit)
    magnitude = limit;
  int32_t index = static_cast<int32_t>(magnitude >> (31 - SigmoidTable::kEntriesLog2));
  int32_t fraction = static_cast<int32_t>(magnitude >> (31 - SigmoidTable::kEntriesLog2 - 8)) & 255;
  int32_t value = table[index] + (((table[index + 1] - table[index]) * fraction) >> 8);
  return z < 0 ? (int64_t(1) << 30) - value : (int64_t(1) << 30) + value;
}

/// Sigmoid in float32.
inline float sigmoidF32(const float *table, float z) {
  float magnitude = z < 0 ? -z : z;
  if (!(magnitude < 16.0f))
    magnitude = 16.0f;
  float scaled = magnitude * (1 << SigmoidTable::kEntriesLog2);
  int32_t index = static_cast<int32_t>(scaled);
  float value = table[index] + (scaled - static_cast<float>(index)) * (table[index + 1] - table[index]);
  return z < 0 ? 1.0f - value : value;
}

/// PIM-Opt's: exp by a table of 2^20 floats over [0, 1) and range extension, then double arithmetic.
class PimOptSigmoid {
public:
  static constexpr int kTableLog2 = 20;

  PimOptSigmoid();
  static const PimOptSigmoid &shared();
  /// Sigmoid of z in Q31, in Q31.
  int64_t operator()(int64_t z) const;
  float exponential(float x) const;
  const std::vector<float> &table() const { return table_; }

private:
  std::vector<float> table_;
};

} // namespace nearbank::sgd
