// SPDX-License-Identifier: Apache-2.0
// Vector instructions on near-memory cores: hand-counted cycles, and accesses that stop half-way. VLEN and datapath are
// 128 bits. Words were assembled by llvm-mc 22 from the source beside them.
#include "sim/system/NmcMachine.h"

#include "sim/isa/TestEncoder.h"

#include <gmock/gmock.h>

namespace nearbank::sim {
namespace {

using namespace encode;

constexpr uint64_t inputBase = 0x10000000, outputBase = 0x20000000;
constexpr uint32_t setE32M1Of4 = 0xcd027057;  // vsetivli zero, 4, e32, m1, ta, ma
constexpr uint32_t setE32M4Of16 = 0xcd287057; // vsetivli zero, 16, e32, m4, ta, ma
constexpr uint32_t setE32M4Of3 = 0xcd21f057;  // vsetivli zero, 3, e32, m4, ta, ma
constexpr uint32_t dependentAdd = 0x02881457; // vfadd.vv v8, v8, v16

MachineConfig vectorConfig() {
  MachineConfig config;
  config.core.count = 1;
  config.core.vectorBits = config.core.vectorLanesBits = 128;
  config.dram.tCkNs = 1.0;
  config.dram.nREFI = 0;
  return config;
}

NmcLaunchStats launch(NmcMachine &machine, const std::vector<uint32_t> &code, int64_t tasks,
                      std::vector<uint64_t> &input, std::vector<uint64_t> &output) {
  std::vector<std::byte> elf = elfOf(code);
  std::vector<GuestRegion> regions = {{inputBase, input.data(), input.size() * 8, false},
                                      {outputBase, output.data(), output.size() * 8, true}};
  const uint64_t operands[] = {inputBase, outputBase};
  return machine.launch({.elf = elf, .regions = regions, .operandAddresses = operands, .tasks = tasks});
}

/// Core cycles of one iteration of a loop over [a1, a2) with `body` inside, the vector type set before it.
double cyclesPerIteration(uint32_t set, const std::vector<uint32_t> &body) {
  NmcMachine machine(vectorConfig(), 1);
  std::vector<uint64_t> input(64), output(1);
  std::vector<uint32_t> code = {ld(a6, 0, a0), addi(t1, zero, 16), set};
  code.insert(code.end(), body.begin(), body.end());
  code.push_back(addi(a1, a1, 1));
  code.push_back(blt(a1, a2, -4 * static_cast<int32_t>(body.size() + 1)));
  code.push_back(ret());
  uint64_t shortRun = launch(machine, code, 100, input, output).coreCycles;
  return static_cast<double>(launch(machine, code, 300, input, output).coreCycles - shortRun) / 200;
}

TEST(VectorMachineTest, OccupancyFollowsTheLengthThatWasSetBeforeTheLoop) {
  // An addition takes o cycles of the datapath, its result 4 + o - 1; the second waits for the first; then addi, blt,
  // and 2 bubbles: o + 3 + o + 1 + 1 + 2.
  EXPECT_DOUBLE_EQ(cyclesPerIteration(setE32M1Of4, {dependentAdd, dependentAdd}), 2 * 1 + 7);
  EXPECT_DOUBLE_EQ(cyclesPerIteration(setE32M4Of16, {dependentAdd, dependentAdd}), 2 * 4 + 7);
  EXPECT_DOUBLE_EQ(cyclesPerIteration(setE32M4Of3, {dependentAdd, dependentAdd}), 2 * 1 + 7) << "three elements";
}

TEST(VectorMachineTest, TypeMayChangeInTheLoop) {
  // Each vset takes a cycle; the additions are of 1 and of 4 cycles: 1, 1 and 3 of waiting, 1 hidden; 4; 1, 1, 2.
  EXPECT_DOUBLE_EQ(cyclesPerIteration(setE32M1Of4, {setE32M1Of4, dependentAdd, setE32M4Of16, dependentAdd}),
                   1 + 4 + 4 + 1 + 1 + 2);
}

TEST(VectorMachineTest, StridedLoadsTakeACyclePerElement) {
  EXPECT_DOUBLE_EQ(cyclesPerIteration(setE32M1Of4, {0x0a668407}), 4 + 4); // vlse32.v v8, (a6), t1
}

TEST(VectorMachineTest, OrderedReductionsTakeAnAdditionPerElement) {
  EXPECT_DOUBLE_EQ(cyclesPerIteration(setE32M4Of16, {0x0ec81457}), 16 * (4 + 3) + 4); // vfredosum.vs v8, v12, v16
}

TEST(VectorMachineTest, GatherOverItsOwnIndicesGoesOnWhereItStopped) {
  // Every element has a line of its own, and more lines are missed than events fit between two replays.
  constexpr size_t tasks = 64, length = 16, stride = 40;
  std::vector<uint64_t> input(tasks * length * (1 + stride)), output(tasks * length);
  for (size_t i = 0; i < tasks * length; ++i) {
    size_t from = tasks * length + (i * 997 % (tasks * length)) * stride;
    input[i] = from * 8;
    input[from] = i * i + 1;
  }
  const std::vector<uint32_t> code = {ld(a6, 0, a0),   ld(a5, 8, a0),    slli(t0, a1, 7), // 128 B of indices a task
                                      add(t1, a6, t0), add(t2, a5, t0),
                                      0x0db072d7, // vsetvli t0, zero, e64, m8, ta, ma
                                      0x02037407, // vle64.v v8, (t1)
                                      0x06887407, // vluxei64.v v8, (a6), v8
                                      0x0203f427, // vse64.v v8, (t2)
                                      addi(a1, a1, 1), blt(a1, a2, -32), ret()};
  MachineConfig config = vectorConfig();
  config.l1d.sizeBytes = 1024, config.l1d.ways = 2;
  NmcMachine machine(config, 1);
  NmcLaunchStats stats = launch(machine, code, tasks, input, output);
  for (size_t i = 0; i < tasks * length; ++i)
    ASSERT_EQ(output[i], i * i + 1) << i;
  // Two operands; per task one element of the gather at a time, and two lines of each stream.
  EXPECT_EQ(stats.l1dAccesses, 2 + tasks * (length + 2 + 2));
}

} // namespace
} // namespace nearbank::sim
