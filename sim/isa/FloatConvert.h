// SPDX-License-Identifier: Apache-2.0
// Bit-exact conversions that RISC-V defines differently from the host: to integers, half precision and bfloat16.
#pragma once

#include "sim/isa/Instruction.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace nearbank::sim {

/// Bits of fflags.
enum FloatFlag : uint32_t { flagInexact = 1, flagUnderflow = 2, flagOverflow = 4, flagDivideByZero = 8, flagInvalid = 16 };

inline constexpr uint32_t canonicalNan32 = 0x7fc00000;
inline constexpr uint64_t canonicalNan64 = 0x7ff8000000000000;
inline constexpr uint16_t canonicalNan16 = 0x7e00, canonicalNanBf16 = 0x7fc0;

/// Rounds a finite value to an integral one.
double roundToIntegral(double value, Rounding mode);

/// Converts to Int as fcvt does: saturating, NaN to the largest value.
template <typename Int> Int convertToInteger(double value, Rounding mode, uint32_t &flags) {
  using Limits = std::numeric_limits<Int>;
  if (std::isnan(value)) return flags |= flagInvalid, Limits::max();
  double rounded = std::isinf(value) ? value : roundToIntegral(value, mode);
  constexpr int digits = Limits::digits;
  constexpr double limit = digits == 64 ? 0x1p64 : digits == 63 ? 0x1p63 : digits == 32 ? 0x1p32 : 0x1p31; // one past max
  if (rounded >= limit) return flags |= flagInvalid, Limits::max();
  if (rounded < static_cast<double>(Limits::min())) return flags |= flagInvalid, Limits::min();
  if (rounded != value) flags |= flagInexact;
  return static_cast<Int>(rounded);
}

/// Rounds to a 16-bit format with `exponentBits` exponent bits (5: half, 8: bfloat16), correctly in one step.
uint16_t roundTo16(double value, int exponentBits, Rounding mode, uint32_t &flags);

inline uint16_t toHalf(double value, Rounding mode, uint32_t &flags) { return roundTo16(value, 5, mode, flags); }

/// Exact.
float halfToFloat(uint16_t half, uint32_t &flags);

/// From single precision; the common round-to-nearest case is short.
inline uint16_t toBfloat16(float value, Rounding mode, uint32_t &flags) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (mode != Rounding::NearestEven || std::isnan(value)) return roundTo16(value, 8, mode, flags);
  if ((bits & 0xffff) != 0) flags |= flagInexact;
  uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  if ((rounded & 0x7f800000) == 0x7f800000 && (bits & 0x7f800000) != 0x7f800000) flags |= flagOverflow;
  return static_cast<uint16_t>(rounded >> 16);
}

inline float bfloat16ToFloat(uint16_t value, uint32_t &flags) {
  bool isNan = (value & 0x7fff) > 0x7f80;
  if (isNan && (value & 0x40) == 0) flags |= flagInvalid;
  return std::bit_cast<float>(isNan ? canonicalNan32 : static_cast<uint32_t>(value) << 16);
}

/// fclass mask from the raw bits of a format with the given fraction and exponent widths.
uint64_t classify(uint64_t bits, int fractionBits, int exponentBits);

} // namespace nearbank::sim
