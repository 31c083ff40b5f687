// SPDX-License-Identifier: Apache-2.0
// Tests that the vectorised loops give the bits of the portable ones, at the edges of the number range too.
#include "sgd/DenseKernels.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <random>
#include <vector>

namespace nearbank::sgd {
namespace {

constexpr int32_t kEdges[] = {0, 1, -1, INT32_MAX, INT32_MIN, INT32_MIN + 1, 0x40000000, -0x40000000};
constexpr int64_t kCoefficients[] = {int64_t(1) << 31, -(int64_t(1) << 31), 0, 1, -1, 0x7fffffff, -123456789};

std::vector<int32_t> numbers(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> values(n);
  for (int64_t j = 0; j < n; ++j)
    values[j] = random() % 4 == 0 ? kEdges[random() % 8] : static_cast<int32_t>(random());
  return values;
}

/// PIM-Opt's data: 0 to 2^31.
std::vector<int32_t> unsignedNumbers(int64_t n) {
  std::vector<int32_t> values = numbers(n, 5);
  for (int32_t &value : values)
    value = value == INT32_MIN ? value : value & INT32_MAX;
  return values;
}

class DenseKernelsTest : public ::testing::TestWithParam<int64_t> {
protected:
  void SetUp() override {
    if (!hasAvx2())
      GTEST_SKIP() << "this processor has no AVX2";
  }
  const DenseKernels &fast = avx2DenseKernels();
  const DenseKernels &plain = baselineDenseKernels();
};

TEST_P(DenseKernelsTest, DotsAgree) {
  int64_t n = GetParam();
  std::vector<int32_t> w = numbers(n, 2), x = numbers(n, 1), u = unsignedNumbers(n);
  EXPECT_EQ(fast.dot(x.data(), w.data(), n, false), plain.dot(x.data(), w.data(), n, false));
  EXPECT_EQ(fast.dot(u.data(), w.data(), n, true), plain.dot(u.data(), w.data(), n, true));
}

TEST_P(DenseKernelsTest, GradientsAgreeForAllCoefficientsAndShifts) {
  int64_t n = GetParam();
  std::vector<int32_t> x = numbers(n, 1), u = unsignedNumbers(n), start = numbers(n, 3);
  for (int64_t c : kCoefficients)
    for (int shift : {31, 32, 37, 62})
      for (bool isMinus : {false, true}) {
        std::vector<int64_t> a(start.begin(), start.end()), b = a;
        fast.addScaled(a.data(), x.data(), n, c, shift, isMinus);
        plain.addScaled(b.data(), x.data(), n, c, shift, isMinus);
        EXPECT_EQ(a, b) << "c " << c << ", shift " << shift;
        std::vector<int32_t> a32 = start, b32 = start;
        fast.addScaled32(a32.data(), u.data(), n, c, shift);
        plain.addScaled32(b32.data(), u.data(), n, c, shift);
        EXPECT_EQ(a32, b32) << "c " << c << ", shift " << shift;
      }
}

TEST_P(DenseKernelsTest, ShiftedGradientsAgree) {
  int64_t n = GetParam();
  std::vector<int32_t> x = numbers(n, 1), start = numbers(n, 3);
  for (int shift : {0, 1, 6, 31})
    for (bool isMinus : {false, true}) {
      std::vector<int64_t> a(start.begin(), start.end()), b = a;
      fast.addShifted(a.data(), x.data(), n, shift, isMinus);
      plain.addShifted(b.data(), x.data(), n, shift, isMinus);
      EXPECT_EQ(a, b);
      std::vector<int32_t> a32 = start, b32 = start;
      fast.addShifted32(a32.data(), x.data(), n, shift, isMinus);
      plain.addShifted32(b32.data(), x.data(), n, shift, isMinus);
      EXPECT_EQ(a32, b32);
    }
}

TEST_P(DenseKernelsTest, FloatsAgreeBitForBit) {
  int64_t n = GetParam();
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  std::vector<float> x(n), w(n);
  for (int64_t j = 0; j < n; ++j) {
    x[j] = normal(random);
    w[j] = normal(random) * 1e3f;
  }
  EXPECT_EQ(fast.dotFloat(x.data(), w.data(), n), plain.dotFloat(x.data(), w.data(), n));
  std::vector<float> a = w, b = w;
  fast.addScaledFloat(a.data(), x.data(), n, 0.3f);
  plain.addScaledFloat(b.data(), x.data(), n, 0.3f);
  EXPECT_EQ(a, b);
}

INSTANTIATE_TEST_SUITE_P(Lengths, DenseKernelsTest, ::testing::Values(0, 1, 7, 8, 9, 63, 64, 65, 200, 4096));

} // namespace
} // namespace nearbank::sgd
