// SPDX-License-Identifier: Apache-2.0
#include "compiler/placement/DecisionJson.h"
#include "compiler/placement/PimTimeModel.h"
#include "compiler/placement/PlacementFixture.h"

#include "runtime/Error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace nearbank::placement {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(PlacementTest, CpuOnlyAndPimOnlyPlaceEverythingOnOneSide) {
  EXPECT_THAT(run("cpu-only").sites(), ElementsAre(host, host, host, host));
  EXPECT_THAT(run("pim-only").sites(), ElementsAre(pim, pim, pim, pim));
  program_.nests[0].isHoisted = true;
  EXPECT_THAT(run("pim-only").sites(), ElementsAre(pim, pim, pim, pim));
  EXPECT_EQ(run("pim-only").decisions[3].status, Status::Placed);
}

TEST_F(PlacementTest, OpTypePlacesContractionsOnly) {
  PlacementResult result = run("op-type");
  EXPECT_THAT(result.sites(), ElementsAre(host, pim, host, host));
  EXPECT_THAT(result.decisions[0].reason, HasSubstr("elementwise"));
}

TEST_F(PlacementTest, TwoStagePlacesTheLargeMemoryBoundNest) {
  PlacementResult result = run("two-stage");
  EXPECT_THAT(result.sites(), ElementsAre(pim, host, host, host));
  EXPECT_EQ(result.decisions[0].status, Status::Placed);
  EXPECT_EQ(result.decisions[1].status, Status::KeptOnHost);
  EXPECT_EQ(result.decisions[2].status, Status::KeptOnHost);
  EXPECT_EQ(result.decisions[3].status, Status::NotCandidate);
  EXPECT_THAT(result.decisions[1].reason, HasSubstr("not memory-bound (MPKI 0.3662 < 5, LFMR 0.02048 < 0.56"));
  EXPECT_THAT(result.decisions[2].reason, HasSubstr("too little work to pay for a launch (work 256 < 100000"));
  EXPECT_THAT(result.decisions[3].reason, HasSubstr("parallel extent 1 < 2"));
}

TEST_F(PlacementTest, Pl1WorkIsIterationsTimesOperations) {
  const NestDecision decision = run("two-stage").decisions[0];
  const EquationRecord &work = equation(decision, "PL-1.1");
  EXPECT_EQ(work.value, 4.0 * (1 << 20)); // One addition, two loads, one store each.
  EXPECT_EQ(work.threshold, 100000);
  EXPECT_TRUE(work.isPassed);
  EXPECT_EQ(work.margin, 4.0 * (1 << 20) - 100000);
  EXPECT_NEAR(work.ratio, 41.94, 0.01);
}

TEST_F(PlacementTest, Pl1ShareCountsEveryExecution) {
  NestInstance again = program_.nests[0];
  again.id = "n4";
  program_.nests.push_back(again);
  const NestDecision decision = run("two-stage").decisions[0];
  EXPECT_NEAR(equation(decision, "PL-1.2").value, 6e5 / (6e5 + 2e5 + 100 + 1e5), 1e-9);
  machine_.thresholds.workShare = 0.9;
  EXPECT_EQ(run("two-stage").decisions[0].site, host);
}

TEST_F(PlacementTest, Pl2IsTheLeastOfThreeRatios) {
  const NestDecision decision = run("two-stage").decisions[0];
  EXPECT_NEAR(equation(decision, "PL-2.1").value, 196608 / (4.0 * (1 << 20)) * 1000, 1e-9);
  EXPECT_EQ(equation(decision, "PL-2.2").value, 1.0);
  EXPECT_NEAR(equation(decision, "PL-2.3").value, (1 << 20) / (196608 * 64.0), 1e-9);
  EXPECT_NEAR(equation(decision, "PL-2").value, 1 / 0.56, 1e-9);
  EXPECT_TRUE(equation(decision, "PL-2").isPassed);
}

TEST_F(PlacementTest, Pl2CopyWithoutArithmeticHasIntensityZero) {
  program_.kernels[0].facts.operations.floatOps = 0;
  PlacementResult result = run("two-stage");
  EXPECT_EQ(result.decisions[0].site, pim);
  EXPECT_EQ(equation(result.decisions[0], "PL-2.3").value, 0);
}

TEST_F(PlacementTest, EachThresholdAloneKeepsANestOnTheHost) {
  PlacementThresholds good = machine_.thresholds;
  for (double PlacementThresholds::*threshold :
       {&PlacementThresholds::workOperations, &PlacementThresholds::workShare, &PlacementThresholds::mpki,
        &PlacementThresholds::lfmr, &PlacementThresholds::intensity}) {
    machine_.thresholds = good;
    machine_.thresholds.*threshold = threshold == &PlacementThresholds::intensity ? 1e-6 : 1e9;
    EXPECT_EQ(run("two-stage").decisions[0].site, host);
  }
}

TEST_F(PlacementTest, FlipNamesTheThresholdThatChangesTheDecision) {
  // Setting the threshold that `flip` names to the value it names changes the side.
  NestDecision placed = run("two-stage").decisions[0];
  EXPECT_EQ(placed.flip, "placement.lfmr above 1 (now 0.56), the nearest of the thresholds");
  machine_.thresholds.lfmr = 1.01;
  EXPECT_EQ(run("two-stage").decisions[0].site, host);
  machine_.thresholds.lfmr = 0.56;

  NestDecision small = run("two-stage").decisions[2];
  EXPECT_EQ(
      small.flip,
      "placement.workOperations at most 256 (now 100000); or 390.6 times the iterations, for example a larger batch");
  machine_.thresholds.workOperations = 256;
  EXPECT_EQ(run("two-stage").decisions[2].site, pim);
}

TEST_F(PlacementTest, TwoStageDependsOnNoPimQuantity) {
  std::vector<Site> before = run("two-stage").sites();
  machine_.core.count = 1;
  machine_.core.clockGHz = 0.001;
  machine_.dram.vaultBandwidthGBs = 0.001;
  machine_.coherence.launchNs = 1e12;
  EXPECT_EQ(run("two-stage").sites(), before);
  for (const NestDecision &decision : run("two-stage").decisions)
    for (const EquationRecord &record : decision.equations)
      for (const EquationInput &input : record.inputs)
        EXPECT_THAT(input.provenance, testing::AnyOf("MLIR", "host profile", "machine file"));
}

TEST_F(PlacementTest, Pl3UntracedStreamIsBoundByMissesOfItsCores) {
  profiles_[0].cacheSource = "none";
  // 64 cores, 3 lines per 16 elements: 196608 misses of (17+17+17) x 0.8 + 6.4 = 47.2 ns, one at a time.
  // An element is 3 accesses and 1 addition; 8 of them share 5 loop instructions and waits of 3 + 3 + 3 cycles (load,
  // addition, branch).
  machine_.core.branchTakenCycles = 3;
  PimTimePrediction prediction = predictPimTime(program_.kernels[0].facts, profiles_[0], machine_);
  EXPECT_EQ(prediction.coresUsed, 64);
  EXPECT_EQ(prediction.imbalance, 1);
  EXPECT_NEAR(prediction.stallCycles, 196608 * 47.2, 1);
  EXPECT_NEAR(prediction.issueCycles, (1 << 20) * (4 + 14.0 / 8), 1);
  EXPECT_NEAR(prediction.computeNs, (196608 * 47.2 + (1 << 20) * (4 + 14.0 / 8)) / 64, 1);
  EXPECT_NEAR(prediction.bandwidthNs, (196608 * 64.0 + 4 * (1 << 20)) / 320, 1);
  EXPECT_EQ(prediction.kernelNs, std::max(prediction.computeNs, prediction.bandwidthNs));
  EXPECT_NEAR(prediction.totalNs, prediction.kernelNs + 4000, 1e-6);
}

TEST_F(PlacementTest, Pl3TakesTracedInstructionsOverTheEstimate) {
  profiles_[0].cache.instructions = 12345678;
  machine_.core.branchTakenCycles = 3;
  PimTimePrediction prediction = predictPimTime(program_.kernels[0].facts, profiles_[0], machine_);
  // The trace counts 4 loop instructions for each element, of which 8 share one set.
  EXPECT_NEAR(prediction.issueCycles, 12345678 + (1 << 20) * (9.0 / 8 - 4 * 7.0 / 8), 1);
}

TEST_F(PlacementTest, Pl3ContractionSharesLoopsAndHidesLatency) {
  machine_.core.branchTakenCycles = 3;
  double iterations = 64.0 * 256 * 256, trips = iterations / 64;
  // 105 instructions for 64 multiply-adds and 3 + 3 cycles of waiting, whatever the trace of other code counts.
  for (double traced : {0.0, 1e8}) {
    profiles_[1].cache.instructions = traced;
    PimTimePrediction prediction = predictPimTime(program_.kernels[1].facts, profiles_[1], machine_);
    EXPECT_NEAR(prediction.issueCycles, trips * (105 + 6) + 64 * 256, 1);
  }
}

TEST_F(PlacementTest, Pl3ContractionMissesWhatItsBlocksRead) {
  double iterations = 64.0 * 256 * 256;
  const NestFacts &facts = program_.kernels[1].facts;
  auto missesOf = [&] { return predictPimTime(facts, profiles_[1], machine_).stallCycles / 47.2; };
  // 256 blocks of 8 x 8 results: 16 elements, a line, for 64 iterations.
  profiles_[1].cache.instructions = profiles_[1].cache.l1Misses = 1e9;
  EXPECT_NEAR(missesOf(), iterations / 64, 1e-6);
  profiles_[1].cache.l1Misses = iterations / 128; // The trace knows better where it counts fewer,
  EXPECT_NEAR(missesOf(), iterations / 128, 1e-6);
  profiles_[1].cache.l1Misses = 0; // but every line comes once.
  EXPECT_NEAR(missesOf(), (facts.bytesRead + facts.bytesWritten) / 64, 1e-6);
}

TEST_F(PlacementTest, Pl3CoresTakeWholeTasks) {
  profiles_[2].parallelTasks = 3;
  PimTimePrediction prediction = predictPimTime(program_.kernels[2].facts, profiles_[2], machine_);
  EXPECT_EQ(prediction.coresUsed, 3);
  profiles_[2].parallelTasks = 96;
  EXPECT_NEAR(predictPimTime(program_.kernels[2].facts, profiles_[2], machine_).imbalance, 2 / 1.5, 1e-9);
}

TEST_F(PlacementTest, Pl3FallsWithCoresUntilTheExtentOrTheVaultsBound) {
  auto timeOf = [&](size_t kernel, int64_t cores) {
    machine_.core.count = cores;
    return predictPimTime(program_.kernels[kernel].facts, profiles_[kernel], machine_).kernelNs;
  };
  EXPECT_NEAR(timeOf(0, 32) / timeOf(0, 64), 2, 1e-9);
  EXPECT_EQ(timeOf(2, 64), timeOf(2, 128));
  machine_.dram.vaultBandwidthGBs = 0.01;
  EXPECT_EQ(timeOf(0, 64), timeOf(0, 128)); // The vaults bound it.
}

TEST_F(PlacementTest, Pl3UnevenBlocksCostTheLongest) {
  program_.kernels[0].facts.parallelExtent = 65;
  PimTimePrediction prediction = predictPimTime(program_.kernels[0].facts, profiles_[0], machine_);
  EXPECT_NEAR(prediction.imbalance, 2 / (65.0 / 64), 1e-9);
}

TEST_F(PlacementTest, Pl4GreedyComparesPredictedPimWithMeasuredHost) {
  PlacementResult result = run("greedy");
  for (size_t i = 0; i < 3; ++i) {
    const NestDecision &decision = result.decisions[i];
    EXPECT_EQ(decision.site == pim, decision.predictedPimTotalNs <= profiles_[i].allThreadsNs) << i;
    EXPECT_EQ(equation(decision, "PL-4").value, decision.predictedPimTotalNs);
    EXPECT_TRUE(std::isnan(equation(decision, "PL-4").ratio)); // Kinds do not mix in a ratio.
  }
  EXPECT_EQ(result.decisions[2].site, host); // 100 ns never pay 4000 ns of launch and return.
  machine_.coherence.launchNs = machine_.coherence.returnNs = 0;
  profiles_[2].allThreadsNs = 1e6;
  EXPECT_EQ(run("greedy").decisions[2].site, pim);
}

TEST_F(PlacementTest, PinAndForbidOverrideThePolicy) {
  EXPECT_THAT(run("two-stage", {"n2"}, {"n0"}).sites(), ElementsAre(host, host, pim, host));
  EXPECT_THAT(run("cpu-only", {"n3"}).sites(), ElementsAre(host, host, host, pim));
  EXPECT_THAT(run("pim-only", {}, {"matmul_64x256x256_f32"}).sites(), ElementsAre(pim, host, pim, pim));
  NestDecision decision = run("two-stage", {"n2"}).decisions[2];
  EXPECT_EQ(decision.status, Status::Placed);
  EXPECT_EQ(decision.reason, "pinned by --pin n2");
  EXPECT_EQ(decision.flip, "leaving out --pin n2");
}

TEST_F(PlacementTest, SelectorsNameSourcesAndModulesWhole) {
  EXPECT_THAT(run("cpu-only", {"model.py:41"}).sites(), ElementsAre(pim, host, host, host)); // Not line 410.
  EXPECT_THAT(run("cpu-only", {"/home/me/model.py:42"}).sites(), ElementsAre(host, pim, host, host));
  EXPECT_THAT(run("cpu-only", {"encoder.layer.1"}).sites(), ElementsAre(pim, host, pim, host)); // Not layer 10.
  EXPECT_THAT(run("cpu-only", {"encoder"}).sites(), ElementsAre(pim, pim, pim, host));
}

TEST_F(PlacementTest, HoistedNestsStayOnTheHostAndOutOfTheShare) {
  program_.nests[0].isHoisted = true;
  PlacementResult result = run("two-stage");
  EXPECT_EQ(result.decisions[0].site, host);
  EXPECT_EQ(result.decisions[0].status, Status::KeptOnHost);
  EXPECT_THAT(result.decisions[0].reason, HasSubstr("parameters only"));
  EXPECT_NEAR(equation(result.decisions[1], "PL-1.2").value, 2e5 / (2e5 + 100 + 1e5), 1e-9);
}

TEST_F(PlacementTest, NestWithoutPimCodeFailsUnderEveryPolicy) {
  for (const std::string &policy : policyNames()) {
    PlacementResult result = run(policy, {}, {}, {"f64 division is not lowered"});
    EXPECT_EQ(result.decisions[0].site, host);
    EXPECT_EQ(result.decisions[0].status, Status::Failed);
    EXPECT_THAT(result.decisions[0].reason, HasSubstr("f64 division is not lowered"));
  }
  EXPECT_EQ(run("two-stage", {"n0"}, {}, {"no"}).decisions[0].status, Status::Failed);
}

TEST_F(PlacementTest, PoliciesWithoutProfilesNeedNone) {
  profiles_.clear();
  for (const std::string &policy : policyNames()) {
    if (needsProfiles(policy)) {
      EXPECT_THROW(run(policy), InternalError);
    } else {
      EXPECT_EQ(run(policy).decisions.size(), 4u);
    }
  }
}

TEST_F(PlacementTest, RequestIsCheckedWithoutProfiles) {
  EXPECT_NO_THROW(checkRequest({program_, {}, machine_, "two-stage", {"n2"}, {"n0"}, {}}));
  EXPECT_THROW(checkRequest({program_, {}, machine_, "two-stag", {}, {}, {}}), UserError);
  EXPECT_THROW(checkRequest({program_, {}, machine_, "two-stage", {"n9"}, {}, {}}), UserError);
}

TEST_F(PlacementTest, EveryDecisionHasReasonFlipAndNumbers) {
  for (const std::string &policy : policyNames())
    for (const NestDecision &decision : run(policy).decisions) {
      SCOPED_TRACE(policy);
      EXPECT_FALSE(decision.reason.empty());
      EXPECT_FALSE(decision.flip.empty());
      EXPECT_FALSE(decision.equations.empty());
      EXPECT_GT(decision.predictedPimNs, 0);
    }
}

template <typename Call> std::string messageOf(Call call) {
  try {
    call();
  } catch (const UserError &error) {
    return error.report().text();
  }
  return "accepted";
}

TEST_F(PlacementTest, UnknownPolicyOffersTheNearest) {
  EXPECT_EQ(messageOf([&] { run("two-stag"); }), "error[NB0404]: unknown policy\n"
                                                 "  where:    --policy two-stag\n"
                                                 "  expected: one of two-stage, cpu-only, pim-only, op-type, greedy, "
                                                 "min-cut, oracle, mpki, roofline, damov\n"
                                                 "  actual:   'two-stag'\n"
                                                 "  fix:      did you mean 'two-stage'?\n"
                                                 "  more:     nearbank explain NB0404");
  EXPECT_THAT(messageOf([&] { needsProfiles("gredy"); }), HasSubstr("'greedy'?"));
}

TEST_F(PlacementTest, SelectorThatMatchesNothingOffersTheNearest) {
  EXPECT_EQ(messageOf([&] { run("two-stage", {"matmul_64x256x257_f32"}); }),
            "error[NB0405]: selector matches no loop nest\n"
            "  where:    --pin matmul_64x256x257_f32\n"
            "  expected: a nest id (n0 to n3), a kernel name, a source line or a module path of this program\n"
            "  actual:   'matmul_64x256x257_f32'\n"
            "  fix:      did you mean 'matmul_64x256x256_f32'?\n"
            "  more:     nearbank explain NB0405");
  EXPECT_THAT(messageOf([&] { run("two-stage", {}, {"n9"}); }), AllOf(HasSubstr("NB0405"), HasSubstr("--forbid n9")));
  EXPECT_THAT(messageOf([&] { run("two-stage", {""}); }), HasSubstr("NB0405"));
  EXPECT_THAT(messageOf([&] { run("two-stage", {"model.py"}); }), HasSubstr("NB0405"));
}

TEST_F(PlacementTest, OracleWithoutSimulationIsRefused) {
  EXPECT_EQ(messageOf([&] { checkRequest({program_, {}, machine_, "oracle", {}, {}, {}}); }),
            "error[NB0409]: policy needs simulated times\n"
            "  where:    --policy oracle\n"
            "  expected: simulated PIM times of every nest\n"
            "  actual:   --simulate none\n"
            "  fix:      add --simulate exact, or take --policy min-cut, which decides on predicted times\n"
            "  more:     nearbank explain NB0409");
  EXPECT_NO_THROW(checkRequest({program_, {}, machine_, "oracle", {}, {}, {}, /*isSimulated=*/true}));
  simulatedNs_.clear();
  EXPECT_THROW(run("oracle"), InternalError);
}

TEST_F(PlacementTest, PinnedAndForbiddenIsRefused) {
  EXPECT_EQ(messageOf([&] { run("two-stage", {"encoder"}, {"n1"}); }),
            "error[NB0406]: loop nest is both pinned and forbidden\n"
            "  where:    n1 (matmul_64x256x256_f32)\n"
            "  expected: one of --pin and --forbid for a nest\n"
            "  actual:   --pin encoder and --forbid n1\n"
            "  fix:      narrow one of the two selectors, for example to a nest id\n"
            "  more:     nearbank explain NB0406");
}

TEST_F(PlacementTest, JsonHasTheShapeOfTheRunDocument) {
  profiles_[0].cache.dramBytes = 0; // Infinite intensity becomes null.
  nlohmann::json why = nlohmann::json::parse(decisionJson(run("two-stage").decisions[0]));
  EXPECT_EQ(why["status"], "KeptOnHost");
  EXPECT_TRUE(why["reason"].is_string());
  EXPECT_TRUE(why["suggestion"].is_string());
  EXPECT_TRUE(why["flip"].is_string());
  for (const auto &record : why["equations"]) {
    for (const char *key : {"id", "text", "inputs", "value", "threshold", "passed", "margin"})
      EXPECT_TRUE(record.contains(key)) << key;
    for (const auto &input : record["inputs"])
      for (const char *key : {"name", "value", "unit", "provenance"})
        EXPECT_TRUE(input.contains(key)) << key;
    bool isNull = record["id"] == "PL-2.3";
    EXPECT_EQ(record["value"].is_null(), isNull) << record["id"];
  }
}

} // namespace
} // namespace nearbank::placement
