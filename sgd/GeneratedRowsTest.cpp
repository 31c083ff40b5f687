// SPDX-License-Identifier: Apache-2.0
// Tests that generated rows are the same however they are cut, and have the shape they promise (GEN-1, GEN-2).
#include "sgd/GeneratedRows.h"

#include "sgd/Evaluation.h"
#include "sgd/Trainer.h"

#include <gmock/gmock.h>

namespace nearbank::sgd {
namespace {

TEST(GeneratedRowsTest, Gen1AnyCutGivesTheSameRows) {
  Settings settings;
  YfccLikeRows source(settings, {.rows = 50, .features = 128});
  RowBuffer whole, part;
  Rows all = source.rows(0, 50, whole);
  for (int64_t begin : {0, 7, 49}) {
    Rows some = source.rows(begin, 50, part);
    for (int64_t r = begin; r < 50; ++r) {
      EXPECT_EQ(some.labels[r - begin], all.labels[r]);
      for (int64_t j = 0; j < 128; ++j)
        ASSERT_EQ(some.dense[(r - begin) * 128 + j], all.dense[r * 128 + j]);
    }
  }
}

TEST(GeneratedRowsTest, Gen1FeaturesLieInZeroToOneAndClassesBalance) {
  Settings settings;
  YfccLikeRows source(settings, {.rows = 2000, .features = 64});
  RowBuffer buffer;
  Rows rows = source.rows(0, 2000, buffer);
  int64_t positives = 0;
  for (int64_t r = 0; r < 2000; ++r)
    positives += rows.labels[r];
  EXPECT_NEAR(double(positives), 1000, 100); // 4.5 standard deviations.
  for (int64_t k = 0; k < 2000 * 64; ++k)
    ASSERT_GE(rows.dense[k], 0);
}

TEST(GeneratedRowsTest, Gen1FloatRowsAreTheFixedOnes) {
  Settings fixed, floating;
  floating.arithmetic = Arithmetic::Float32;
  RowBuffer a, b;
  Rows q31 = YfccLikeRows(fixed, {.rows = 3, .features = 64}).rows(0, 3, a);
  Rows f32 = YfccLikeRows(floating, {.rows = 3, .features = 64}).rows(0, 3, b);
  for (int64_t k = 0; k < 3 * 64; ++k)
    ASSERT_EQ(f32.denseFloat[k], static_cast<float>(q31.dense[k]) * 0x1p-31f);
}

TEST(GeneratedRowsTest, Gen2RowsHave39OnesAndFewPositives) {
  CriteoLikeRows source({.rows = 40000, .features = 10000});
  RowBuffer buffer;
  Rows rows = source.rows(0, 40000, buffer);
  int64_t positives = 0;
  for (int64_t r = 0; r < rows.count; ++r) {
    positives += rows.labels[r];
    ASSERT_EQ(rows.offsets[r + 1] - rows.offsets[r], 39);
  }
  for (uint32_t index : buffer.indices)
    ASSERT_LT(index, 10000u);
  // 0.0342 of 40,000 with a standard deviation of 36, and what 20,000 rows of calibration leave.
  EXPECT_NEAR(double(positives), 1368, 200);
}

TEST(GeneratedRowsTest, Gen2TestRowsFollowTrainingRows) {
  CriteoLikeRows all({.rows = 20, .features = 1000}), tail({.rows = 5, .firstRow = 15, .features = 1000});
  RowBuffer a, b;
  Rows whole = all.rows(15, 20, a), part = tail.rows(0, 5, b);
  EXPECT_EQ(a.indices, b.indices);
  for (int64_t r = 0; r < 5; ++r)
    EXPECT_EQ(whole.labels[r], part.labels[r]);
}

} // namespace
} // namespace nearbank::sgd
