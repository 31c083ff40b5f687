// SPDX-License-Identifier: Apache-2.0
// PL-9 and the policies that use it, on the program of PlacementFixture.h.
#include "compiler/placement/HostTimeModel.h"
#include "compiler/placement/PlacementFixture.h"

#include <gmock/gmock.h>

namespace nearbank::placement {
namespace {

using testing::ElementsAre;

class HostTimeModelTest : public PlacementTest {
protected:
  HostTimeModelTest() {
    host_.name = "test-host";
    host_.kind = "host";
    host_.core.count = 16;
    host_.core.clockGHz = 2.0;
    host_.core.vectorBits = 256;
    host_.l1d.lineBytes = 64;
    host_.l3.sizeBytes = 32 << 20;
    host_.l3SharedBy = 4;
    host_.dram.vaults = 8;
    host_.dram.vaultBandwidthGBs = 25;
    host_.threads = {200, 800};
  }

  HostTimePrediction predict(size_t kernel) {
    return predictHostTime(program_.kernels[kernel].facts, profiles_[kernel], host_);
  }

  PlacementResult runOnModelled(const std::string &policy) {
    PlacementInput input{program_, profiles_, machine_, policy, {}, {}, {}, true, simulatedNs_};
    input.host = &host_;
    input.hostSimulatedNs = simulatedNs_;
    return place(input);
  }

  MachineConfig host_;
};

TEST_F(HostTimeModelTest, Pl9StreamsAreBoundByTheChannels) {
  HostTimePrediction stream = predict(0); // 12 MiB of operands, 200 GB/s.
  EXPECT_DOUBLE_EQ(stream.dramBytes, 12.0 * (1 << 20));
  EXPECT_DOUBLE_EQ(stream.bandwidthNs, 12.0 * (1 << 20) / 200);
  EXPECT_DOUBLE_EQ(stream.timeNs, stream.bandwidthNs + 1000);
  host_.dram.vaultBandwidthGBs *= 2;
  EXPECT_DOUBLE_EQ(predict(0).bandwidthNs * 2, stream.bandwidthNs);
}

TEST_F(HostTimeModelTest, Pl9ContractionsAreBoundByCoresAndVectors) {
  HostTimePrediction wide = predict(1);
  EXPECT_GT(wide.computeNs, wide.bandwidthNs);
  EXPECT_EQ(wide.lanes, 8);
  host_.core.count = 8;
  EXPECT_DOUBLE_EQ(predict(1).computeNs, 2 * wide.computeNs);
  host_.core.vectorBits = 0;
  EXPECT_EQ(predict(1).lanes, 1);
  EXPECT_GT(predict(1).computeNs, 4 * wide.computeNs);
}

TEST_F(HostTimeModelTest, Pl9OneTaskRunsOnOneCoreAndJoinsNobody) {
  HostTimePrediction serial = predict(3);
  EXPECT_EQ(serial.coresUsed, 1);
  EXPECT_DOUBLE_EQ(serial.timeNs, std::max(serial.computeNs, serial.bandwidthNs) + 200);
}

TEST_F(HostTimeModelTest, ModelledHostReplacesMeasuredTimes) {
  for (const char *policy : {"greedy", "min-cut"}) {
    // Measured times would send everything to PIM.
    for (profile::NestProfile &profile : profiles_)
      profile.allThreadsNs = 1e12;
    EXPECT_EQ(run(policy).sites()[1], pim) << policy;
    PlacementResult result = runOnModelled(policy);
    EXPECT_EQ(result.sites()[1], host) << policy;
    EXPECT_DOUBLE_EQ(result.decisions[1].predictedHostNs, predict(1).timeNs) << policy;
    EXPECT_EQ(equation(result.decisions[1], "PL-9").value, predict(1).timeNs) << policy;
  }
  PlacementResult cut = runOnModelled("min-cut");
  const EquationRecord &record = equation(cut.decisions[1], "PL-5");
  EXPECT_EQ(record.inputs[0].name, "predictedHostTime");
  // two-stage looks at the profile of this host only.
  EXPECT_EQ(runOnModelled("two-stage").sites(), run("two-stage").sites());
}

} // namespace
} // namespace nearbank::placement
