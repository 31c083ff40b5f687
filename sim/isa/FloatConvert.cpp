// SPDX-License-Identifier: Apache-2.0
// Conversions by integer arithmetic; independent of the host's rounding mode.
#include "sim/isa/FloatConvert.h"

namespace nearbank::sim {
namespace {

/// Whether `kept` grows by one when `rest` of `half * 2` units is dropped.
bool roundsUp(uint64_t kept, uint64_t rest, uint64_t half, bool isNegative, Rounding mode) {
  switch (mode) {
  case Rounding::TowardZero:
    return false;
  case Rounding::Down:
    return isNegative && rest != 0;
  case Rounding::Up:
    return !isNegative && rest != 0;
  case Rounding::NearestAway:
    return rest >= half;
  default:
    return rest > half || (rest == half && (kept & 1) != 0);
  }
}

} // namespace

uint16_t roundTo16(double value, int exponentBits, Rounding mode, uint32_t &flags) {
  int fractionBits = 15 - exponentBits, bias = (1 << (exponentBits - 1)) - 1;
  uint16_t infinity = static_cast<uint16_t>(((1 << exponentBits) - 1) << fractionBits);
  uint64_t bits = std::bit_cast<uint64_t>(value);
  bool isNegative = (bits >> 63) != 0;
  uint16_t sign = isNegative ? 0x8000 : 0;
  int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 1024) {
    if (fraction == 0)
      return sign | infinity;
    if ((fraction >> 51) == 0)
      flags |= flagInvalid;
    return exponentBits == 5 ? canonicalNan16 : canonicalNanBf16;
  }
  if (exponent == -1023) { // zero, or far below every 16-bit subnormal
    if (fraction == 0)
      return sign;
    flags |= flagInexact | flagUnderflow;
    return sign | (roundsUp(0, 1, 2, isNegative, mode) ? 1 : 0);
  }
  uint64_t significand = fraction | (uint64_t{1} << 52);
  int minimum = 1 - bias;
  bool isSubnormal = exponent < minimum;
  int drop = 52 - fractionBits + (isSubnormal ? minimum - exponent : 0);
  uint64_t kept = 0, rest = 1, half = 2; // far below half a unit
  if (drop <= 53) {
    kept = drop == 53 ? 0 : significand >> drop;
    rest = significand & ((uint64_t{1} << drop) - 1);
    half = uint64_t{1} << (drop - 1);
  }
  if (rest != 0)
    flags |= flagInexact;
  bool up = roundsUp(kept, rest, half, isNegative, mode);
  kept += up ? 1 : 0;
  if (isSubnormal) {
    // Tiny after rounding unless the value, rounded with an unbounded exponent, reaches the least normal one.
    bool reachesNormal = false;
    if (exponent == minimum - 1 && (kept >> fractionBits) != 0) {
      uint64_t keptWide = significand >> (52 - fractionBits),
               restWide = significand & ((uint64_t{1} << (52 - fractionBits)) - 1);
      keptWide += roundsUp(keptWide, restWide, uint64_t{1} << (51 - fractionBits), isNegative, mode) ? 1 : 0;
      reachesNormal = (keptWide >> (fractionBits + 1)) != 0;
    }
    if (rest != 0 && !reachesNormal)
      flags |= flagUnderflow;
    return sign | static_cast<uint16_t>(kept);
  }
  uint64_t result = (static_cast<uint64_t>(exponent + bias) << fractionBits) + (kept - (uint64_t{1} << fractionBits));
  if (exponent + bias >= (1 << exponentBits) - 1 || result >= infinity) {
    flags |= flagOverflow | flagInexact;
    bool toInfinity = mode == Rounding::NearestEven || mode == Rounding::NearestAway ||
                      mode == (isNegative ? Rounding::Down : Rounding::Up);
    return sign | static_cast<uint16_t>(toInfinity ? infinity : infinity - 1);
  }
  return sign | static_cast<uint16_t>(result);
}

float halfToFloat(uint16_t half, uint32_t &flags) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, exponent = (half >> 10) & 31, fraction = half & 1023;
  if (exponent == 31) {
    if (fraction != 0 && (fraction & 512) == 0)
      flags |= flagInvalid;
    return std::bit_cast<float>(fraction != 0 ? canonicalNan32 : sign | 0x7f800000);
  }
  if (exponent != 0)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  if (fraction == 0)
    return std::bit_cast<float>(sign);
  int shift = std::countl_zero(fraction) - 21; // brings the leading one to bit 10
  return std::bit_cast<float>(sign | static_cast<uint32_t>(113 - shift) << 23 | ((fraction << shift) & 1023) << 13);
}

uint64_t classify(uint64_t bits, int fractionBits, int exponentBits) {
  bool isNegative = ((bits >> (fractionBits + exponentBits)) & 1) != 0;
  uint64_t fraction = bits & ((uint64_t{1} << fractionBits) - 1);
  uint64_t allOnes = (uint64_t{1} << exponentBits) - 1, exponent = (bits >> fractionBits) & allOnes;
  if (exponent == allOnes) {
    if (fraction != 0)
      return (fraction >> (fractionBits - 1)) != 0 ? 1 << 9 : 1 << 8;
    return isNegative ? 1 << 0 : 1 << 7;
  }
  if (exponent == 0 && fraction == 0)
    return isNegative ? 1 << 3 : 1 << 4;
  if (exponent == 0)
    return isNegative ? 1 << 2 : 1 << 5;
  return isNegative ? 1 << 1 : 1 << 6;
}

} // namespace nearbank::sim
