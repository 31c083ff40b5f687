// SPDX-License-Identifier: Apache-2.0
// Tests of the time model: measured points come back, and work has the right proportions (TM-1 to TM-6).
#include "sgd/TimeModel.h"

#include <gmock/gmock.h>

namespace nearbank::sgd {
namespace {

TEST(TimeModelTest, Tm1MeasuredTransfersComeBack) {
  // 2,560 DPUs with 1 MiB each moved at 57.3 GB/s to them and 13.3 GB/s from them.
  EXPECT_NEAR(transferSeconds(true, 1 << 20, 2560), 2560.0 * (1 << 20) / 57.3e9, 1e-9);
  EXPECT_NEAR(transferSeconds(false, 1 << 20, 2560), 2560.0 * (1 << 20) / 13.3e9, 1e-9);
  EXPECT_EQ(transferSeconds(true, 0, 64), 0);
  // One DPU takes as long as a rank, and small transfers as long as the smallest that was measured.
  EXPECT_EQ(transferSeconds(true, 4096, 1), transferSeconds(true, 4096, 64));
  EXPECT_EQ(transferSeconds(true, 8, 64), transferSeconds(true, 32, 64));
}

struct Job {
  Settings settings;
  WorkShape shape;
  RoundTime time() const {
    return roundTime(settings, {}, shape,
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
  EXPECT_NEAR(twenty.time().compute / eleven.time().compute, 1.0, 0.02);
}

TEST(TimeModelTest, Tm2MoreDpusCostMoreAggregation) {
  EXPECT_GT(yfcc(Algorithm::MaSgd, Loss::Logistic, 2048).time().aggregation,
            7 * yfcc(Algorithm::MaSgd, Loss::Logistic, 256).time().aggregation);
}

TEST(TimeModelTest, Tm6TheLinkReplacesTheServer) {
  Job job = yfcc(Algorithm::MaSgd, Loss::Logistic, 256);
  job.settings.synchronisation = Synchronisation::Ring;
  DpuMachine machine;
  machine.linkGBs = 1;
  machine.linkLatencySeconds = 1e-6;
  WireSizes sizes(job.settings, 4096, false, 4096, false);
  RoundTime time = roundTime(job.settings, machine, job.shape, sizes);
  EXPECT_EQ(time.toDpu + time.fromDpu + time.aggregation, 0);
  // 510 steps of 72 B (16,392 B in 256 chunks, padded to 8 B) at 1 GB/s, and 1 us each.
  EXPECT_NEAR(time.link, 510 * (72e-9 + 1e-6), 1e-12);
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
