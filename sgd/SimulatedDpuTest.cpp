// SPDX-License-Identifier: Apache-2.0
// Tests that simulated DPUs and their twin train the same models bit for bit, and what a simulated round costs.
#include "sgd/SimulatedDpu.h"

#include "runtime/Error.h"
#include "sgd/TestRows.h"
#include "sgd/Trainer.h"

#include <gmock/gmock.h>

namespace nearbank::sgd {
namespace {

struct Case {
  std::string variant;
  Algorithm algorithm;
  int numTasklets = 16;
  bool isFast = false;

  bool isSparse() const { return variant.find("dense") == std::string::npos; }
  bool hasValues() const { return variant.find("values") != std::string::npos; }
  bool isPimOpt() const { return variant.ends_with("pimopt"); }

  std::shared_ptr<const DpuSimulation> simulation() const {
    return DpuSimulation::load(std::string(NEARBANK_KERNEL_FOLDER) + "/" + variant + "-" + std::to_string(numTasklets),
                               dpu::readDpuConfig(NEARBANK_DPU_MACHINE, 64), isFast ? NEARBANK_TRANSLATOR : "");
  }

  Settings settings(int64_t dpus) const {
    Settings settings;
    settings.algorithm = algorithm;
    settings.loss = variant.starts_with("svm") ? Loss::Hinge : Loss::Logistic;
    settings.arithmetic = variant.ends_with("f32") ? Arithmetic::Float32 : Arithmetic::Q31;
    settings.isPimOpt = isPimOpt();
    settings.numDpus = dpus;
    settings.numTasklets = numTasklets;
    settings.batch = 4;
    settings.rateShift = isPimOpt() ? 3 : 0;
    settings.rate = 1.0f;
    settings.l2Shift = 8;
    settings.l2 = 0x1p-8f;
    settings.alphaShift = 10;
    settings.alpha = 0x1p-10f;
    settings.weightExponent = isPimOpt() ? 0 : 4;
    settings.classWeights = {256, 179};
    settings.floatClassWeights = {1.0f, 0.7f};
    return settings;
  }

  std::shared_ptr<RowSource> rows(const Settings &settings, int64_t count) const {
    if (isSparse())
      return SparseSample(hasValues(), count, 70, 5).rows(settings);
    return DenseSample(isPimOpt(), count, 70).rows(settings);
  }
};

void PrintTo(const Case &c, std::ostream *out) {
  std::string name = c.variant;
  std::replace(name.begin(), name.end(), '-', '_');
  *out << name << "_" << int(c.algorithm) << "_" << c.numTasklets << (c.isFast ? "_fast" : "_exact");
}

class SimulatedDpuTest : public ::testing::TestWithParam<Case> {};

TEST_P(SimulatedDpuTest, TrainsTheModelOfTheTwin) {
  // 43 rows: they divide neither among 5 DPUs nor into batches. The first DPU of one has them all.
  const Case &c = GetParam();
  for (int64_t dpus : {5, 1}) {
    Settings settings = c.settings(dpus);
    std::unique_ptr<Trainer> twin = Trainer::make(settings, c.rows(settings, 43));
    std::unique_ptr<Trainer> simulated = Trainer::make(settings, c.rows(settings, 43), 0, 1, c.simulation());
    for (int64_t round = 0; round < 2 * twin->roundsPerEpoch(); ++round) {
      twin->runRound();
      simulated->runRound();
      ASSERT_EQ(simulated->model(), twin->model()) << dpus << " DPUs, round " << round;
      EXPECT_GT(simulated->simulatedRound().slowestCycles, 0u);
    }
    EXPECT_EQ(twin->simulatedRound().slowestCycles, 0u);
  }
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (Algorithm algorithm : {Algorithm::GaSgd, Algorithm::MaSgd, Algorithm::Admm}) {
    for (std::string loss : {"lr-", "svm-"})
      for (const char *kind : {"dense-q31", "onehot-q31", "values-q31", "dense-f32", "onehot-f32", "values-f32",
                               "dense-pimopt", "onehot-pimopt"})
        cases.push_back({loss + kind, algorithm});
    for (const char *variant : {"lr-dense-q31", "svm-values-q31", "lr-onehot-pimopt", "svm-dense-f32"})
      for (int tasklets : {1, 24})
        cases.push_back({variant, algorithm, tasklets});
  }
  if (NEARBANK_TRANSLATOR[0] != '\0') // Builds without LLVM have no engine `fast`.
    for (size_t i = 0, count = cases.size(); i < count; ++i) {
      cases.push_back(cases[i]);
      cases.back().isFast = true;
    }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedDpuTest, ::testing::ValuesIn(allCases()), ::testing::PrintToStringParamName());

TEST(SimulatedRoundTest, MovesTheBytesOfTheClosedForm) {
  for (Algorithm algorithm : {Algorithm::GaSgd, Algorithm::MaSgd, Algorithm::Admm})
    for (const char *variant : {"lr-dense-q31", "lr-onehot-q31", "lr-dense-f32"}) {
      Case c{variant, algorithm};
      Settings settings = c.settings(1);
      std::shared_ptr<RowSource> rows = c.rows(settings, 8);
      std::shared_ptr<const DpuSimulation> simulation = c.simulation();
      SimulatedDpu dpu(*simulation, settings, *rows, 0, 8);
      EXPECT_EQ(dpu.movedBytes(), 0);
      WireSizes sizes(settings, 70, c.isSparse(), rows->maxRowEntries(), c.hasValues());
      std::vector<int64_t> sum(71);
      std::vector<float> floatSum(71), floatWeights(70), floatPull(70);
      std::vector<int32_t> weights(70), pull(70);
      int64_t bias = 0;
      float floatBias = 0;
      if (algorithm == Algorithm::GaSgd && variant == std::string("lr-dense-f32"))
        dpu.addGradient<F32>(0, {floatWeights, 0}, floatSum.data());
      else if (algorithm == Algorithm::GaSgd)
        dpu.addGradient<Q31>(0, {weights, 0}, sum.data());
      else if (variant == std::string("lr-dense-f32"))
        dpu.runSteps<F32>(0, 1, floatWeights.data(), floatBias, floatPull.data());
      else
        dpu.runSteps<Q31>(0, 1, weights.data(), bias, pull.data());
      EXPECT_EQ(dpu.movedBytes(), closedFormBytes(settings, sizes) + 2 * sizes.biasBytes) << variant;
    }
}

TEST(SimulatedRoundTest, MoreTaskletsAreFasterAndDmaCostsTime) {
  uint64_t cycles[3];
  int index = 0;
  for (int tasklets : {1, 16, 24}) {
    Case c{"lr-dense-q31", Algorithm::MaSgd, tasklets};
    Settings settings = c.settings(2);
    std::unique_ptr<Trainer> trainer = Trainer::make(settings, c.rows(settings, 64), 0, 1, c.simulation());
    trainer->runRound();
    cycles[index++] = trainer->simulatedRound().slowestCycles;
  }
  // 70 features are two blocks: two tasklets have work.
  EXPECT_LT(cycles[1], cycles[0]);
  Case c{"lr-dense-q31", Algorithm::MaSgd};
  Settings settings = c.settings(2);
  std::unique_ptr<Trainer> trainer = Trainer::make(settings, c.rows(settings, 64));
  std::shared_ptr<const DpuSimulation> simulation = c.simulation();
  SampledRound sample = trainer->sampleRound(*simulation, 1 << 20);
  // The sample is of the first DPU, the round of the slower one; multiplications take as long as their operands need.
  EXPECT_NEAR(sample.cycles / double(cycles[1]), 1.0, 1e-3);
  EXPECT_LT(sample.cyclesWithoutDma, sample.cycles);
  EXPECT_EQ(sample.simulatedSteps, sample.steps);
}

TEST(SimulatedRoundTest, CutSamplesComeCloseToWholeRounds) {
  for (const char *variant : {"lr-dense-q31", "svm-values-q31"}) {
    Case c{variant, Algorithm::Admm};
    Settings settings = c.settings(2);
    std::unique_ptr<Trainer> trainer = Trainer::make(settings, c.rows(settings, 256));
    std::shared_ptr<const DpuSimulation> simulation = c.simulation();
    SampledRound whole = trainer->sampleRound(*simulation, 1 << 20), cut = trainer->sampleRound(*simulation, 1400);
    EXPECT_EQ(whole.steps, 32);
    EXPECT_LT(cut.simulatedSteps, whole.simulatedSteps);
    // Rows differ in entries, and fewer of an SVM's are active later on.
    EXPECT_NEAR(cut.cycles / whole.cycles, 1.0, c.settings(1).loss == Loss::Hinge ? 0.25 : 0.02);
  }
}

TEST(SimulatedRoundTest, RowsBeyondMramAreRefused) {
  Case c{"lr-dense-q31", Algorithm::MaSgd};
  Settings settings = c.settings(1);
  settings.isPimOpt = false;
  struct Endless : RowSource {
    int64_t numRows() const override { return 1 << 20; }
    int64_t numFeatures() const override { return 4096; }
    bool isSparse() const override { return false; }
    int64_t maxRowEntries() const override { return 4096; }
    bool hasValues() const override { return false; }
    Rows rows(int64_t, int64_t, RowBuffer &) const override { return {}; }
  };
  EXPECT_THROW(SimulatedDpu(*c.simulation(), settings, Endless(), 0, 1 << 20), UserError);
}

} // namespace
} // namespace nearbank::sgd
