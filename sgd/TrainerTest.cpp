// SPDX-License-Identifier: Apache-2.0
// Tests of whole jobs: invariants between algorithms, threads, ranks and ways of synchronising.
#include "sgd/Trainer.h"

#include "runtime/Error.h"
#include "sgd/Evaluation.h"
#include "sgd/GeneratedRows.h"
#include "sgd/TestRows.h"

#include <gmock/gmock.h>

#include <cstring>

namespace nearbank::sgd {
namespace {

struct Case {
  Algorithm algorithm;
  Loss loss;
  Arithmetic arithmetic;
  bool isSparse;
  bool isPimOpt;
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << (c.algorithm == Algorithm::GaSgd   ? "ga"
           : c.algorithm == Algorithm::MaSgd ? "ma"
                                             : "admm")
       << (c.loss == Loss::Hinge ? "_svm" : "_lr") << (c.arithmetic == Arithmetic::Q31 ? "_q31" : "_f32")
       << (c.isSparse ? "_sparse" : "_dense") << (c.isPimOpt ? "_pimopt" : "");
}

Settings settingsOf(const Case &c, int64_t dpus) {
  Settings settings;
  settings.algorithm = c.algorithm;
  settings.loss = c.loss;
  settings.arithmetic = c.arithmetic;
  settings.isPimOpt = c.isPimOpt;
  settings.numDpus = dpus;
  settings.batch = 4;
  settings.rateShift = c.isPimOpt ? 3 : 0;
  settings.rate = 1.0f;
  settings.l2Shift = 8;
  settings.l2 = 0x1p-8f;
  settings.alphaShift = 10;
  settings.alpha = 0x1p-10f;
  settings.weightExponent = c.isPimOpt ? 0 : 4;
  settings.numThreads = 1;
  return settings;
}

/// 397 rows: they divide neither among DPUs nor into batches.
std::shared_ptr<RowSource> rowsOf(const Case &c, const Settings &settings) {
  if (c.isSparse)
    return SparseSample(false, 397, 24, 5).rows(settings);
  return DenseSample(c.isPimOpt, 397, 20).rows(settings);
}

std::vector<double> trained(const Case &c, const Settings &settings, int epochs) {
  std::unique_ptr<Trainer> trainer = Trainer::make(settings, rowsOf(c, settings));
  for (int64_t i = 0; i < epochs * trainer->roundsPerEpoch(); ++i)
    trainer->runRound();
  return trainer->model();
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (Algorithm algorithm : {Algorithm::GaSgd, Algorithm::MaSgd, Algorithm::Admm})
    for (Loss loss : {Loss::Logistic, Loss::Hinge})
      for (bool isSparse : {false, true}) {
        cases.push_back({algorithm, loss, Arithmetic::Q31, isSparse, false});
        cases.push_back({algorithm, loss, Arithmetic::Q31, isSparse, true});
        cases.push_back({algorithm, loss, Arithmetic::Float32, isSparse, false});
      }
  return cases;
}

class TrainerTest : public ::testing::TestWithParam<Case> {};

TEST_P(TrainerTest, AnyNumberOfThreadsGivesTheSameBits) {
  Settings settings = settingsOf(GetParam(), 50);
  std::vector<double> one = trained(GetParam(), settings, 2);
  settings.numThreads = 3;
  EXPECT_EQ(trained(GetParam(), settings, 2), one);
}

TEST_P(TrainerTest, AnyNumberOfRanksGivesTheSameBits) {
  Settings settings = settingsOf(GetParam(), 50);
  std::vector<double> one = trained(GetParam(), settings, 2);
  for (int numRanks : {2, 3}) {
    std::vector<std::unique_ptr<Trainer>> ranks;
    for (int rank = 0; rank < numRanks; ++rank)
      ranks.push_back(Trainer::make(settings, rowsOf(GetParam(), settings), rank, numRanks));
    for (int64_t i = 0; i < 2 * ranks[0]->roundsPerEpoch(); ++i) {
      std::vector<std::byte> all;
      for (auto &rank : ranks) {
        rank->computeRound();
        std::span<const std::byte> part = rank->partialSums();
        all.insert(all.end(), part.begin(), part.end());
      }
      for (auto &rank : ranks)
        rank->finishRound(all);
    }
    for (auto &rank : ranks)
      EXPECT_EQ(rank->model(), one) << numRanks << " ranks";
  }
}

TEST_P(TrainerTest, StateGoesOnWhereItWasSaved) {
  Settings settings = settingsOf(GetParam(), 7);
  std::vector<double> straight = trained(GetParam(), settings, 3);
  std::unique_ptr<Trainer> first = Trainer::make(settings, rowsOf(GetParam(), settings));
  for (int64_t i = 0; i < first->roundsPerEpoch(); ++i)
    first->runRound();
  std::unique_ptr<Trainer> second = Trainer::make(settings, rowsOf(GetParam(), settings));
  std::string state;
  first->save([&](std::string_view piece) { state += piece; });
  auto restoreFrom = [&second](std::string_view text) {
    second->restore([&text](std::span<char> into) {
      size_t size = text.copy(into.data(), into.size());
      text.remove_prefix(size);
      return size;
    });
  };
  restoreFrom(state);
  for (int64_t i = 0; i < 2 * second->roundsPerEpoch(); ++i)
    second->runRound();
  EXPECT_EQ(second->model(), straight);
  EXPECT_EQ(second->numRounds(), 3 * second->roundsPerEpoch());
  EXPECT_THROW(restoreFrom("short"), UserError);
  EXPECT_THROW(restoreFrom(state + "x"), UserError);
}

TEST_P(TrainerTest, LossFalls) {
  // PIM-Opt's margin of 2^-15 and weights below one leave little to see of a hinge loss with margin 1.
  Case c = GetParam();
  if (c.isPimOpt && c.loss == Loss::Hinge)
    c.loss = Loss::Logistic;
  Settings settings = settingsOf(c, 8);
  std::shared_ptr<RowSource> rows = rowsOf(c, settings);
  std::unique_ptr<Trainer> trainer = Trainer::make(settings, rows);
  double before = evaluate(settings, *rows, trainer->model(), false).loss;
  for (int64_t i = 0; i < 5 * trainer->roundsPerEpoch(); ++i)
    trainer->runRound();
  Evaluation after = evaluate(settings, *rows, trainer->model(), true);
  // PIM-Opt counts positives of sparse rows thirty times as much as negatives, which the plain loss does not.
  if (!(c.isPimOpt && c.isSparse)) {
    EXPECT_LT(after.loss, 0.95 * before);
  }
  EXPECT_GT(after.auc, 0.8);
}

TEST_P(TrainerTest, CountedBytesEqualTheClosedForm) {
  Settings settings = settingsOf(GetParam(), 64);
  std::unique_ptr<Trainer> trainer = Trainer::make(settings, rowsOf(GetParam(), settings));
  for (int i = 0; i < 3; ++i)
    trainer->runRound();
  int64_t counted = 0;
  for (Cargo cargo : {Cargo::Model, Cargo::Gradient, Cargo::Pull})
    counted += trainer->ledger().bytes(cargo, true) + trainer->ledger().bytes(cargo, false);
  EXPECT_EQ(counted, 3 * closedFormBytes(settings, trainer->sizes()));
}

INSTANTIATE_TEST_SUITE_P(All, TrainerTest, ::testing::ValuesIn(allCases()), ::testing::PrintToStringParamName());

class LocalCase : public ::testing::TestWithParam<Case> {};

TEST_P(LocalCase, WithOneDpuModelAveragingIsGradientAveraging) {
  Case ga = GetParam();
  ga.algorithm = Algorithm::GaSgd;
  Case ma = ga;
  ma.algorithm = Algorithm::MaSgd;
  EXPECT_EQ(trained(ma, settingsOf(ma, 1), 2), trained(ga, settingsOf(ga, 1), 2));
}

TEST_P(LocalCase, WithoutPullAdmmIsLocalSgd) {
  // In the first round u and z are zero, so that each DPU runs plain SGD; MA-SGD once an epoch does the same.
  Case admm = GetParam();
  admm.algorithm = Algorithm::Admm;
  Case ma = admm;
  ma.algorithm = Algorithm::MaSgd;
  Settings settings = settingsOf(ma, 5);
  settings.averageEvery = 0;
  EXPECT_EQ(trained(admm, settingsOf(admm, 5), 1), trained(ma, settings, 1));
}

std::vector<Case> localCases() {
  std::vector<Case> cases;
  for (const Case &c : allCases())
    if (c.algorithm == Algorithm::MaSgd)
      cases.push_back(c);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, LocalCase, ::testing::ValuesIn(localCases()), ::testing::PrintToStringParamName());

TEST(DispersionTest, IsTheDistanceFromTheMean) {
  // The models of two DPUs are those of two jobs on one DPU each.
  for (bool isSparse : {false, true}) {
    Case c{Algorithm::MaSgd, Loss::Logistic, Arithmetic::Q31, isSparse, false};
    Settings one = settingsOf(c, 1), two = settingsOf(c, 2);
    one.batch = two.batch = 64;
    SparseSample sparse(false, 120, 24, 5);
    DenseSample dense(false, 120, 20);
    auto part = [&](const Settings &settings, int64_t begin, int64_t end) -> std::shared_ptr<RowSource> {
      if (!isSparse)
        return std::make_shared<InMemoryRows>(settings, dense.values.data() + begin * 20,
                                              std::span(dense.labels).subspan(begin, end - begin), 20,
                                              std::span<const int64_t>());
      std::vector<int64_t> offsets;
      for (int64_t row = begin; row <= end; ++row)
        offsets.push_back(sparse.offsets[row] - sparse.offsets[begin]);
      return std::make_shared<InMemoryRows>(settings, offsets, sparse.indices.data() + sparse.offsets[begin], nullptr,
                                            std::span(sparse.labels).subspan(begin, end - begin), 24,
                                            std::span<const int64_t>());
    };
    std::unique_ptr<Trainer> together = Trainer::make(two, part(two, 0, 120));
    std::unique_ptr<Trainer> first = Trainer::make(one, part(one, 0, 60)),
                             second = Trainer::make(one, part(one, 60, 120));
    together->runRound();
    first->runRound();
    second->runRound();
    std::vector<double> a = first->model(), b = second->model();
    double squares = 0;
    for (size_t j = 0; j + 1 < a.size(); ++j)
      squares += (a[j] - b[j]) * (a[j] - b[j]);
    Dispersion dispersion = together->dispersion();
    // Each is half of their distance from the mean.
    EXPECT_NEAR(dispersion.localSquares / 2 - dispersion.meanSquare, squares / 4, 1e-6 * squares);
    EXPECT_GT(squares, 1e-6);
  }
}

TEST(SynchronisationTest, RingEqualsTheParameterServerInFixedPoint) {
  for (const Case &c : allCases()) {
    if (c.arithmetic != Arithmetic::Q31 || c.algorithm == Algorithm::Admm)
      continue;
    Settings settings = settingsOf(c, 13);
    std::vector<double> server = trained(c, settings, 2);
    settings.synchronisation = Synchronisation::Ring;
    EXPECT_EQ(trained(c, settings, 2), server);
    settings.synchronisation = Synchronisation::InNetwork;
    EXPECT_EQ(trained(c, settings, 2), server);
    settings.synchronisation = Synchronisation::Shared;
    EXPECT_EQ(trained(c, settings, 2), server);
  }
}

TEST(SynchronisationTest, AdmmSendsTwoVectorsUpTheNetwork) {
  Case c{Algorithm::Admm, Loss::Logistic, Arithmetic::Q31, false, false};
  Settings settings = settingsOf(c, 16);
  std::vector<double> server = trained(c, settings, 2);
  settings.synchronisation = Synchronisation::InNetwork;
  EXPECT_EQ(trained(c, settings, 2), server);
  std::unique_ptr<Trainer> trainer = Trainer::make(settings, rowsOf(c, settings));
  trainer->runRound();
  EXPECT_EQ(trainer->ledger().bytes(Cargo::Link, true), 16 * 3 * 88);
}

TEST(SynchronisationTest, SharedMemoryMovesOneVectorForEachGroup) {
  Case c{Algorithm::MaSgd, Loss::Logistic, Arithmetic::Q31, false, false};
  Settings settings = settingsOf(c, 20);
  settings.synchronisation = Synchronisation::Shared;
  std::unique_ptr<Trainer> trainer = Trainer::make(settings, rowsOf(c, settings));
  trainer->runRound();
  // Three groups of at most 8 DPUs: 20 features of 4 B to them, 8 B from them.
  int64_t host = trainer->ledger().bytes(Cargo::Model, true) + trainer->ledger().bytes(Cargo::Model, false);
  EXPECT_EQ(host, 3 * (80 + 160));
  EXPECT_EQ(closedFormBytes(settings, trainer->sizes()), host);
  EXPECT_EQ(trainer->ledger().bytes(Cargo::Link, true), 20 * (160 + 80 + 16));
  EXPECT_EQ(closedFormLinkBytes(settings, trainer->sizes()), 20 * (160 + 80 + 16));
}

TEST(TrafficOfRunsTest, BytesAt64DpusScaleToThePublishedRatios) {
  // PIM-Opt's YFCC shape at 2,048 DPUs, weak scaling: 3,328 rows and 416 batches of 8 for each DPU, here with 32 rows
  // and 4 batches on 64 DPUs. The bytes of an epoch that were counted grow with DPUs and batches.
  auto bytesOfEpoch = [](Algorithm algorithm) {
    Case c{algorithm, Loss::Logistic, Arithmetic::Q31, false, true};
    Settings settings = settingsOf(c, 64);
    settings.batch = 8;
    std::unique_ptr<Trainer> trainer =
        Trainer::make(settings, std::make_shared<YfccLikeRows>(settings, YfccLikeRows::Shape{.rows = 64 * 32}));
    for (int64_t i = 0; i < trainer->roundsPerEpoch(); ++i)
      trainer->runRound();
    int64_t counted = 0;
    for (Cargo cargo : {Cargo::Model, Cargo::Pull})
      counted += trainer->ledger().bytes(cargo, true) + trainer->ledger().bytes(cargo, false);
    return counted * (2048 / 64);
  };
  int64_t ma = bytesOfEpoch(Algorithm::MaSgd) * (416 / 4), admm = bytesOfEpoch(Algorithm::Admm);
  EXPECT_EQ(ma, int64_t(416) * 2 * 16384 * 2048);
  EXPECT_EQ(admm, int64_t(3) * 16384 * 2048);
  EXPECT_EQ(ma / admm, 277);
}

TEST(SynchronisationTest, LinkBytesEqualTheirClosedForms) {
  Case c{Algorithm::MaSgd, Loss::Logistic, Arithmetic::Q31, false, false};
  for (Synchronisation way : {Synchronisation::Ring, Synchronisation::Gossip, Synchronisation::InNetwork}) {
    Settings settings = settingsOf(c, 16);
    settings.synchronisation = way;
    std::unique_ptr<Trainer> trainer = Trainer::make(settings, rowsOf(c, settings));
    trainer->runRound();
    // 20 features of 4 B and a bias of 8 B; chunks of a ring are padded to 8 B.
    int64_t payload = 88;
    int64_t expected = way == Synchronisation::Ring ? 16 * 2 * 15 * 8 : 16 * 2 * payload;
    EXPECT_EQ(trainer->ledger().bytes(Cargo::Link, true), expected);
    EXPECT_EQ(closedFormLinkBytes(settings, trainer->sizes()), expected);
  }
}

TEST(SynchronisationTest, GossipComesCloseToTheServer) {
  Case c{Algorithm::MaSgd, Loss::Logistic, Arithmetic::Q31, false, false};
  Settings settings = settingsOf(c, 8);
  std::shared_ptr<RowSource> rows = rowsOf(c, settings);
  double server = evaluate(settings, *rows, trained(c, settings, 5), false).accuracy;
  settings.synchronisation = Synchronisation::Gossip;
  double gossip = evaluate(settings, *rows, trained(c, settings, 5), false).accuracy;
  EXPECT_NEAR(gossip, server, 0.02);
}

TEST(SynchronisationTest, StalenessZeroIsSynchronousAndMoreIsNot) {
  for (Algorithm algorithm : {Algorithm::MaSgd, Algorithm::GaSgd}) {
    Case c{algorithm, Loss::Logistic, Arithmetic::Q31, false, false};
    Settings settings = settingsOf(c, 8);
    std::vector<double> synchronous = trained(c, settings, 2);
    settings.staleness = 2;
    std::vector<double> stale = trained(c, settings, 2);
    EXPECT_NE(stale, synchronous);
    std::shared_ptr<RowSource> rows = rowsOf(c, settings);
    EXPECT_NEAR(evaluate(settings, *rows, stale, false).accuracy,
                evaluate(settings, *rows, synchronous, false).accuracy, 0.05);
  }
}

TEST(TrainerErrorsTest, JobsThatDoNotFitAreRefusedWithTheFullText) {
  Case c{Algorithm::MaSgd, Loss::Logistic, Arithmetic::Q31, false, false};
  Settings settings = settingsOf(c, 8);
  settings.batch = 10;
  try {
    Trainer::make(settings, rowsOf(c, settings));
    FAIL() << "a batch of 10 was accepted";
  } catch (const UserError &error) {
    EXPECT_EQ(error.report().text(),
              "error[NB0701]: the training job does not fit together\n"
              "  expected: a batch that is a power of two: fixed-point steps divide by shifting\n"
              "  actual:   batch of 10\n"
              "  fix:      --batch 8\n"
              "  more:     nearbank explain NB0701");
  }
}

} // namespace
} // namespace nearbank::sgd
