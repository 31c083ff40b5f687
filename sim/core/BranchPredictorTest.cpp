// SPDX-License-Identifier: Apache-2.0
// The branch predictor on patterns whose predictability is known.
#include "sim/core/BranchPredictor.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace nearbank::sim {
namespace {

/// Share of wrong predictions over the second half of `count` branches at one address.
double wrongShare(const std::function<bool(int)> &outcome, int count = 20000) {
  BranchPredictor predictor;
  int wrong = 0;
  for (int i = 0; i < count; ++i)
    if (!predictor.isRight(0x10040, outcome(i)) && i >= count / 2)
      ++wrong;
  return wrong / (count / 2.0);
}

TEST(BranchPredictorTest, ConstantBranchesAreRight) {
  EXPECT_EQ(wrongShare([](int) { return true; }), 0);
  EXPECT_EQ(wrongShare([](int) { return false; }), 0);
}

TEST(BranchPredictorTest, PeriodicPatternsWithinTheHistoryAreLearned) {
  for (int period : {2, 3, 7, 16, 40, 100})
    EXPECT_LT(wrongShare([&](int i) { return i % period != period - 1; }), 0.003) << period;
}

TEST(BranchPredictorTest, ExitsBeyondTheHistoryAreMissedOncePerLoop) {
  double share = wrongShare([](int i) { return i % 500 != 499; });
  EXPECT_LE(share, 2.5 / 500);
  EXPECT_GE(share, 0.5 / 500);
}

TEST(BranchPredictorTest, RandomOutcomesAreRightHalfTheTime) {
  std::mt19937 random(1);
  EXPECT_NEAR(wrongShare([&](int) { return (random() & 1) != 0; }), 0.5, 0.03);
}

TEST(BranchPredictorTest, BiasedRandomOutcomesFollowTheBias) {
  std::mt19937 random(2);
  double share = wrongShare([&](int) { return random() % 10 != 0; });
  EXPECT_GE(share, 0.08);
  EXPECT_LE(share, 0.18);
}

TEST(BranchPredictorTest, ReturnsMatchCalls) {
  BranchPredictor predictor;
  predictor.call(100);
  predictor.call(200);
  EXPECT_TRUE(predictor.isReturnRight(200));
  EXPECT_TRUE(predictor.isReturnRight(100));
  EXPECT_FALSE(predictor.isReturnRight(300));
}

TEST(BranchPredictorTest, IndirectTargetsAreLearnedAndForgottenByReset) {
  BranchPredictor predictor;
  EXPECT_FALSE(predictor.isTargetRight(0x10000, 0x20000));
  for (int i = 0; i < 10; ++i)
    predictor.isTargetRight(0x10000, 0x20000);
  EXPECT_TRUE(predictor.isTargetRight(0x10000, 0x20000));
  predictor.reset();
  EXPECT_FALSE(predictor.isTargetRight(0x10000, 0x20000));
}

} // namespace
} // namespace nearbank::sim
