// SPDX-License-Identifier: Apache-2.0
// Estimates against whole launches: streams, a walk with reuse, ragged and short launches.
#include "sim/system/SampledLaunch.h"

#include "sim/system/NmcMachine.h"

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
    SampledTiming sampled = launchSampled(machine, stream.launch(tasks));
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

TEST(SampledLaunchTest, RepeatsExactly) {
  constexpr int64_t tasks = 2 << 20;
  Case stream(copyKernel(), tasks);
  NmcMachine one(machineOf(64), 1), three(machineOf(64), 3);
  SamplingOptions options;
  options.windowInstructions = 500;
  EXPECT_EQ(launchSampled(one, stream.launch(tasks), options).stats.coreCycles,
            launchSampled(three, stream.launch(tasks), options).stats.coreCycles);
}

} // namespace
} // namespace nearbank::sim
