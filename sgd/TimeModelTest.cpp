// SPDX-License-Identifier: Apache-2.0
// Tests of the time model: measured points come back, and work has the right proportions (TM-1 to TM-6).
#include "sgd/TimeModel.h"

#include <gmock/gmock.h>

namespace nearbank::sgd {
namespace {

const dpu::DpuConfig &machine(bool hasLinks = false) {
  static const dpu::DpuConfig plain = dpu::readDpuConfig(NEARBANK_DPU_MACHINE, 2560);
  static const dpu::DpuConfig linked = dpu::readDpuConfig(NEARBANK_LINKED_MACHINE, 2560);
  return hasLinks ? linked : plain;
}

TEST(TimeModelTest, Tm1MeasuredTransfersComeBack) {
  // 40 ranks with 1 MiB for each DPU took 46,829 us to them and 202,280 us from them.
  EXPECT_NEAR(transferSeconds(machine(), true, 1 << 20, 2560, 2560), 46829e-6, 1e-9);
  EXPECT_NEAR(transferSeconds(machine(), false, 1 << 20, 2560, 2560), 202280e-6, 1e-9);
  EXPECT_EQ(transferSeconds(machine(), true, 0, 64, 64), 0);
  // Small transfers take as long as the smallest that was measured; one DPU takes a quarter of a rank's time.
  EXPECT_EQ(transferSeconds(machine(), true, 8, 64, 64), transferSeconds(machine(), true, 32, 64, 64));
  EXPECT_DOUBLE_EQ(transferSeconds(machine(), true, 4096, 1, 1), 0.25 * transferSeconds(machine(), true, 4096, 64, 64));
}

struct Job {
  Settings settings;
  WorkShape shape;
  RoundTime time() const {
    return roundTime(settings, machine(), shape,
                     WireSizes(settings, shape.features, shape.isSparse, shape.entriesPerRow, shape.hasValues));
  }
};

Job yfcc(Algorithm algorithm, Loss loss, int64_t dpus) {
  Job job;
  job.settings.algorithm = algorithm;
  job.settings.loss = loss;
  job.settings.isPimOpt = true;
  job.settings.weightExponent = 0;
  job.settings.numDpus = dpus;
  job.settings.l2Shift = 12;
  job.shape = {4096, 3328, 4096, false, false};
  return job;
}

TEST(TimeModelTest, Tm3SvmComputesLessThanLogisticRegressionOnDenseRows) {
  EXPECT_LT(yfcc(Algorithm::Admm, Loss::Hinge, 256).time().compute,
            yfcc(Algorithm::Admm, Loss::Logistic, 256).time().compute);
}

TEST(TimeModelTest, Tm3ElevenTaskletsFillThePipeline) {
  Job one = yfcc(Algorithm::Admm, Loss::Hinge, 256), eleven = one, twenty = one;
  one.settings.numTasklets = 1;
  eleven.settings.numTasklets = 11;
  twenty.settings.numTasklets = 22;
  EXPECT_GT(one.time().compute, 10 * eleven.time().compute);
  // 64 blocks give one of eleven tasklets six: 3 % more than its share.
  EXPECT_NEAR(eleven.time().compute / twenty.time().compute, 11.0 * 6 / 64, 0.01);
}

TEST(TimeModelTest, Tm3NarrowRowsLeaveTaskletsIdle) {
  Job two = yfcc(Algorithm::MaSgd, Loss::Logistic, 256);
  two.shape.features = two.shape.entriesPerRow = 4;
  two.settings.numTasklets = 2;
  Job sixteen = two;
  sixteen.settings.numTasklets = 16;
  // Two tasklets have a pair of features each.
  EXPECT_GE(sixteen.time().compute, two.time().compute);
}

TEST(TimeModelTest, Tm4CountsTheBytesOfAStep) {
  // Each of 8 samples reads row, model and gradient and writes the gradient, 16 KB each; a step zeroes the gradient,
  // reads both and writes the model.
  EXPECT_EQ(yfcc(Algorithm::MaSgd, Loss::Logistic, 256).time().dmaBytes, (8 + 1) * 65536);
}

TEST(TimeModelTest, Tm8OwnTransfersAreThoseOfOneRank) {
  Job one = yfcc(Algorithm::MaSgd, Loss::Logistic, 64), many = yfcc(Algorithm::MaSgd, Loss::Logistic, 2048);
  auto own = [](const Job &job) {
    return ownTransferSeconds(job.settings, machine(), WireSizes(job.settings, 4096, false, 4096, false));
  };
  EXPECT_DOUBLE_EQ(own(one), one.time().toDpu + one.time().fromDpu);
  EXPECT_EQ(own(many), own(one));
  EXPECT_LT(own(many), many.time().toDpu + many.time().fromDpu);
}

TEST(TimeModelTest, Tm2MoreDpusCostMoreAggregation) {
  EXPECT_GT(yfcc(Algorithm::MaSgd, Loss::Logistic, 2048).time().aggregation,
            7 * yfcc(Algorithm::MaSgd, Loss::Logistic, 256).time().aggregation);
}

TEST(TimeModelTest, Tm6TheLinkReplacesTheServer) {
  Job job = yfcc(Algorithm::MaSgd, Loss::Logistic, 256);
  WireSizes sizes(job.settings, 4096, false, 4096, false);
  auto timeOf = [&](Synchronisation way) {
    job.settings.synchronisation = way;
    return roundTime(job.settings, machine(true), job.shape, sizes);
  };
  const dpu::LinkLevel &chip = machine(true).chipLink, &rank = machine(true).rankLink,
                       &module = machine(true).moduleLink, &system = machine(true).systemLink;
  RoundTime ring = timeOf(Synchronisation::Ring);
  EXPECT_EQ(ring.toDpu + ring.fromDpu + ring.aggregation, 0);
  // 510 steps of 72 B: 16,392 B in 256 chunks, padded to 8 B. The links between ranks are the slowest.
  EXPECT_NEAR(ring.link, 510 * (72 / (system.bandwidthGBs * 1e9) + system.latencyNs * 1e-9), 1e-12);
  EXPECT_NEAR(timeOf(Synchronisation::Gossip).link, 2 * system.seconds(16392), 1e-12);
  EXPECT_NEAR(timeOf(Synchronisation::InNetwork).link,
              2 * (chip.seconds(16392) + rank.seconds(16392) + module.seconds(16392) + system.seconds(16392)), 1e-12);
}

TEST(TimeModelTest, Tm6JobsCrossTheLevelsThatTheyFill) {
  auto crossed = [](int64_t dpus) {
    Job job = yfcc(Algorithm::MaSgd, Loss::Logistic, dpus);
    job.settings.synchronisation = Synchronisation::InNetwork;
    return roundTime(job.settings, machine(true), job.shape, WireSizes(job.settings, 4096, false, 4096, false)).link;
  };
  const dpu::LinkLevel *levels[] = {&machine(true).chipLink, &machine(true).rankLink, &machine(true).moduleLink,
                                    &machine(true).systemLink};
  int64_t most[] = {8, 64, 128, 2560};
  double expected = 0;
  for (int level = 0; level < 4; ++level) {
    expected += 2 * levels[level]->seconds(16392);
    EXPECT_NEAR(crossed(most[level]), expected, 1e-12);
    EXPECT_NEAR(crossed(level == 0 ? 2 : most[level - 1] + 1), expected, 1e-12);
  }
}

TEST(TimeModelTest, Tm6SharedMemorySparesTheHostSevenOfEightVectors) {
  Job job = yfcc(Algorithm::MaSgd, Loss::Logistic, 256);
  RoundTime alone = job.time();
  job.settings.synchronisation = Synchronisation::Shared;
  WireSizes sizes(job.settings, 4096, false, 4096, false);
  RoundTime shared = roundTime(job.settings, machine(true), job.shape, sizes);
  // A sum has 64 bits, a model 32: an eighth of the vectors, twice as long.
  EXPECT_NEAR(shared.aggregation, alone.aggregation / 4, 1e-12);
  EXPECT_LT(shared.toDpu, alone.toDpu);
  // Eight DPUs add 64-bit sums and read the model, with the bias each time.
  EXPECT_NEAR(shared.link, 8 * (2 * 16384 + 16384 + 16) / (machine(true).chipLink.bandwidthGBs * 1e9) + 200e-9, 1e-9);
}

TEST(TimeModelTest, Tm6MachinesWithoutLinksHaveNone) {
  Job job = yfcc(Algorithm::MaSgd, Loss::Logistic, 256);
  EXPECT_TRUE(hasLinks(job.settings, machine()));
  for (Synchronisation way : {Synchronisation::Ring, Synchronisation::InNetwork, Synchronisation::Shared}) {
    job.settings.synchronisation = way;
    EXPECT_FALSE(hasLinks(job.settings, machine()));
    EXPECT_TRUE(hasLinks(job.settings, machine(true)));
  }
}

TEST(TimeModelTest, SetUpIsTheProgramAndTheSigmoidsTable) {
  Job svm = yfcc(Algorithm::MaSgd, Loss::Hinge, 64), lr = yfcc(Algorithm::MaSgd, Loss::Logistic, 64);
  EXPECT_DOUBLE_EQ(setUpSeconds(svm.settings, machine()), machine().loadUs * 1e-6);
  double table = transferSeconds(machine(), true, 4 << 20, 64, 64) / machine().broadcastSpeedup;
  EXPECT_DOUBLE_EQ(setUpSeconds(lr.settings, machine()), machine().loadUs * 1e-6 + table);
  WireSizes sizes(svm.settings, 4096, false, 4096, false);
  EXPECT_DOUBLE_EQ(loadSeconds(svm.settings, machine(), svm.shape, sizes),
                   transferSeconds(machine(), true, 3328 * 16384, 64, 64) +
                       transferSeconds(machine(), true, 3328 * 4, 64, 64));
}

TEST(TimeModelTest, Tm5YfccFillsMostOfMram) {
  Job job = yfcc(Algorithm::Admm, Loss::Logistic, 256);
  WireSizes sizes(job.settings, 4096, false, 4096, false);
  int64_t bytes = mramBytes(job.settings, job.shape, sizes);
  EXPECT_GT(bytes, 3328 * 16384);
  EXPECT_LT(bytes, 64 << 20);
}

} // namespace
} // namespace nearbank::sgd
