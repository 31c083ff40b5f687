// SPDX-License-Identifier: Apache-2.0
// Tests that the training kernel's source and the twin compute the same bits, for every variant and number of tasklets.
#include "sgd/DeviceImage.h"
#include "sgd/TestRows.h"
#include "sgd/device/native/NativeDpu.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

namespace nearbank::sgd {
namespace {

struct Case {
  std::string variant;
  Algorithm algorithm;
  int numTasklets = 1;
  int64_t features = 1;
  int rateShift = 1;

  Loss loss() const { return variant.starts_with("svm") ? Loss::Hinge : Loss::Logistic; }
  bool isSparse() const { return variant.find("dense") == std::string::npos; }
  bool hasValues() const { return variant.find("values") != std::string::npos; }
  bool isFloat() const { return variant.ends_with("f32"); }
  bool isPimOpt() const { return variant.ends_with("pimopt"); }
};

void PrintTo(const Case &c, std::ostream *out) {
  std::string name = c.variant;
  std::replace(name.begin(), name.end(), '-', '_');
  *out << name << "_" << int(c.algorithm);
}

Settings settingsOf(const Case &c) {
  Settings settings;
  settings.algorithm = c.algorithm;
  settings.loss = c.loss();
  settings.arithmetic = c.isFloat() ? Arithmetic::Float32 : Arithmetic::Q31;
  settings.isPimOpt = c.isPimOpt();
  settings.numTasklets = c.numTasklets;
  settings.batch = 4;
  settings.rateShift = c.rateShift;
  settings.l2Shift = 3;
  settings.rate = 0.5f;
  settings.l2 = 0.125f;
  settings.weightExponent = c.isPimOpt() ? 0 : 3;
  settings.classWeights = {256, 179};
  settings.floatClassWeights = {1.0f, 0.7f};
  return settings;
}

template <class A> void compare(const Case &c) {
  Settings settings = settingsOf(c);
  // 19 rows: the last batch is a short one.
  std::shared_ptr<InMemoryRows> source =
      c.isSparse() ? SparseSample(c.hasValues(), 19, c.features, std::min<int64_t>(7, c.features)).rows(settings)
                   : DenseSample(c.isPimOpt(), 19, c.features).rows(settings);
  RowBuffer buffer;
  Rows rows = source->rows(0, 19, buffer);
  int64_t features = source->numFeatures();
  // Weights near the ends of the range, so that steps saturate, and around zero.
  std::mt19937 random(11);
  std::vector<typename A::Weight> weights(features), pull(features);
  for (int64_t j = 0; j < features; ++j) {
    if constexpr (std::is_same_v<A, Q31>) {
      constexpr int32_t ends[] = {INT32_MAX, -INT32_MAX, -1, 0, 1};
      weights[j] = random() % 3 == 0 ? ends[random() % 5] : static_cast<int32_t>(random()) >> 8;
      pull[j] = random() % 5 == 0 ? ends[random() % 5] : static_cast<int32_t>(random()) >> 4;
    } else {
      weights[j] = static_cast<float>(double(random()) / 2147483648.0 - 1.0);
      pull[j] = static_cast<float>(double(random()) / 2147483648.0 - 1.0);
    }
  }
  typename A::Bias bias = typename A::Bias(std::is_same_v<A, Q31> ? 12345678 : 0.25);
  bool isGradient = c.algorithm == Algorithm::GaSgd;
  int64_t first = isGradient ? 4 : 0, count = isGradient ? 1 : 5;

  DeviceImage image(settings, *source, 19);
  NativeMemory memory(image);
  image.load(memory, rows);
  image.setModel<A>(memory, weights.data(), bias, pull.data());
  image.setSteps(first, count);
  runNative(c.variant, c.numTasklets, image, memory);

  LocalSolver<A> solver(settings, features, c.isSparse());
  for (int64_t step = first; step < first + count; ++step) {
    int64_t from = step * 4, to = std::min<int64_t>(19, from + 4);
    solver.addGradient(source->rows(from, to, buffer), weights.data(), bias);
    if (!isGradient)
      solver.step(weights.data(), bias, c.algorithm == Algorithm::Admm ? pull.data() : nullptr);
  }
  if (isGradient) {
    std::vector<typename A::Sum> gradient(features + 1);
    image.addGradientTo<A>(memory, gradient.data());
    for (int64_t j = 0; j < features; ++j)
      ASSERT_EQ(gradient[j], solver.gradient(j)) << "feature " << j;
    EXPECT_EQ(gradient[features], solver.biasGradient());
    return;
  }
  std::vector<typename A::Weight> computed(features);
  typename A::Bias computedBias;
  image.getModel<A>(memory, computed.data(), computedBias);
  for (int64_t j = 0; j < features; ++j)
    ASSERT_EQ(computed[j], weights[j]) << "feature " << j;
  EXPECT_EQ(computedBias, bias);
}

class KernelBitsTest : public ::testing::TestWithParam<Case> {};

TEST_P(KernelBitsTest, ComputesTheBitsOfTheTwin) {
  Case c = GetParam();
  for (int tasklets : {1, 11, 16})
    for (int64_t features : {1, 63, 130, 5000}) {
      SCOPED_TRACE(::testing::Message() << tasklets << " tasklets, " << features << " features");
      c.numTasklets = tasklets;
      c.features = features;
      if (c.isFloat())
        compare<F32>(c);
      else
        compare<Q31>(c);
      // Products that are not shifted beyond their 31 bits.
      c.rateShift = -3;
      if (!c.isFloat() && !c.isPimOpt())
        compare<Q31>(c);
      c.rateShift = 1;
    }
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (const std::string &variant : nativeVariants())
    for (Algorithm algorithm : {Algorithm::GaSgd, Algorithm::MaSgd, Algorithm::Admm})
      cases.push_back({variant, algorithm});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, KernelBitsTest, ::testing::ValuesIn(allCases()), ::testing::PrintToStringParamName());

TEST(KernelTest, RowsWithoutEntriesMoveTheBiasOnly) {
  Settings settings = settingsOf({"lr-onehot-q31", Algorithm::MaSgd});
  SparseSample sample(false, 5, 3, 1);
  sample.offsets.assign(6, 0);
  sample.indices.clear();
  RowBuffer buffer;
  std::shared_ptr<InMemoryRows> source = sample.rows(settings);
  Rows rows = source->rows(0, 5, buffer);
  DeviceImage image(settings, *source, 5);
  NativeMemory memory(image);
  image.load(memory, rows);
  std::vector<int32_t> weights = {1 << 20, -5, 0};
  image.setModel<Q31>(memory, weights.data(), 99);
  image.setSteps(0, 1);
  runNative("lr-onehot-q31", 11, image, memory);

  LocalSolver<Q31> solver(settings, 3, true);
  int64_t bias = 99, computedBias;
  solver.addGradient(source->rows(0, 4, buffer), weights.data(), bias);
  solver.step(weights.data(), bias, nullptr);
  std::vector<int32_t> computed(3);
  image.getModel<Q31>(memory, computed.data(), computedBias);
  EXPECT_EQ(computed, weights);
  EXPECT_EQ(computedBias, bias);
}

TEST(KernelVariantTest, EveryVariantIsBuilt) {
  // Losses x layouts x kinds of arithmetic; PIM-Opt has no sparse rows with values.
  EXPECT_EQ(nativeVariants().size(), 2u * (3 + 3 + 2));
}

} // namespace
} // namespace nearbank::sgd
