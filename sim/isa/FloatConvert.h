// SPDX-License-Identifier: Apache-2.0
// Bit-exact conversions that RISC-V defines differently from the host: to integers, half precision and bfloat16.
#pragma once

#include "sim/isa/Instruction.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace nearbank::sim {

/// Bits of fflags.
enum FloatFlag : uint32_t {
  flagInexact = 1,
  flagUnderflow = 2,
  flagOverflow = 4,
  flagDivideByZero = 8,
  flagInvalid = 16
};

inline constexpr uint32_t canonicalNan32 = 0x7fc00000;
inline constexpr uint64_t canonicalNan64 = 0x7ff8000000000000;
inline constexpr uint16_t canonicalNan16 = 0x7e00, canonicalNanBf16 = 0x7fc0;

/// Rounds a value of magnitude below 2^62 to an integer.
inline int64_t roundToInteger(double value, Rounding mode) {
  auto truncated = static_cast<int64_t>(value);
  double rest = value - static_cast<double>(truncated); // exact
  switch (mode) {
  case Rounding::TowardZero:
    return truncated;
  case Rounding::Down:
    return truncated - (rest < 0 ? 1 : 0);
  case Rounding::Up:
    return truncated + (rest > 0 ? 1 : 0);
  default:
    break;
  }
  double distance = std::fabs(rest);
  bool roundsAway = distance > 0.5 || (distance == 0.5 && (mode == Rounding::NearestAway || (truncated & 1) != 0));
  return roundsAway ? truncated + (value < 0 ? -1 : 1) : truncated;
}

/// Converts to Int as fcvt does: saturating, NaN to the largest value.
template <typename Int> Int convertToInteger(double value, Rounding mode, uint32_t &flags) {
  using Limits = std::numeric_limits<Int>;
  if (std::fabs(value) < 0x1p62) {
    int64_t rounded = roundToInteger(value, mode);
    if (std::is_same_v<Int, int64_t> || (rounded <= static_cast<int64_t>(Limits::max() & (~uint64_t{0} >> 1)) &&
                                         rounded >= static_cast<int64_t>(Limits::min()))) {
      if (static_cast<double>(rounded) != value)
        flags |= flagInexact;
      return static_cast<Int>(rounded);
    }
    flags |= flagInvalid;
    return rounded < 0 ? Limits::min() : Limits::max();
  }
  // Integral, infinite or NaN from here on.
  constexpr double limit = Limits::digits == 64 ? 0x1p64 : 0x1p63;
  if (std::isnan(value) || value >= limit)
    return flags |= flagInvalid, Limits::max();
  if (sizeof(Int) == 4 || value < static_cast<double>(Limits::min()))
    return flags |= flagInvalid, value < 0 ? Limits::min() : Limits::max();
  return static_cast<Int>(value);
}

/// Rounds to a 16-bit format with `exponentBits` exponent bits (5: half, 8: bfloat16), correctly in one step.
uint16_t roundTo16(double value, int exponentBits, Rounding mode, uint32_t &flags);

inline uint16_t toHalf(double value, Rounding mode, uint32_t &flags) { return roundTo16(value, 5, mode, flags); }

/// Exact.
float halfToFloat(uint16_t half, uint32_t &flags);

/// From single precision; the common round-to-nearest case is short.
inline uint16_t toBfloat16(float value, Rounding mode, uint32_t &flags) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (mode != Rounding::NearestEven || std::isnan(value))
    return roundTo16(value, 8, mode, flags);
  if ((bits & 0xffff) != 0)
    flags |= flagInexact;
  uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  if ((rounded & 0x7f800000) == 0x7f800000 && (bits & 0x7f800000) != 0x7f800000)
    flags |= flagOverflow;
  return static_cast<uint16_t>(rounded >> 16);
}

inline float bfloat16ToFloat(uint16_t value, uint32_t &flags) {
  bool isNan = (value & 0x7fff) > 0x7f80;
  if (isNan && (value & 0x40) == 0)
    flags |= flagInvalid;
  return std::bit_cast<float>(isNan ? canonicalNan32 : static_cast<uint32_t>(value) << 16);
}

/// fclass mask from the raw bits of a format with the given fraction and exponent widths.
uint64_t classify(uint64_t bits, int fractionBits, int exponentBits);

} // namespace nearbank::sim
