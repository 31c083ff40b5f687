// SPDX-License-Identifier: Apache-2.0
// Tests of one DPU's steps at the edges of the arithmetic, and against a float64 reference (SGD-1 to SGD-5).
#include "sgd/LocalSolver.h"

#include "sgd/FixedPoint.h"
#include "sgd/Sigmoid.h"
#include "sgd/TestRows.h"

#include <gmock/gmock.h>

#include <cmath>

namespace nearbank::sgd {
namespace {

Settings settingsOf(bool isPimOpt, Loss loss = Loss::Logistic) {
  Settings settings;
  settings.isPimOpt = isPimOpt;
  settings.loss = loss;
  settings.weightExponent = isPimOpt ? 0 : 4;
  settings.batch = 1;
  return settings;
}

/// One dense row of Q31 numbers.
Rows denseRow(const std::vector<int32_t> &x, const uint8_t &label) {
  Rows rows;
  rows.count = 1;
  rows.features = static_cast<int64_t>(x.size());
  rows.labels = &label;
  rows.dense = x.data();
  return rows;
}

Rows sparseRow(const std::vector<int64_t> &offsets, const std::vector<uint32_t> &indices, const uint8_t &label) {
  Rows rows;
  rows.count = 1;
  rows.labels = &label;
  rows.offsets = offsets.data();
  rows.indices = indices.data();
  return rows;
}

TEST(LocalSolverTest, Sgd2ShiftsDropMinusOneOnly) {
  EXPECT_EQ(shiftAway(-1, 4), 0);
  EXPECT_EQ(shiftAway(-16, 4), 0);
  EXPECT_EQ(shiftAway(-17, 4), -2);
  EXPECT_EQ(shiftAway(15, 4), 0);
  EXPECT_EQ(shiftAway(-5, kNoTerm), 0);
}

TEST(LocalSolverTest, Sgd3SaturationDiffersByOneFromPimOpt) {
  EXPECT_EQ(storedWeight<false>(kOne), 0x7fffffff);
  EXPECT_EQ(storedWeight<true>(kOne), INT32_MIN); // As published: exactly 2^31 wraps.
  EXPECT_EQ(storedWeight<true>(kOne + 1), 0x7fffffff);
  EXPECT_EQ(storedWeight<true>(-kOne), INT32_MIN);
  EXPECT_EQ(storedWeight<false>(-kOne), -0x7fffffff);
  EXPECT_EQ(storedWeight<true>(-kOne - 1), -0x7fffffff);
}

TEST(LocalSolverTest, Sgd3PimOptStepIsAsPublished) {
  // A zero model gives sigmoid 1/2; the gradient of x = 1 (2^31, unsigned) at label 1 is -2^30 >> a.
  Settings settings = settingsOf(true);
  settings.rateShift = 6;
  settings.l2Shift = 12;
  LocalSolver<Q31> solver(settings, 3, false);
  std::vector<int32_t> x = {INT32_MIN, 0x40000000, 1};
  uint8_t label = 1;
  std::vector<int32_t> w(3);
  int64_t bias = 0;
  solver.addGradient(denseRow(x, label), w.data(), bias);
  EXPECT_EQ(solver.gradient(0), -(1 << 24));
  EXPECT_EQ(solver.gradient(1), -(1 << 23));
  EXPECT_EQ(solver.gradient(2), 0); // -2^30 >> 37 is -1: dropped.
  solver.step(w.data(), bias, nullptr);
  EXPECT_THAT(w, ::testing::ElementsAre(1 << 24, 1 << 23, 0));
  EXPECT_EQ(bias, 1 << 24);
  // The next step decays by 2^-18: 2^24 >> 18 = 64.
  solver.step(w.data(), bias, nullptr);
  EXPECT_EQ(w[0], (1 << 24) - 64);
}

TEST(LocalSolverTest, Sgd3PimOptHingeTakesOneAsMinusOne) {
  // The SVM kernels read the unsigned 2^31 as signed: the gradient of a feature of exactly 1 has the wrong sign.
  Settings settings = settingsOf(true, Loss::Hinge);
  settings.rateShift = 2;
  LocalSolver<Q31> solver(settings, 1, false);
  std::vector<int32_t> x = {INT32_MIN};
  uint8_t label = 1;
  int32_t w = 0;
  solver.addGradient(denseRow(x, label), &w, 0);
  EXPECT_EQ(solver.gradient(0), 1 << 29);
  EXPECT_EQ(solver.biasGradient(), -(1 << 29));
}

TEST(LocalSolverTest, Sgd3MarginIsOneOr2ToMinus15) {
  uint8_t label = 1;
  std::vector<int32_t> x = {0x7fffffff};
  for (bool isPimOpt : {false, true}) {
    Settings settings = settingsOf(isPimOpt, Loss::Hinge);
    LocalSolver<Q31> solver(settings, 1, false);
    int32_t w = 0;
    int64_t one = isPimOpt ? 0x10000 : kOne >> settings.weightExponent;
    solver.addGradient(denseRow(x, label), &w, one);
    EXPECT_EQ(solver.biasGradient(), 0) << "on the margin";
    solver.addGradient(denseRow(x, label), &w, one - 1);
    EXPECT_LT(solver.biasGradient(), 0) << "inside the margin";
  }
}

TEST(LocalSolverTest, Sgd3PimOptSparseWeighsClassesAndSticksAtMinusOne) {
  Settings settings = settingsOf(true);
  LocalSolver<Q31> solver(settings, 4, true);
  std::vector<int64_t> offsets = {0, 2};
  std::vector<uint32_t> indices = {1, 3};
  std::vector<int32_t> w(4);
  uint8_t zero = 0, one = 1;
  solver.addGradient(sparseRow(offsets, indices, zero), w.data(), 0);
  EXPECT_EQ(solver.gradient(1), kOne / 4); // sigmoid 1/2, half weight.
  solver.clear();
  solver.addGradient(sparseRow(offsets, indices, one), w.data(), 0);
  EXPECT_EQ(solver.gradient(3), -15 * (kOne / 2));
  EXPECT_EQ(solver.gradient(0), 0);
}

TEST(LocalSolverTest, Sgd2ClassWeightsScaleTheGradient) {
  for (Loss loss : {Loss::Logistic, Loss::Hinge}) {
    Settings plain = settingsOf(false, loss), weighted = plain;
    weighted.classWeights = {64, 128};
    std::vector<int32_t> x = {1 << 30, -(1 << 29)};
    std::vector<int32_t> w(2);
    for (uint8_t label : {0, 1}) {
      LocalSolver<Q31> a(plain, 2, false), b(weighted, 2, false);
      a.addGradient(denseRow(x, label), w.data(), 0);
      b.addGradient(denseRow(x, label), w.data(), 0);
      for (int64_t j : {0, 1})
        EXPECT_EQ(a.gradient(j), b.gradient(j) * (label ? 2 : 4));
    }
  }
}

TEST(LocalSolverTest, OneHotRowsAreRowsWithValuesOfOne) {
  for (Loss loss : {Loss::Logistic, Loss::Hinge}) {
    SparseSample ones(false, 40, 16, 4);
    Settings settings = settingsOf(false, loss);
    settings.arithmetic = Arithmetic::Float32;
    SparseSample explicitOnes = ones;
    explicitOnes.values.assign(ones.indices.size(), 1.0);
    std::vector<float> w(16, 0.25f);
    LocalSolver<F32> a(settings, 16, true), b(settings, 16, true);
    RowBuffer buffer;
    a.addGradient(ones.rows(settings)->rows(0, 40, buffer), w.data(), 0.5f);
    b.addGradient(explicitOnes.rows(settings)->rows(0, 40, buffer), w.data(), 0.5f);
    for (int64_t j = 0; j < 16; ++j)
      EXPECT_EQ(a.gradient(j), b.gradient(j));
  }
}

TEST(LocalSolverTest, FixedPointFollowsFloat64) {
  for (Loss loss : {Loss::Logistic, Loss::Hinge}) {
    Settings settings = settingsOf(false, loss);
    settings.batch = 4;
    settings.rateShift = 2;
    settings.l2Shift = 6;
    DenseSample sample(false, 400, 12);
    std::shared_ptr<InMemoryRows> rows = sample.rows(settings);
    LocalSolver<Q31> solver(settings, 12, false);
    std::vector<int32_t> w(12);
    int64_t bias = 0;
    std::vector<double> reference(13);
    RowBuffer buffer;
    for (int64_t from = 0; from < 400; from += 4) {
      solver.addGradient(rows->rows(from, from + 4, buffer), w.data(), bias);
      solver.step(w.data(), bias, nullptr);
      std::vector<double> gradient(13);
      for (int64_t r = from; r < from + 4; ++r) {
        const double *x = sample.values.data() + r * 12;
        double z = reference[12];
        for (int j = 0; j < 12; ++j)
          z += x[j] * reference[j];
        double y = sample.labels[r] ? 1 : -1;
        double c = loss == Loss::Hinge ? (y * z < 1 ? -y : 0) : 1 / (1 + std::exp(-z)) - (y > 0);
        for (int j = 0; j < 12; ++j)
          gradient[j] += c * x[j];
        gradient[12] += c;
      }
      for (int j = 0; j < 12; ++j)
        reference[j] -= 0.25 * gradient[j] / 4 + reference[j] / 256;
      reference[12] -= 0.25 * gradient[12] / 4;
    }
    // 100 steps; the sigmoid's table is good to 2e-5, and a rate of 1/4 adds up to 25 of them at the most.
    for (int j = 0; j < 12; ++j)
      EXPECT_NEAR(double(w[j]) * 0x1p-27, reference[j], 5e-4) << j;
  }
}

} // namespace
} // namespace nearbank::sgd
