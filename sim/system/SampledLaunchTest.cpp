// SPDX-License-Identifier: Apache-2.0
// Estimates against whole launches: streams, a walk with reuse, ragged and short launches.
#include "sim/system/SampledLaunch.h"

#include "sim/system/NmcMachine.h"
#include "sim/system/PartSampler.h"

#include "sim/isa/TestEncoder.h"

#include <gmock/gmock.h>

#include <cmath>

namespace nearbank::sim {
namespace {

using namespace encode;

constexpr uint64_t inputBase = 0x10000000, outputBase = 0x20000000;

MachineConfig machineOf(int64_t cores) {
  MachineConfig config;
  config.core.count = cores;
  return config;
}

struct Case {
  std::vector<std::byte> elf;
  std::vector<uint64_t> input, output;
  std::vector<GuestRegion> regions;
  std::vector<uint64_t> operands{inputBase, outputBase};

  Case(const std::vector<uint32_t> &code, size_t elements) : elf(elfOf(code)), input(elements), output(elements) {
    regions = {{inputBase, input.data(), elements * 8, false}, {outputBase, output.data(), elements * 8, true}};
  }
  NmcLaunch launch(int64_t tasks) const {
    NmcLaunch result;
    result.elf = elf;
    result.regions = regions;
    result.operandAddresses = operands;
    result.tasks = tasks;
    return result;
  }
};

// The bounds are those that docs/model.md promises: 3 % on average, 10 % at worst.
TEST(SampledLaunchTest, StreamIsWithinThreePercentOnAverage) {
  constexpr int64_t tasks = 8 << 20;
  Case stream(copyKernel(), tasks);
  double errors = 0;
  for (int64_t cores : {4, 8, 16}) {
    NmcMachine machine(machineOf(cores), 2);
    SamplingOptions options;
    options.leastInstructions = 1e6;
    SampledTiming sampled = launchSampled(machine, stream.launch(tasks), options);
    NmcLaunchStats exact = machine.launch(stream.launch(tasks));
    EXPECT_FALSE(sampled.isExact);
    EXPECT_LT(sampled.sampledShare, 0.25);
    double error = std::abs(sampled.stats.timeNs / exact.timeNs - 1);
    EXPECT_LT(error, 0.10) << cores << " cores";
    errors += error / 3;
    EXPECT_NEAR(static_cast<double>(sampled.stats.instructions) / static_cast<double>(exact.instructions), 1.0, 0.02);
    EXPECT_NEAR(static_cast<double>(sampled.stats.dramBytes) / static_cast<double>(exact.dramBytes), 1.0, 0.05);
    EXPECT_LE(sampled.lowNs, sampled.stats.timeNs);
    EXPECT_GE(sampled.highNs, sampled.stats.timeNs);
  }
  EXPECT_LT(errors, 0.03);
}

TEST(SampledLaunchTest, ShortLaunchRunsWhole) {
  Case stream(copyKernel(), 1000);
  NmcMachine machine(machineOf(8), 1);
  SampledTiming sampled = launchSampled(machine, stream.launch(1000));
  EXPECT_TRUE(sampled.isExact);
  EXPECT_EQ(sampled.stats.coreCycles, machine.launch(stream.launch(1000)).coreCycles);
  EXPECT_EQ(sampled.lowNs, sampled.stats.timeNs);
}

TEST(SampledLaunchTest, WindowsRunTheirTasksOnly) {
  Case stream(copyKernel(), 64);
  NmcMachine machine(machineOf(4), 1);
  NmcLaunch launch = stream.launch(64);
  launch.firstTaskOfCore = 3;
  launch.tasksOfCore = 2;
  machine.launch(launch);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(stream.output[i], i % 16 == 3 || i % 16 == 4 ? 1 : 0) << i;
}

TEST(SampledLaunchTest, CallsRunTheirTasksAndTellWhenTheyEnded) {
  Case stream(copyKernel(), 64);
  NmcMachine machine(machineOf(4), 2);
  NmcLaunch launch = stream.launch(64);
  const TaskRange calls[] = {{0, 2}, {5, 6}, {9, 9}, {15, 20}};
  launch.calls = calls;
  launch.spreadCall = 1, launch.spreadCycles = 4000;
  NmcLaunchStats stats = machine.launch(launch);
  for (size_t i = 0; i < 64; ++i) {
    size_t task = i % 16;
    EXPECT_EQ(stream.output[i], task < 2 || task == 5 || task == 15 ? 1 : 0) << i;
  }
  ASSERT_EQ(stats.progress.size(), 4u);
  for (size_t core = 0; core < 4; ++core) {
    const NmcLaunchStats::CoreProgress &of = stats.progress[core];
    EXPECT_EQ(of.blockTasks, 16);
    EXPECT_EQ(of.waitCycles, 1000 * (core + 1));
    ASSERT_EQ(of.points.size(), 4u);
    EXPECT_GE(of.points[1].cycle, of.points[0].cycle + of.waitCycles);
    EXPECT_EQ(of.points[2].cycle, of.points[1].cycle) << "of no tasks";
    EXPECT_GT(of.points[3].cycle, of.points[2].cycle);
    EXPECT_LE(of.points[3].stallCycles, of.points[3].cycle);
    EXPECT_LE(of.points[3].cycle, stats.coreCycles);
  }
}

TEST(SampledLaunchTest, OneCallOfAllTasksTakesAsLongAsTheLaunch) {
  Case stream(copyKernel(), 4096);
  NmcMachine machine(machineOf(8), 1);
  NmcLaunch launch = stream.launch(4096);
  uint64_t cycles = machine.launch(launch).coreCycles;
  const TaskRange all[] = {{0, 512}};
  launch.calls = all;
  EXPECT_EQ(machine.launch(launch).coreCycles, cycles);
  launch.coreStride = 4;
  EXPECT_EQ(machine.launch(launch).coresUsed, 2);
}

TEST(SampledLaunchTest, PointsLieAtStepsOfOwnCyclesUpToTheLimit) {
  Case stream(copyKernel(), 16384);
  NmcMachine machine(machineOf(4), 1);
  NmcLaunch launch = stream.launch(16384);
  launch.pointCycles = 1000, launch.ownCyclesLimit = 10000;
  NmcLaunchStats stats = machine.launch(launch);
  for (const NmcLaunchStats::CoreProgress &core : stats.progress) {
    // Ten steps and the end. A line of eight elements, 7 instructions and 3 bubbles each and 3 cycles for the load's
    // result, lies between two misses.
    ASSERT_EQ(core.points.size(), 11u);
    for (uint64_t k = 0; k < 10; ++k) {
      EXPECT_GE(core.points[k].ownCycles(), 1000 * (k + 1));
      EXPECT_LT(core.points[k].ownCycles(), 1000 * (k + 1) + 8 * 13);
    }
    EXPECT_LT(core.points[10].ownCycles(), 10000 + 2 * 8 * 13);
  }
}

/// `spins` turns of an empty loop, then output[i] = input[i] + 1 for the 32768 elements of a task.
std::vector<uint32_t> longTasks(uint32_t spins) {
  return {ld(a4, 0, a0),     ld(a5, 8, a0),    slli(t0, a1, 18), // each task
          add(a6, a4, t0),   add(a7, a5, t0),  lui(t2, spins >> 12),
          beq(t2, zero, 12), addi(t2, t2, -1), bne(t2, zero, -4),
          lui(t2, 8),        ld(t1, 0, a6), // each element
          addi(t1, t1, 1),   sd(t1, 0, a7),    addi(a6, a6, 8),
          addi(a7, a7, 8),   addi(t2, t2, -1), bne(t2, zero, -24),
          addi(a1, a1, 1),   blt(a1, a2, -64), ret()};
}

TEST(SampledLaunchTest, LongTasksThatAreAlikeThroughoutAreCutShort) {
  constexpr int64_t tasks = 64;
  Case stream(longTasks(0), tasks << 15);
  NmcMachine machine(machineOf(8), 2);
  SamplingOptions options;
  options.leastInstructions = 1e6;
  std::optional<SampledTiming> sampled = samplePart(machine, stream.launch(tasks), options);
  ASSERT_TRUE(sampled.has_value());
  NmcLaunchStats exact = machine.launch(stream.launch(tasks));
  EXPECT_LT(sampled->sampledShare, 0.1);
  EXPECT_NEAR(sampled->stats.timeNs / exact.timeNs, 1, 0.03);
  EXPECT_LE(sampled->lowNs, exact.timeNs);
  EXPECT_GE(sampled->highNs, exact.timeNs);
  EXPECT_NEAR(static_cast<double>(sampled->stats.instructions) / static_cast<double>(exact.instructions), 1, 0.02);
  EXPECT_NEAR(static_cast<double>(sampled->stats.dramReads) / static_cast<double>(exact.dramReads), 1, 0.03);
}

TEST(SampledLaunchTest, TasksThatAreNotAlikeThroughoutAreNotCut) {
  constexpr int64_t tasks = 64;
  Case stream(longTasks(65536), tasks << 15);
  NmcMachine machine(machineOf(8), 2);
  SamplingOptions options;
  options.leastInstructions = 1e6;
  EXPECT_FALSE(samplePart(machine, stream.launch(tasks), options).has_value());
  EXPECT_FALSE(samplePart(machine, stream.launch(tasks + 1), options).has_value()) << "blocks of two lengths";
}

TEST(SampledLaunchTest, RepeatsExactly) {
  constexpr int64_t tasks = 2 << 20;
  Case stream(copyKernel(), tasks);
  NmcMachine one(machineOf(64), 1), three(machineOf(64), 3);
  SamplingOptions options;
  options.leastInstructions = 1e6;
  EXPECT_FALSE(launchSampled(one, stream.launch(tasks), options).isExact);
  EXPECT_EQ(launchSampled(one, stream.launch(tasks), options).stats.coreCycles,
            launchSampled(three, stream.launch(tasks), options).stats.coreCycles);
}

} // namespace
} // namespace nearbank::sim
