// SPDX-License-Identifier: Apache-2.0
#include "runtime/Residency.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>
#include <set>

namespace nearbank {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ResidencyTest, ByteSetWeighsBytes) {
  ByteSet set;
  set.add(0, 100, 0.5);
  set.add(50, 150);
  EXPECT_EQ(set.overlap(0, 200), 25 + 100);
  set.remove(40, 60);
  EXPECT_EQ(set.overlap(0, 200), 20 + 90);
}

TEST(ResidencyTest, ByteSetAgreesWithASetOfNumbers) {
  std::minstd_rand random(1);
  ByteSet set;
  std::set<uint64_t> reference;
  for (int step = 0; step < 3000; ++step) {
    uint64_t begin = random() % 100, end = begin + random() % 20;
    bool adds = random() % 2;
    adds ? set.add(begin, end) : set.remove(begin, end);
    for (uint64_t byte = begin; byte < end; ++byte)
      adds ? void(reference.insert(byte)) : void(reference.erase(byte));
    uint64_t from = random() % 100, to = from + random() % 40;
    ASSERT_EQ(set.overlap(from, to), std::distance(reference.lower_bound(from), reference.lower_bound(to)));
  }
}

/// Buffers: 0 input, 1 parameter, 2 temporary, 3 output; 6400 B each.
constexpr uint64_t bufferBytes = 6400;

NestOperand reads(uint32_t buffer, uint64_t begin = 0, uint64_t end = bufferBytes) {
  return {buffer, begin, begin, end, end - begin, true, false};
}
NestOperand writes(uint32_t buffer, uint64_t begin = 0, uint64_t end = bufferBytes) {
  return {buffer, begin, begin, end, end - begin, false, true};
}

Program programOf(std::vector<std::vector<NestOperand>> nests) {
  Program program;
  BufferKind kinds[] = {BufferKind::Input, BufferKind::Parameter, BufferKind::Temporary, BufferKind::Output};
  for (uint32_t i = 0; i < 4; ++i) {
    BufferInfo buffer{"b", kinds[i], bufferBytes, ElementType::F32, {}, {}, {}};
    program.buffers.push_back(buffer);
  }
  for (size_t i = 0; i < nests.size(); ++i) {
    NestInstance nest;
    nest.id = fmt::format("n{}", i);
    nest.operands = std::move(nests[i]);
    program.nests.push_back(nest);
  }
  program.outputs.push_back({3, ElementType::F32, 0, {40, 40}, {40, 1}});
  return program;
}

/// Costs that are easy to do in one's head: 100 lines a buffer, 10 at a time.
MachineConfig machineOf(int64_t lastLevelBytes = 1 << 20) {
  MachineConfig machine;
  machine.coherence = {1000, 2000, 50, 70, 64, lastLevelBytes, 10};
  return machine;
}

std::vector<std::string> crossingsOf(const Program &program, std::vector<Site> placement,
                                     const MachineConfig &machine = machineOf()) {
  std::vector<std::string> lines;
  for (const CrossingRecord &crossing : modelCrossings(program, placement, machine))
    lines.push_back(fmt::format("n{} {} b{} {} B {} ns", crossing.nest, crossing.kind, crossing.buffer, crossing.bytes,
                                crossing.timeNs));
  return lines;
}

constexpr Site host = Site::Host, pim = Site::Pim;

TEST(ResidencyTest, HostOnlyProgramCrossesNothing) {
  EXPECT_THAT(crossingsOf(programOf({{reads(0), writes(2)}, {reads(2), writes(3)}}), {host, host}), IsEmpty());
}

TEST(ResidencyTest, PimOnlyProgramFlushesInputsAndFetchesOutputs) {
  EXPECT_THAT(crossingsOf(programOf({{reads(0), reads(1), writes(2)}, {reads(2), writes(3)}}), {pim, pim}),
              ElementsAre("n0 launch b-1 0 B 1000 ns", "n0 flush b0 6400 B 500 ns", "n1 return b-1 0 B 2000 ns",
                          "n1 fetch b3 6400 B 700 ns"));
}

TEST(ResidencyTest, EachVersionCrossesOnceHoweverManyConsumers) {
  Program program = programOf(
      {{reads(0), writes(2)}, {reads(2), writes(3)}, {reads(2), writes(3)}, {writes(2)}, {reads(2), writes(3)}});
  EXPECT_THAT(crossingsOf(program, {host, pim, pim, host, pim}),
              ElementsAre("n1 launch b-1 0 B 1000 ns", "n1 flush b2 6400 B 500 ns", "n3 return b-1 0 B 2000 ns",
                          "n4 launch b-1 0 B 1000 ns", "n4 flush b2 6400 B 500 ns", "n4 return b-1 0 B 2000 ns",
                          "n4 fetch b3 6400 B 700 ns"));
}

TEST(ResidencyTest, ModelledHostFlushesWithAllCoresAndFetchesWithinItsOwnTimes) {
  MachineConfig machine = machineOf(), modelled;
  modelled.core.count = 4;
  modelled.l3.sizeBytes = 1600; // Two of them hold half of a buffer.
  modelled.l3SharedBy = 2;
  modelled.dram.vaults = 1;
  modelled.dram.vaultBandwidthGBs = 64; // A line per ns; 40 lines in flight bring one in 50 / 40 ns.
  machine.coherence = coherenceBeside(machine.coherence, modelled);
  Program program = programOf({{reads(0), writes(3)}});
  EXPECT_THAT(crossingsOf(program, {pim}, machine),
              ElementsAre("n0 launch b-1 0 B 1000 ns", "n0 flush b0 3200 B 62.5 ns", "n0 return b-1 0 B 2000 ns",
                          "n0 fetch b3 6400 B 0 ns"));
  // A slower bus bounds them: 4 ns a line.
  modelled.dram.vaultBandwidthGBs = 16;
  machine.coherence = coherenceBeside(machineOf().coherence, modelled);
  EXPECT_EQ(crossingNs(6400, pim, machine.coherence), 400);
}

TEST(ResidencyTest, HostReaderFetchesWhatPimWrote) {
  EXPECT_THAT(crossingsOf(programOf({{reads(1), writes(2)}, {reads(2), writes(3)}}), {pim, host}),
              ElementsAre("n0 launch b-1 0 B 1000 ns", "n1 return b-1 0 B 2000 ns", "n1 fetch b2 6400 B 700 ns"));
}

TEST(ResidencyTest, FlushIsBoundedByTheLastLevelCacheButFetchIsNot) {
  Program program = programOf({{reads(0), writes(3)}});
  EXPECT_THAT(crossingsOf(program, {pim}, machineOf(640)),
              ElementsAre("n0 launch b-1 0 B 1000 ns", "n0 flush b0 640 B 50 ns", "n0 return b-1 0 B 2000 ns",
                          "n0 fetch b3 6400 B 700 ns"));
}

TEST(ResidencyTest, PartsOfAVersionCostWhatTheWholeDoes) {
  Program whole = programOf({{reads(0), writes(3)}}),
          parts = programOf({{reads(0, 0, 1000), writes(3)}, {reads(0, 900, bufferBytes), writes(3)}});
  for (int64_t lastLevelBytes : {640, 1 << 20}) {
    auto costOf = [&](const Program &program, std::vector<Site> placement) {
      double sum = 0;
      for (const CrossingRecord &crossing : modelCrossings(program, placement, machineOf(lastLevelBytes)))
        sum += crossing.timeNs;
      return sum;
    };
    EXPECT_NEAR(costOf(parts, {pim, pim}), costOf(whole, {pim}), 1e-9);
  }
}

TEST(ResidencyTest, OnlyTheSpanThatIsReadCrosses) {
  Program program =
      programOf({{reads(0, 0, 640), writes(2)}, {reads(0, 320, 1280), writes(2)}, {reads(2, 0, 64), writes(3)}});
  EXPECT_THAT(crossingsOf(program, {pim, pim, host}),
              ElementsAre("n0 launch b-1 0 B 1000 ns", "n0 flush b0 640 B 50 ns", "n1 flush b0 640 B 50 ns",
                          "n2 return b-1 0 B 2000 ns", "n2 fetch b2 64 B 7 ns"));
}

TEST(ResidencyTest, DenseOverwriteNeedsNothingFromTheOtherSide) {
  Program program = programOf({{writes(2)}, {writes(2)}, {reads(2), writes(3)}});
  EXPECT_THAT(crossingsOf(program, {pim, host, host}),
              ElementsAre("n0 launch b-1 0 B 1000 ns", "n1 return b-1 0 B 2000 ns"));
}

TEST(ResidencyTest, StridedWriterNeedsTheOldVersion) {
  NestOperand strided = writes(2);
  strided.distinctBytes = bufferBytes / 2;
  Program program = programOf({{reads(0), writes(2)}, {strided}, {reads(2), writes(3)}});
  EXPECT_THAT(crossingsOf(program, {host, pim, host}),
              ElementsAre("n1 launch b-1 0 B 1000 ns", "n1 flush b2 6400 B 500 ns", "n2 return b-1 0 B 2000 ns",
                          "n2 fetch b2 6400 B 700 ns"));
}

TEST(ResidencyTest, HoistedNestsStayOutsideTheTimedProgram) {
  Program program = programOf({{reads(1), writes(2)}, {reads(2), writes(3)}});
  program.nests[0].isHoisted = true;
  EXPECT_THAT(crossingsOf(program, {pim, host}), IsEmpty());
}

TEST(ResidencyTest, UnreadOutputPartStaysOnPim) {
  Program program = programOf({{reads(1), writes(3)}});
  program.outputs[0] = {3, ElementType::F32, 40, {2, 10}, {80, 1}};
  EXPECT_THAT(crossingsOf(program, {pim}),
              ElementsAre("n0 launch b-1 0 B 1000 ns", "n0 return b-1 0 B 2000 ns", "n0 fetch b3 360 B 39.375 ns"));
}

} // namespace
} // namespace nearbank
