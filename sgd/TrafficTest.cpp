// SPDX-License-Identifier: Apache-2.0
// Tests of bytes on the wire against the figures that follow from PIM-Opt's published code (TR-1 to TR-5).
#include "sgd/Traffic.h"

#include <gmock/gmock.h>

namespace nearbank::sgd {
namespace {

Settings pimOpt(Algorithm algorithm) {
  Settings settings;
  settings.algorithm = algorithm;
  settings.isPimOpt = true;
  settings.weightExponent = 0;
  settings.numDpus = 2048;
  return settings;
}

int64_t epochBytes(Algorithm algorithm, bool isSparse, int64_t rounds) {
  Settings settings = pimOpt(algorithm);
  WireSizes sizes(settings, isSparse ? 1000000 : 4096, isSparse, isSparse ? 39 : 4096, false);
  return rounds * closedFormBytes(settings, sizes);
}

TEST(TrafficTest, Tr1ModelsHaveThePublishedSizes) {
  WireSizes dense(pimOpt(Algorithm::MaSgd), 4096, false, 4096, false);
  EXPECT_EQ(dense.modelBytes, 16384);
  EXPECT_EQ(dense.gradientBytes, 16384);
  EXPECT_EQ(dense.rowBytes, 16384);
  WireSizes sparse(pimOpt(Algorithm::MaSgd), 1000000, true, 39, false);
  EXPECT_EQ(sparse.modelBytes, 4005888);
  EXPECT_EQ(sparse.gradientBytes, 8011776);
  EXPECT_EQ(sparse.rowBytes, 160);
}

TEST(TrafficTest, Tr2YfccEpochsMoveWhatThePaperMoves) {
  int64_t ma = epochBytes(Algorithm::MaSgd, false, 416);
  int64_t ga = epochBytes(Algorithm::GaSgd, false, 1664);
  int64_t admm = epochBytes(Algorithm::Admm, false, 1);
  EXPECT_EQ(ma, int64_t(416) * 2 * 16384 * 2048);
  EXPECT_EQ(ga, int64_t(1664) * 2 * 16384 * 2048);
  EXPECT_EQ(admm, int64_t(3) * 16384 * 2048);
  EXPECT_EQ(ma / admm, 277);
  EXPECT_EQ(ga / admm, 1109);
}

TEST(TrafficTest, Tr3CriteoEpochsMoveWhatThePaperMoves) {
  int64_t ma = epochBytes(Algorithm::MaSgd, true, 96);
  int64_t ga = epochBytes(Algorithm::GaSgd, true, 1536);
  int64_t admm = epochBytes(Algorithm::Admm, true, 1);
  EXPECT_EQ(ma, int64_t(96) * 2 * 4005888 * 2048);
  EXPECT_EQ(ma / admm, 64);
  EXPECT_EQ(ma % admm, 0);
  EXPECT_EQ(ga / admm, 1536);
}

} // namespace
} // namespace nearbank::sgd
