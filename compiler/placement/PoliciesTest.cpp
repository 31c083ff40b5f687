// SPDX-License-Identifier: Apache-2.0
// Policies beside two-stage and greedy, on the program of PlacementFixture.h.
#include "compiler/placement/PimTimeModel.h"
#include "compiler/placement/PlacementFixture.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

namespace nearbank::placement {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using PoliciesTest = PlacementTest;

TEST_F(PoliciesTest, Pl5MinCutWeighsSwitchesOfTheWholeProgram) {
  // Each nest alone is 1000 ns faster on PIM than on the host and pays 4000 ns of launch and return; all together do
  // not.
  machine_.coherence.launchNs = machine_.coherence.returnNs = 2000;
  for (size_t i : {0, 1, 2, 3})
    profiles_[i].allThreadsNs = predictPimTime(program_.kernels[i].facts, profiles_[i], machine_).kernelNs + 1000;
  program_.nests[3].kernel = 2; // The fourth nest is parallel too.
  EXPECT_THAT(run("greedy").sites(), ElementsAre(host, host, host, host));
  EXPECT_THAT(run("min-cut").sites(), ElementsAre(host, host, host, host)); // 4000 ns gained, 4000 ns paid.
  profiles_[0].allThreadsNs += 1;
  PlacementResult result = run("min-cut");
  EXPECT_THAT(result.sites(), ElementsAre(pim, pim, pim, pim));
  const EquationRecord &record = equation(result.decisions[0], "PL-5");
  EXPECT_TRUE(record.isPassed);
  EXPECT_NEAR(record.margin, 1001, 1e-6); // Back to the host alone: its launch only moves to the next nest.
  EXPECT_TRUE(std::isnan(record.ratio));
  EXPECT_NEAR(equation(result.decisions[1], "PL-5").margin, 5000, 1e-6);
}

TEST_F(PoliciesTest, Pl5MinCutTakesPinsAndForbidsAsGiven) {
  // Every nest costs the same on both sides: the switches decide, and follow what is pinned.
  for (size_t i : {0, 1, 2, 3})
    profiles_[i].allThreadsNs = predictPimTime(program_.kernels[i].facts, profiles_[i], machine_).kernelNs + 10;
  EXPECT_THAT(run("min-cut", {"n1"}).sites(), ElementsAre(pim, pim, pim, host));
  EXPECT_THAT(run("min-cut", {"n0", "n2"}, {"n1"}).sites(), ElementsAre(pim, host, pim, host));
  EXPECT_THAT(run("min-cut", {"n0", "n2"}).sites(), ElementsAre(pim, pim, pim, host));
  EXPECT_EQ(run("min-cut", {"n0", "n2"}).decisions[0].reason, "pinned by --pin n0");
  program_.nests[1].isHoisted = true; // Outside: its switches cost nothing.
  EXPECT_THAT(run("min-cut", {"n0", "n2"}).sites(), ElementsAre(pim, host, pim, host));
}

TEST_F(PoliciesTest, OracleDecidesOnSimulatedTimesAndNobodyElseReadsThem) {
  std::map<std::string, std::vector<Site>> before;
  for (const std::string &policy : policyNames())
    before[policy] = run(policy).sites();
  EXPECT_THAT(before["oracle"], ElementsAre(pim, host, host, host));
  simulatedNs_ = {1e9, 10, 10, 10};
  for (const std::string &policy : policyNames())
    EXPECT_EQ(run(policy).sites() == before[policy], policy != "oracle") << policy;
  EXPECT_THAT(run("oracle").sites(), ElementsAre(host, pim, pim, host));
  const EquationRecord &record = equation(run("oracle").decisions[1], "PL-5");
  EXPECT_EQ(record.inputs[1].provenance, "simulation");
  EXPECT_TRUE(needsSimulation("oracle"));
  EXPECT_FALSE(needsSimulation("min-cut"));
}

TEST_F(PoliciesTest, Pl6MpkiIsPimProfsRule) {
  EXPECT_THAT(run("mpki").sites(), ElementsAre(pim, host, host, host));
  const NestDecision decision = run("mpki").decisions[0];
  EXPECT_NEAR(equation(decision, "PL-6.1").value, 196608 / (4.0 * (1 << 20)) * 1000, 1e-9);
  EXPECT_EQ(equation(decision, "PL-6.2").value, 1 << 20);
  double instructions = 0;
  for (const profile::NestProfile &profile : profiles_)
    instructions += profile.cache.instructions;
  EXPECT_NEAR(equation(decision, "PL-6.3").value, 4.0 * (1 << 20) / instructions, 1e-12);
  EXPECT_FALSE(equation(run("mpki").decisions[2], "PL-6.3").isPassed); // MPKI 46.9, but next to no instructions.
  program_.kernels[0].facts.parallelExtent = 15;                       // Must be exceeded.
  EXPECT_EQ(run("mpki").decisions[0].site, host);
}

TEST_F(PoliciesTest, Pl7RooflineComparesPimComputeWithHostMemory) {
  machine_.host.dramBandwidthGBs = 100; // 64 cores x 1 GHz x 2: the ridge lies at 1.28 operations/B.
  PlacementResult result = run("roofline");
  EXPECT_NEAR(equation(result.decisions[0], "PL-7.1").threshold, 1.28, 1e-12);
  EXPECT_THAT(result.sites(), ElementsAre(pim, host, pim, host));
  machine_.dram.vaultBandwidthGBs = 3; // 96 GB/s in all.
  EXPECT_EQ(run("roofline").decisions[0].site, host);
  machine_.dram.vaultBandwidthGBs = 10;
  machine_.core.clockGHz = 0.001;
  EXPECT_EQ(run("roofline").decisions[0].site, host);
  profiles_[0].cache.dramBytes = 0;
  EXPECT_THAT(run("roofline").decisions[0].reason, HasSubstr("no DRAM bytes"));
}

TEST_F(PoliciesTest, Pl8DamovPlacesItsDramBoundClasses) {
  PlacementResult result = run("damov");
  EXPECT_EQ(result.decisions[0].site, pim);
  EXPECT_THAT(result.decisions[0].reason, HasSubstr("class 1a"));
  EXPECT_EQ(equation(result.decisions[0], "PL-8.1").value, 0); // Three words, three accesses.
  EXPECT_EQ(result.decisions[1].site, host);
  EXPECT_GT(equation(result.decisions[1], "PL-8.1").value, 0.9);
  profiles_[0].cache.instructions *= 10;
  EXPECT_THAT(run("damov").decisions[0].reason, HasSubstr("class 1b"));
  profiles_[0].cache.l3Misses /= 2;
  EXPECT_THAT(run("damov").decisions[0].reason, HasSubstr("class 1c"));
  program_.kernels[0].facts.operations.floatOps *= 1000;
  EXPECT_THAT(run("damov").decisions[0].reason, HasSubstr("class 2c"));
}

} // namespace
} // namespace nearbank::placement
