// SPDX-License-Identifier: Apache-2.0
#include "sim/isa/FloatConvert.h"

#include <gmock/gmock.h>

namespace nearbank::sim {
namespace {

constexpr Rounding allModes[] = {Rounding::NearestEven, Rounding::TowardZero, Rounding::Down, Rounding::Up,
                                 Rounding::NearestAway};

/// Value of the bits of a 16-bit format, by its definition.
double valueOf16(uint16_t bits, int exponentBits) {
  int fractionBits = 15 - exponentBits, bias = (1 << (exponentBits - 1)) - 1;
  int exponent = (bits >> fractionBits) & ((1 << exponentBits) - 1), fraction = bits & ((1 << fractionBits) - 1);
  double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - fractionBits)
                                   : std::ldexp(fraction + (1 << fractionBits), exponent - bias - fractionBits);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

class SixteenBitTest : public ::testing::TestWithParam<int> {};

TEST_P(SixteenBitTest, RepresentableValuesAreExactInEveryMode) {
  int exponentBits = GetParam();
  uint16_t infinity = static_cast<uint16_t>(((1 << exponentBits) - 1) << (15 - exponentBits));
  for (uint32_t bits = 0; bits < infinity; ++bits)
    for (Rounding mode : allModes) {
      uint32_t flags = 0;
      ASSERT_EQ(roundTo16(valueOf16(static_cast<uint16_t>(bits), exponentBits), exponentBits, mode, flags), bits);
      ASSERT_EQ(flags, 0u);
    }
}

// Between neighbours a < b: the midpoint, and just beside it, must go where each mode says; signs mirror.
TEST_P(SixteenBitTest, RoundsBetweenEveryPairOfNeighbours) {
  int exponentBits = GetParam();
  uint16_t infinity = static_cast<uint16_t>(((1 << exponentBits) - 1) << (15 - exponentBits));
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    uint16_t even = (low & 1) == 0 ? low : high;
    double middle = (valueOf16(low, exponentBits) + valueOf16(high, exponentBits)) / 2; // exact in double
    double below = std::nextafter(middle, 0), above = std::nextafter(middle, 1e300);
    uint32_t flags = 0;
    auto round = [&](double value, Rounding mode) { return roundTo16(value, exponentBits, mode, flags); };
    ASSERT_EQ(round(middle, Rounding::NearestEven), even);
    ASSERT_EQ(round(middle, Rounding::NearestAway), high);
    ASSERT_EQ(round(below, Rounding::NearestEven), low);
    ASSERT_EQ(round(above, Rounding::NearestEven), high);
    ASSERT_EQ(round(below, Rounding::NearestAway), low);
    ASSERT_EQ(round(above, Rounding::TowardZero), low);
    ASSERT_EQ(round(above, Rounding::Down), low);
    ASSERT_EQ(round(below, Rounding::Up), high);
    ASSERT_EQ(round(-middle, Rounding::NearestEven), even | 0x8000);
    ASSERT_EQ(round(-below, Rounding::Down), high | 0x8000);
    ASSERT_EQ(round(-above, Rounding::Up), low | 0x8000);
    ASSERT_EQ(flags & flagInexact, flagInexact);
  }
}

TEST_P(SixteenBitTest, OverflowsAsTheModeSays) {
  int exponentBits = GetParam();
  auto infinity = static_cast<uint16_t>(((1 << exponentBits) - 1) << (15 - exponentBits));
  double largest = valueOf16(static_cast<uint16_t>(infinity - 1), exponentBits),
         half = largest - valueOf16(static_cast<uint16_t>(infinity - 2), exponentBits);
  uint32_t flags = 0;
  EXPECT_EQ(roundTo16(largest + half / 2, exponentBits, Rounding::NearestEven, flags), infinity);
  EXPECT_EQ(flags, flagOverflow | flagInexact);
  EXPECT_EQ(roundTo16(std::nextafter(largest + half / 2, 0), exponentBits, Rounding::NearestEven, flags), infinity - 1);
  EXPECT_EQ(roundTo16(1e300, exponentBits, Rounding::TowardZero, flags), infinity - 1);
  EXPECT_EQ(roundTo16(-1e300, exponentBits, Rounding::Up, flags), (infinity - 1) | 0x8000);
  EXPECT_EQ(roundTo16(-1e300, exponentBits, Rounding::Down, flags), infinity | 0x8000);
  EXPECT_EQ(roundTo16(INFINITY, exponentBits, Rounding::TowardZero, flags), infinity);
}

INSTANTIATE_TEST_SUITE_P(Formats, SixteenBitTest, ::testing::Values(5, 8));

TEST(FloatConvertTest, HalfWidensToItsValue) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    uint32_t flags = 0;
    ASSERT_EQ(halfToFloat(static_cast<uint16_t>(bits), flags), valueOf16(static_cast<uint16_t>(bits), 5)) << bits;
    ASSERT_EQ(flags, 0u);
  }
  uint32_t flags = 0;
  EXPECT_EQ(halfToFloat(0xfc00, flags), -INFINITY);
  EXPECT_TRUE(std::isnan(halfToFloat(0x7e00, flags)));
  EXPECT_EQ(flags, 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(halfToFloat(0xfd00, flags)), canonicalNan32);
  EXPECT_EQ(flags, flagInvalid);
}

TEST(FloatConvertTest, ShortBfloat16PathAgreesWithTheGeneralOne) {
  for (uint64_t bits = 0; bits < 0x100000000; bits += 0x3fd) { // odd stride: every exponent, all residues
    float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    uint32_t a = 0, b = 0;
    ASSERT_EQ(toBfloat16(value, Rounding::NearestEven, a), roundTo16(value, 8, Rounding::NearestEven, b))
        << std::hex << bits;
    ASSERT_EQ(a & ~flagUnderflow, b & ~flagUnderflow) << std::hex << bits;
  }
}

TEST(FloatConvertTest, IntegersRoundInEveryMode) {
  struct Row {
    double value;
    int64_t nearestEven, towardZero, down, up, nearestAway;
  };
  const Row rows[] = {
      {2.5, 2, 2, 2, 3, 3},
      {3.5, 4, 3, 3, 4, 4},
      {-2.5, -2, -2, -3, -2, -3},
      {-3.5, -4, -3, -4, -3, -4},
      {0.5, 0, 0, 0, 1, 1},
      {-0.5, 0, 0, -1, 0, -1},
      {0.75, 1, 0, 0, 1, 1},
      {-0.25, 0, 0, -1, 0, 0},
      {1e-320, 0, 0, 0, 1, 0},
      {-1e-320, 0, 0, -1, 0, 0},
      {7, 7, 7, 7, 7, 7},
      {0x1p53 + 2, (1LL << 53) + 2, (1LL << 53) + 2, (1LL << 53) + 2, (1LL << 53) + 2, (1LL << 53) + 2}};
  for (const Row &row : rows) {
    const int64_t expected[] = {row.nearestEven, row.towardZero, row.down, row.up, row.nearestAway};
    for (size_t m = 0; m < 5; ++m) {
      uint32_t flags = 0;
      EXPECT_EQ(convertToInteger<int64_t>(row.value, allModes[m], flags), expected[m]) << row.value << " mode " << m;
      EXPECT_EQ(flags, static_cast<double>(expected[m]) == row.value ? 0u : flagInexact) << row.value;
    }
  }
}

TEST(FloatConvertTest, IntegersSaturate) {
  auto invalid = [](auto expected, double value, Rounding mode = Rounding::TowardZero) {
    uint32_t flags = 0;
    EXPECT_EQ(convertToInteger<decltype(expected)>(value, mode, flags), expected) << value;
    EXPECT_EQ(flags, flagInvalid) << value;
  };
  auto valid = [](auto expected, double value) {
    uint32_t flags = 0;
    EXPECT_EQ(convertToInteger<decltype(expected)>(value, Rounding::TowardZero, flags), expected) << value;
    EXPECT_EQ(flags & flagInvalid, 0u) << value;
  };
  for (double high : {static_cast<double>(NAN), -static_cast<double>(NAN), static_cast<double>(INFINITY), 1e30}) {
    invalid(INT32_MAX, high), invalid(UINT32_MAX, high), invalid(INT64_MAX, high), invalid(UINT64_MAX, high);
  }
  for (double low : {-1e30, -static_cast<double>(INFINITY)}) {
    invalid(INT32_MIN, low), invalid(uint32_t{0}, low), invalid(INT64_MIN, low), invalid(uint64_t{0}, low);
  }
  invalid(INT32_MAX, 0x1p31), invalid(UINT32_MAX, 0x1p32), invalid(INT64_MAX, 0x1p63), invalid(UINT64_MAX, 0x1p64);
  invalid(uint32_t{0}, -1.0), invalid(uint64_t{0}, -1.0), invalid(uint32_t{0}, -0.5, Rounding::Down);
  valid(INT32_MAX, 2147483647.9), valid(INT32_MIN, -2147483648.9), valid(UINT32_MAX, 4294967295.9),
      valid(uint32_t{0}, -0.9);
  valid(INT64_MIN, -0x1p63), valid(uint64_t{1} << 63, 0x1p63),
      valid(uint64_t{0xfffffffffffff800}, 0x1.fffffffffffffp63);
  invalid(INT32_MAX, 2147483647.5, Rounding::NearestEven);
}

TEST(FloatConvertTest, ClassifiesEveryKind) {
  auto of = [](float value) { return classify(std::bit_cast<uint32_t>(value), 23, 8); };
  EXPECT_EQ(of(-INFINITY), 1u << 0);
  EXPECT_EQ(of(-1), 1u << 1);
  EXPECT_EQ(of(-1e-40f), 1u << 2);
  EXPECT_EQ(of(-0.0f), 1u << 3);
  EXPECT_EQ(of(0.0f), 1u << 4);
  EXPECT_EQ(of(1e-40f), 1u << 5);
  EXPECT_EQ(of(1), 1u << 6);
  EXPECT_EQ(of(INFINITY), 1u << 7);
  EXPECT_EQ(classify(0x7fa00000, 23, 8), 1u << 8);
  EXPECT_EQ(classify(0x7fc00000, 23, 8), 1u << 9);
}

} // namespace
} // namespace nearbank::sim
