// SPDX-License-Identifier: Apache-2.0
#include "compiler/placement/ExactCut.h"
#include "compiler/placement/MaxFlow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace nearbank::placement {
namespace {

constexpr Site host = Site::Host, pim = Site::Pim;

/// Random programs whose nests read and write whole buffers, slices that overlap, and strided parts.
class RandomProgram {
public:
  RandomProgram(uint32_t seed, uint32_t numNests) : random_(seed) {
    machine.coherence.hostLastLevelBytes = pick(2) ? 1 << 20 : 3000;
    machine.coherence.launchNs = pick(4000);
    machine.coherence.returnNs = pick(4000);
    machine.coherence.flushLineNs = 1 + pick(100);
    machine.coherence.fetchLineNs = 1 + pick(100);
    uint32_t numBuffers = 2 + pick(6);
    for (uint32_t i = 0; i < numBuffers; ++i) {
      BufferInfo buffer;
      buffer.kind = i == 0 ? BufferKind::Input : i == 1 ? BufferKind::Output : BufferKind(pick(5));
      buffer.bytes = 4 * (1 + pick(5000));
      program.buffers.push_back(buffer);
    }
    for (uint32_t i = 0; i < numNests; ++i)
      addNest();
    // Outputs are buffers of any kind, or parts of them.
    for (uint32_t i = 0; i < 1 + pick(2); ++i) {
      uint32_t buffer = i == 0 ? 1 : pick(numBuffers);
      auto elements = int64_t(program.buffers[buffer].bytes / 4);
      int64_t first = pick(2) ? 0 : pick(uint32_t(elements));
      program.outputs.push_back({buffer, ElementType::F32, first, {elements - first}, {1}});
    }
  }

  std::vector<Site> randomSites() {
    std::vector<Site> sites;
    for (size_t i = 0; i < program.nests.size(); ++i)
      sites.push_back(pick(2) ? pim : host);
    return sites;
  }

  /// A number in [0, bound).
  uint32_t pick(uint32_t bound) { return std::uniform_int_distribution<uint32_t>(0, bound - 1)(random_); }

  Program program;
  MachineConfig machine;
  std::vector<SideTimes> times; ///< By nest.

private:
  void addNest() {
    NestInstance nest;
    nest.isHoisted = pick(10) == 0;
    for (uint32_t i = 0; i < 1 + pick(4); ++i) {
      NestOperand operand;
      operand.buffer = pick(uint32_t(program.buffers.size()));
      BufferKind kind = program.buffers[operand.buffer].kind;
      uint64_t bytes = program.buffers[operand.buffer].bytes;
      operand.spanBegin = pick(2) ? 0 : pick(uint32_t(bytes));
      operand.spanEnd = pick(2) ? bytes : operand.spanBegin + pick(uint32_t(bytes - operand.spanBegin + 1));
      operand.distinctBytes = operand.spanEnd - operand.spanBegin;
      if (pick(5) == 0)
        operand.distinctBytes /= 2;
      bool mayWrite = kind == BufferKind::Temporary || kind == BufferKind::Output;
      operand.writes = mayWrite && pick(2);
      operand.reads = !operand.writes || pick(4) == 0;
      nest.operands.push_back(operand);
    }
    program.nests.push_back(nest);
    times.push_back({double(pick(20000)) / 3, double(pick(20000)) / 7, std::nullopt});
    if (nest.isHoisted || pick(10) == 0)
      times.back().fixed = pick(2) ? pim : host;
  }

  std::mt19937 random_;
};

double modelledNs(const RandomProgram &random, std::span<const Site> sites) {
  double sum = 0;
  for (const CrossingRecord &crossing : modelCrossings(random.program, sites, random.machine))
    sum += crossing.timeNs;
  return sum;
}

/// The placement's objective from the runtime's model alone.
double objectiveNs(const RandomProgram &random, std::span<const Site> sites) {
  double total = modelledNs(random, sites);
  for (size_t i = 0; i < sites.size(); ++i)
    if (!random.program.nests[i].isHoisted)
      total += sites[i] == pim ? random.times[i].pimNs : random.times[i].hostNs;
  return total;
}

/// Least objective over every placement that leaves fixed nests where they are.
template <typename Objective> double bruteForce(const RandomProgram &random, Objective objective) {
  double best = HUGE_VAL;
  std::vector<uint32_t> open;
  std::vector<Site> sites;
  for (uint32_t i = 0; i < random.times.size(); ++i) {
    sites.push_back(random.times[i].fixed.value_or(host));
    if (!random.times[i].fixed)
      open.push_back(i);
  }
  for (uint32_t bits = 0; bits < 1U << open.size(); ++bits) {
    for (size_t i = 0; i < open.size(); ++i)
      sites[open[i]] = bits >> i & 1 ? pim : host;
    best = std::min(best, objective(sites));
  }
  return best;
}

TEST(ExactCutTest, MaxFlowOfATextbookNetwork) {
  MaxFlow network(6);
  network.addEdge(0, 1, 16);
  network.addEdge(0, 2, 13);
  network.addEdge(1, 2, 10);
  network.addEdge(2, 1, 4);
  network.addEdge(1, 3, 12);
  network.addEdge(3, 2, 9);
  network.addEdge(2, 4, 14);
  network.addEdge(4, 3, 7);
  network.addEdge(3, 5, 20);
  network.addEdge(4, 5, 4);
  EXPECT_EQ(network.run(0, 5), 23);
  std::vector<bool> sides;
  for (uint32_t node = 0; node < 6; ++node)
    sides.push_back(network.isOnSourceSide(node));
  EXPECT_THAT(sides, testing::ElementsAre(true, true, true, false, true, false));
}

TEST(ExactCutTest, CrossingsEqualTheRuntimesModel) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    RandomProgram random(seed, 1 + seed % 24);
    CrossingGraph graph(random.program, random.machine);
    for (int i = 0; i < 20; ++i) {
      std::vector<Site> sites = random.randomSites();
      double expected = modelledNs(random, sites);
      ASSERT_NEAR(graph.costNs(sites), expected, 1e-9 * (1 + expected)) << "seed " << seed;
      for (size_t position = 0; position < graph.timedNests().size(); ++position) {
        std::vector<Site> moved = sites;
        Site &site = moved[graph.timedNests()[position]];
        site = site == pim ? host : pim;
        ASSERT_NEAR(graph.changeNs(sites, position), graph.costNs(moved) - graph.costNs(sites), 1e-9 * (1 + expected));
      }
    }
  }
}

/// The runtime's model for up to ten nests; for more, the graph's cost, which the test above holds equal to it.
TEST(ExactCutTest, Pl5CutEqualsBruteForce) {
  int mixed = 0;
  for (uint32_t seed = 0; seed < 320; ++seed) {
    uint32_t numNests = 1 + seed % 16;
    RandomProgram random(1000 + seed, numNests);
    CrossingGraph graph(random.program, random.machine);
    std::vector<Site> sites = minimumCut(graph, random.times);
    double cut = objectiveNs(random, sites);
    double best = numNests <= 10
                      ? bruteForce(random, [&](const auto &sites) { return objectiveNs(random, sites); })
                      : bruteForce(random, [&](const auto &sites) { return totalNs(graph, random.times, sites); });
    ASSERT_NEAR(cut, best, 1e-9 * (1 + best)) << "seed " << seed;
    ASSERT_NEAR(totalNs(graph, random.times, sites), cut, 1e-9 * (1 + cut));
    for (size_t i = 0; i < sites.size(); ++i)
      ASSERT_EQ(sites[i], random.times[i].fixed.value_or(sites[i])) << "seed " << seed;
    mixed += std::count(sites.begin(), sites.end(), pim) % int(numNests) != 0;
  }
  EXPECT_GT(mixed, 100); // The programs are no trivial ones.
}

TEST(ExactCutTest, ACopyIsPaidOnceHoweverManyConsumers) {
  RandomProgram random(1, 0);
  random.program.buffers = {{"x", BufferKind::Input, 6400, ElementType::F32, {}, {}, {}},
                            {"t", BufferKind::Temporary, 6400, ElementType::F32, {}, {}, {}}};
  random.program.outputs.clear();
  random.machine.coherence = {0, 0, 60, 60, 64, 1 << 20, 10};
  NestInstance producer, consumer;
  producer.operands = {{1, 0, 0, 6400, 6400, false, true}};
  consumer.operands = {{1, 0, 0, 6400, 6400, true, false}};
  random.program.nests = {producer, consumer, consumer, consumer};
  // The producer must stay on the host. One copy costs 600 ns and each consumer gains 250 ns.
  random.times = {{0, 0, host}, {300, 50, {}}, {300, 50, {}}, {300, 50, {}}};
  CrossingGraph graph(random.program, random.machine);
  EXPECT_THAT(minimumCut(graph, random.times), testing::ElementsAre(host, pim, pim, pim));
  random.times[3].fixed = host; // Two consumers do not pay for it.
  EXPECT_THAT(minimumCut(graph, random.times), testing::ElementsAre(host, host, host, host));
}

TEST(ExactCutTest, TimesOfAnyMagnitudeKeepTheCutExact) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    RandomProgram random(5000 + seed, 8);
    for (SideTimes &time : random.times) {
      time.hostNs *= 1e9; // Months beside nanoseconds.
      if (random.pick(2))
        time.pimNs = time.hostNs + random.pick(2000) - 1000;
    }
    CrossingGraph graph(random.program, random.machine);
    double best = bruteForce(random, [&](const auto &sites) { return totalNs(graph, random.times, sites); });
    EXPECT_NEAR(totalNs(graph, random.times, minimumCut(graph, random.times)), best, 1e-12 * best);
  }
}

TEST(ExactCutTest, ProgramOfThousandsOfNestsIsCut) {
  RandomProgram random(7, 3000);
  CrossingGraph graph(random.program, random.machine);
  std::vector<Site> sites = minimumCut(graph, random.times);
  double total = totalNs(graph, random.times, sites);
  for (size_t position = 0; position < graph.timedNests().size(); ++position) {
    uint32_t nest = graph.timedNests()[position];
    if (random.times[nest].fixed)
      continue;
    double toPim = random.times[nest].pimNs - random.times[nest].hostNs;
    double change = graph.changeNs(sites, position) + (sites[nest] == pim ? -toPim : toPim);
    ASSERT_GE(change, -1e-9 * total) << nest;
  }
}

} // namespace
} // namespace nearbank::placement
