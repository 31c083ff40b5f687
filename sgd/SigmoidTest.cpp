// SPDX-License-Identifier: Apache-2.0
// Tests of the table-based sigmoids against float64 (SGD-4).
#include "sgd/Sigmoid.h"

#include "sgd/FixedPoint.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace nearbank::sgd {
namespace {

double exact(double z) { return 1.0 / (1.0 + std::exp(-z)); }

TEST(SigmoidTest, Sgd4TableIsWithinItsErrorBound) {
  const int32_t *table = SigmoidTable::shared().q31.data();
  for (double z = -20; z <= 20; z += 0.00317) {
    double value = double(sigmoidQ31(table, std::llround(z * double(kOne)))) / double(kOne);
    // Interpolation: max |sigmoid''| / 8 / 64^2 = 3e-6. Fraction of 8 bits: slope 1/4 / 64 / 256 = 1.5e-5.
    // Beyond 16 the table ends: 1.2e-7.
    EXPECT_NEAR(value, exact(z), 2e-5) << z;
  }
}

TEST(SigmoidTest, Sgd4TableIsSymmetricAndBounded) {
  const int32_t *table = SigmoidTable::shared().q31.data();
  EXPECT_EQ(sigmoidQ31(table, 0), kOne / 2);
  for (int64_t z : {int64_t(1), int64_t(12345678901), std::numeric_limits<int64_t>::max() / 2}) {
    EXPECT_EQ(sigmoidQ31(table, z) + sigmoidQ31(table, -z), kOne);
    EXPECT_LE(sigmoidQ31(table, z), kOne);
  }
}

TEST(SigmoidTest, Float32TableIsWithinItsErrorBound) {
  const float *table = SigmoidTable::shared().f32.data();
  for (float z = -20; z <= 20; z += 0.01f)
    EXPECT_NEAR(sigmoidF32(table, z), exact(z), 4e-6) << z;
  EXPECT_GE(sigmoidF32(table, std::numeric_limits<float>::quiet_NaN()), 0.0f);
}

TEST(SigmoidTest, PimOptExponentialIsWithinItsTable) {
  const PimOptSigmoid &sigmoid = PimOptSigmoid::shared();
  // Entries 2^-20 apart, rounded to the nearest, and 23 fraction bits of x log2(e): below 1e-6 in all.
  for (float x = -80; x <= 80; x += 0.0371f)
    EXPECT_NEAR(sigmoid.exponential(x) / std::exp(double(x)), 1.0, 2e-5) << x;
}

TEST(SigmoidTest, PimOptSigmoidSaturates) {
  const PimOptSigmoid &sigmoid = PimOptSigmoid::shared();
  EXPECT_EQ(sigmoid(0), kOne / 2);
  EXPECT_EQ(sigmoid(60 * kOne), kOne);
  EXPECT_EQ(sigmoid(-60 * kOne), 0);
  EXPECT_NEAR(double(sigmoid(kOne)) / double(kOne), exact(1), 1e-6);
}

} // namespace
} // namespace nearbank::sgd
