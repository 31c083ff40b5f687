// SPDX-License-Identifier: Apache-2.0
// The scalar operations of the fixed-point arithmetic (SGD-2, SGD-3 in docs/model.md).
#pragma once

#include <cstdint>

namespace nearbank::sgd {

inline constexpr int64_t kOne = int64_t(1) << 31; ///< 1.0 in Q31.

/// Shifts to the right and rounds down; a result of -1 counts as zero, since small negatives would never vanish.
inline int64_t shiftAway(int64_t value, int shift) {
  int64_t shifted = value >> shift;
  return shifted == -1 ? 0 : shifted;
}

/// Shifts by a negative amount too.
inline int64_t scaleBy(int64_t value, int leftShift) {
  return leftShift >= 0 ? value << leftShift : value >> -leftShift;
}

/// Largest 2^31 - 1, smallest -(2^31 - 1).
inline int64_t saturate(int64_t value) {
  return value > kOne - 1 ? kOne - 1 : value < -(kOne - 1) ? -(kOne - 1) : value;
}

/// PIM-Opt's saturation: 2^31 itself and -2^31 pass, so that 2^31 stored in 32 bits turns into -2^31.
inline int64_t saturatePimOpt(int64_t value) { return value > kOne ? kOne - 1 : value < -kOne ? -(kOne - 1) : value; }

/// What a weight of 32 bits holds after saturation.
template <bool isPimOpt> inline int32_t storedWeight(int64_t value) {
  return static_cast<int32_t>(isPimOpt ? saturatePimOpt(value) : saturate(value));
}

} // namespace nearbank::sgd
