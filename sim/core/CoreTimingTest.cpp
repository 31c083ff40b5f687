// SPDX-License-Identifier: Apache-2.0
// Issue times of short sequences, counted by hand.
#include "sim/core/CoreTiming.h"

#include "sim/isa/TestEncoder.h"

#include <gmock/gmock.h>

namespace nearbank::sim {
namespace {

using namespace encode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Every latency different, so that a mix-up shows.
LatencyTable table() {
  CoreConfig core;
  core.intAluCycles = 1, core.intMulCycles = 3, core.intDivCycles = 21;
  core.fpAddCycles = 4, core.fpMulCycles = 5, core.fpFmaCycles = 6, core.fpDivCycles = 23, core.fpSqrtCycles = 29,
  core.fpMoveCycles = 2;
  core.branchTakenCycles = 2;
  CacheConfig l1d;
  l1d.hitCycles = 7;
  return {core, l1d};
}

struct Timed {
  std::vector<uint32_t> cycles, drains;
  RunTiming run;
};

Timed timeOf(std::initializer_list<uint32_t> words, const PipelineState &start = {}) {
  std::vector<Instruction> instructions;
  for (uint32_t word : words)
    instructions.push_back(decode(word));
  std::vector<IssueTime> times;
  Timed out;
  out.run = timeRun(instructions, start, table(), times);
  for (IssueTime t : times)
    out.cycles.push_back(t.cycle), out.drains.push_back(t.drain);
  return out;
}

TEST(CoreTimingTest, IndependentInstructionsIssueEveryCycle) {
  Timed t = timeOf(
      {addi(t0, zero, 1), addi(t1, zero, 2), faddS(f0, f1, f2), faddS(f3, f1, f2), ld(a4, 0, a0), ld(a5, 8, a0)});
  EXPECT_THAT(t.cycles, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(t.run.fallThroughCycles, 6u);
}

TEST(CoreTimingTest, DependentInstructionsWaitForTheResult) {
  EXPECT_THAT(timeOf({addi(t0, zero, 1), addi(t0, t0, 1), addi(t0, t0, 1)}).cycles, ElementsAre(0, 1, 2));
  EXPECT_THAT(timeOf({mul(t0, t1, t2), add(t0, t0, t1)}).cycles, ElementsAre(0, 3));
  EXPECT_THAT(timeOf({faddS(f0, f1, f2), faddS(f0, f0, f2)}).cycles, ElementsAre(0, 4));
  EXPECT_THAT(timeOf({fmulS(f0, f1, f2), faddS(f0, f3, f0)}).cycles, ElementsAre(0, 5));
  EXPECT_THAT(timeOf({fma(0, 0, f0, f1, f2, f3), fma(0, 0, f0, f1, f2, f0)}).cycles, ElementsAre(0, 6))
      << "third operand";
  EXPECT_THAT(timeOf({fmaxS(f0, f1, f2), faddS(f0, f0, f2)}).cycles, ElementsAre(0, 2));
  EXPECT_THAT(timeOf({ld(t0, 0, a0), add(t1, t0, t0)}).cycles, ElementsAre(0, 7));
  EXPECT_THAT(timeOf({ld(a0, 0, a0), ld(a0, 0, a0)}).cycles, ElementsAre(0, 7)) << "address";
  EXPECT_THAT(timeOf({faddS(f0, f1, f2), fsw(f0, 0, a0)}).cycles, ElementsAre(0, 4)) << "data of a store";
}

TEST(CoreTimingTest, MixedSequence) {
  // ld 0, ld 1, fmul waits for the second load (1+7), addi follows, fadd waits for fmul (8+5), sd follows.
  Timed t =
      timeOf({flw(f0, 0, a0), flw(f1, 4, a0), fmulS(f2, f0, f1), addi(a0, a0, 8), faddS(f3, f3, f2), sd(a0, 0, a1)});
  EXPECT_THAT(t.cycles, ElementsAre(0, 1, 8, 9, 13, 14));
}

TEST(CoreTimingTest, X0CarriesNoDependence) {
  EXPECT_THAT(timeOf({ld(zero, 0, a0), add(t0, zero, zero)}).cycles, ElementsAre(0, 1));
}

TEST(CoreTimingTest, IntegerAndFloatRegistersAreDistinct) {
  EXPECT_THAT(timeOf({flw(f5, 0, a0), add(t0, t0, t0)}).cycles, ElementsAre(0, 1)) << "f5 is not x5";
}

TEST(CoreTimingTest, ResultsDoNotOvertake) {
  // The add's result would be ready before the load's to the same register.
  EXPECT_THAT(timeOf({ld(t0, 0, a0), addi(t0, zero, 1), addi(t1, t0, 0)}).cycles, ElementsAre(0, 6, 7));
}

TEST(CoreTimingTest, DividersAreNotPipelined) {
  EXPECT_THAT(timeOf({fdivS(f0, f1, f2), fdivS(f3, f1, f2), addi(t0, zero, 1)}).cycles, ElementsAre(0, 23, 24));
  EXPECT_THAT(timeOf({div(t0, t1, t2), fdivS(f0, f1, f2), div(a4, t1, t2)}).cycles, ElementsAre(0, 1, 21))
      << "two dividers";
}

TEST(CoreTimingTest, TakenBranchesCostBubbles) {
  Timed t = timeOf({addi(t0, t0, 1), bne(t0, t1, -4)});
  EXPECT_THAT(t.cycles, ElementsAre(0, 1));
  EXPECT_EQ(t.run.fallThroughCycles, 2u);
  EXPECT_EQ(t.run.takenCycles, 4u);
}

TEST(CoreTimingTest, ResultsInFlightPassToTheNextBlock) {
  Timed first = timeOf({faddS(f0, f1, f2), bne(t0, t1, 8)});
  EXPECT_THAT(first.run.fallThroughState, ElementsAre(std::pair<uint8_t, uint32_t>(32, 2)));
  EXPECT_THAT(first.run.takenState, IsEmpty()) << "four cycles later it is complete";
  EXPECT_THAT(timeOf({faddS(f3, f0, f0)}, first.run.fallThroughState).cycles, ElementsAre(2));
}

TEST(CoreTimingTest, SplittingABlockChangesNothing) {
  std::vector<uint32_t> words = {flw(f0, 0, a0),    fmulS(f1, f0, f0), fdivS(f2, f1, f0), div(t0, t1, t2),
                                 faddS(f1, f1, f0), addi(t1, t0, 1),   fsw(f2, 0, a0)};
  std::vector<Instruction> all;
  for (uint32_t word : words)
    all.push_back(decode(word));
  std::vector<IssueTime> whole;
  timeRun(all, {}, table(), whole);
  for (size_t cut = 1; cut < all.size(); ++cut) {
    std::vector<IssueTime> front, back;
    RunTiming first = timeRun(std::span(all).first(cut), {}, table(), front);
    timeRun(std::span(all).subspan(cut), first.fallThroughState, table(), back);
    for (size_t i = cut; i < all.size(); ++i)
      EXPECT_EQ(back[i - cut].cycle + first.fallThroughCycles, whole[i].cycle) << cut << ", " << i;
  }
}

TEST(CoreTimingTest, DrainIsTheTimeUntilOlderResultsAreComplete) {
  Timed t = timeOf({fdivS(f0, f1, f2), ld(t0, 0, a0), addi(t1, zero, 1)});
  EXPECT_THAT(t.drains, ElementsAre(0, 22, 21)); // the division is ready at 23
}

TEST(CoreTimingTest, StatesAreInterned) {
  StateTable states;
  EXPECT_EQ(states.intern({}), 0u);
  StateId a = states.intern({{3, 5}});
  EXPECT_EQ(states.intern({{3, 5}}), a);
  EXPECT_NE(states.intern({{3, 6}}), a);
}

} // namespace
} // namespace nearbank::sim
