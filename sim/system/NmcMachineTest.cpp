// SPDX-License-Identifier: Apache-2.0
// Whole launches: results, counts, timing against formulas, determinism.
#include "sim/system/NmcMachine.h"

#include "sim/isa/TestEncoder.h"

#include <gmock/gmock.h>

#include <cstring>
#include <tuple>

namespace nearbank::sim {
namespace {

using namespace encode;

constexpr uint64_t inputBase = 0x10000000, outputBase = 0x20000000;

/// Times that come out even: core and DRAM at 1 ns, no refresh.
MachineConfig evenConfig(int64_t cores) {
  MachineConfig config;
  config.core.count = cores;
  config.dram.tCkNs = 1.0;
  config.dram.nREFI = 0;
  return config;
}

struct Buffers {
  std::vector<uint64_t> input, output;
};

NmcLaunchStats launch(NmcMachine &machine, const std::vector<uint32_t> &code, int64_t tasks, Buffers &buffers) {
  std::vector<std::byte> elf = elfOf(code);
  std::vector<GuestRegion> regions;
  if (!buffers.input.empty())
    regions.push_back({inputBase, buffers.input.data(), buffers.input.size() * 8, false});
  if (!buffers.output.empty())
    regions.push_back({outputBase, buffers.output.data(), buffers.output.size() * 8, true});
  const uint64_t operands[] = {inputBase, outputBase};
  return machine.launch({.elf = elf, .regions = regions, .operandAddresses = operands, .tasks = tasks});
}

auto fields(const NmcLaunchStats &s) {
  return std::tuple(s.coreCycles, s.timeNs, s.instructions, s.instructionsByClass, s.coresUsed, s.l1dAccesses,
                    s.l1dMisses, s.l1iMisses, s.writebacks, s.dramReads, s.dramWrites, s.dramBytes, s.rowHits,
                    s.rowMisses, s.rowConflicts, s.memoryStallCycles, s.vaultBusyShare, s.status.code, s.status.value);
}

/// A loop over [a1, a2) with `body` inside; a6 holds inputBase.
std::vector<uint32_t> loopKernel(const std::vector<uint32_t> &body) {
  std::vector<uint32_t> code = {ld(a6, 0, a0)};
  code.insert(code.end(), body.begin(), body.end());
  code.push_back(addi(a1, a1, 1));
  code.push_back(blt(a1, a2, -4 * static_cast<int32_t>(body.size() + 1)));
  code.push_back(ret());
  return code;
}

/// Core cycles of one iteration, from two launches of different length on one core.
double cyclesPerIteration(const std::vector<uint32_t> &body, const MachineConfig &config,
                          std::vector<uint64_t> input = std::vector<uint64_t>(8)) {
  NmcMachine machine(config, 1);
  Buffers buffers{std::move(input), {}};
  uint64_t shortRun = launch(machine, loopKernel(body), 100, buffers).coreCycles;
  uint64_t longRun = launch(machine, loopKernel(body), 300, buffers).coreCycles;
  return static_cast<double>(longRun - shortRun) / 200;
}

TEST(NmcMachineTest, EveryTaskRunsOnceOnAnyNumberOfCores) {
  for (int64_t cores : {1, 3, 8, 64})
    for (int64_t tasks : {1, 2, 63, 64, 65, 1000}) {
      NmcMachine machine(evenConfig(cores), 2);
      Buffers buffers{std::vector<uint64_t>(1000), std::vector<uint64_t>(1000, 7)};
      for (size_t i = 0; i < 1000; ++i)
        buffers.input[i] = i * i;
      NmcLaunchStats stats = launch(machine, copyKernel(), tasks, buffers);
      for (size_t i = 0; i < 1000; ++i)
        ASSERT_EQ(buffers.output[i], static_cast<int64_t>(i) < tasks ? i * i + 1 : 7) << i;
      EXPECT_EQ(stats.coresUsed, std::min(cores, tasks));
      EXPECT_EQ(stats.instructions, static_cast<uint64_t>(6 * stats.coresUsed + 7 * tasks));
      EXPECT_EQ(stats.l1dAccesses, static_cast<uint64_t>(2 * stats.coresUsed + 2 * tasks));
      auto classCount = [&](InstructionClass c) { return stats.instructionsByClass[static_cast<size_t>(c)]; };
      EXPECT_EQ(classCount(InstructionClass::Load), static_cast<uint64_t>(2 * stats.coresUsed + tasks));
      EXPECT_EQ(classCount(InstructionClass::Store), static_cast<uint64_t>(tasks));
      EXPECT_EQ(classCount(InstructionClass::Branch), static_cast<uint64_t>(stats.coresUsed + tasks));
    }
}

TEST(NmcMachineTest, NoTasksNoTime) {
  NmcMachine machine(evenConfig(4), 1);
  Buffers buffers{std::vector<uint64_t>(8), {}};
  EXPECT_EQ(fields(launch(machine, copyKernel(), 0, buffers)), fields(NmcLaunchStats{}));
}

TEST(NmcMachineTest, StreamingCountsLinesBothWays) {
  NmcMachine machine(evenConfig(1), 1);
  Buffers buffers{std::vector<uint64_t>(8192, 1), std::vector<uint64_t>(8192)};
  NmcLaunchStats stats = launch(machine, copyKernel(), 8192, buffers);
  // 1,024 lines in, 1,024 out, and the operand table; text is one line (13 instructions).
  EXPECT_EQ(stats.l1dMisses, 2049u);
  EXPECT_EQ(stats.l1iMisses, 1u);
  EXPECT_EQ(stats.dramReads, 2050u);
  EXPECT_EQ(stats.writebacks, 1024u) << "evicted or flushed at the end";
  EXPECT_EQ(stats.dramWrites, 1024u);
  EXPECT_EQ(stats.dramBytes, (2050u + 1024u) * 64);
  EXPECT_EQ(stats.rowHits + stats.rowMisses + stats.rowConflicts, 2050u + 1024u);
}

TEST(NmcMachineTest, CacheSizeDecidesWhetherASecondSweepMisses) {
  // Each iteration sweeps 16 KiB: 256 lines.
  std::vector<uint32_t> sweep = {addi(t0, a6, 0),  addi(t1, zero, 256), ld(t2, 0, t0),
                                 addi(t0, t0, 64), addi(t1, t1, -1),    bne(t1, zero, -12)};
  Buffers buffers{std::vector<uint64_t>(2048), {}};
  for (auto [bytes, missesPerSweep] : {std::pair<int64_t, uint64_t>(32768, 0), {8192, 256}}) {
    MachineConfig config = evenConfig(1);
    config.l1d.sizeBytes = bytes;
    NmcMachine machine(config, 1);
    uint64_t once = launch(machine, loopKernel(sweep), 1, buffers).l1dMisses;
    EXPECT_EQ(launch(machine, loopKernel(sweep), 5, buffers).l1dMisses, once + 4 * missesPerSweep) << bytes;
    config.l2 = CacheConfig{65536, 8, 64, 10};
    NmcMachine withL2(config, 1);
    EXPECT_EQ(launch(withL2, loopKernel(sweep), 1, buffers).dramReads,
              launch(withL2, loopKernel(sweep), 5, buffers).dramReads)
        << "the L2 keeps it";
  }
}

TEST(NmcMachineTest, SecondLevelHitCostsBothLatencies) {
  MachineConfig config = evenConfig(1);
  config.l1d = {256, 1, 64, 4}; // four sets of one way
  config.l2 = CacheConfig{65536, 8, 64, 10};
  // Two lines of one L1 set in turn: each load misses the L1 and hits the L2.
  std::vector<uint32_t> body = {ld(t0, 0, a6), ld(t1, 256, a6)};
  // A load issues, 14 cycles later the core goes on; addi and blt take one cycle each, the branch two bubbles.
  EXPECT_EQ(cyclesPerIteration(body, config, std::vector<uint64_t>(64)), 14 + 14 + 1 + 1 + 2);
}

/// A cycle of pointers, `stride` bytes apart.
std::vector<uint64_t> pointerChain(uint64_t stride, uint64_t count) {
  std::vector<uint64_t> chain(stride / 8 * count);
  for (uint64_t i = 0; i < count; ++i)
    chain[i * stride / 8] = inputBase + (i + 1) % count * stride;
  return chain;
}

TEST(NmcMachineTest, LoopsTakeTheCyclesCountedByHand) {
  MachineConfig config = evenConfig(1); // ALU 1, FP add 4, L1 hit 4, two bubbles
  EXPECT_EQ(cyclesPerIteration({}, config), 1 + 1 + 2);
  EXPECT_EQ(cyclesPerIteration({faddS(f0, f0, f1)}, config), 5) << "the loop hides the latency";
  EXPECT_EQ(cyclesPerIteration({faddS(f0, f0, f1), faddS(f0, f0, f1)}, config), 9);
  EXPECT_EQ(cyclesPerIteration({faddS(f0, f0, f2), faddS(f1, f1, f2)}, config), 6);
  EXPECT_EQ(cyclesPerIteration({ld(t0, 0, a6), add(t1, t0, t0)}, config), 4 + 1 + 1 + 1 + 2);
  EXPECT_EQ(cyclesPerIteration({fdivS(f0, f1, f2)}, config), 20) << "the divider is the limit";
  EXPECT_EQ(cyclesPerIteration({add(t0, t1, t1), add(t2, t1, t1), add(a7, t1, t1)}, config), 3 + 4) << "independent";
  EXPECT_EQ(cyclesPerIteration({add(t0, t0, t1), add(t0, t0, t1), add(t0, t0, t1)}, config), 3 + 4) << "dependent";
  // Each load waits for the address that the one before brought; addi, blt and the bubbles hide the last one's wait.
  EXPECT_EQ(cyclesPerIteration({ld(a6, 0, a6), ld(a6, 0, a6), ld(a6, 0, a6)}, config, pointerChain(8, 8)),
            4 + 4 + 1 + 1 + 1 + 2);
  EXPECT_EQ(cyclesPerIteration({ld(t0, 0, a6), ld(t1, 8, a6), ld(t2, 16, a6)}, config), 3 + 4);
  // Mixed: the product waits 4 cycles for the load, its sum 3 for the product.
  EXPECT_EQ(cyclesPerIteration({ld(t0, 0, a6), add(t2, t1, t1), mul(t1, t0, t0), add(t0, t1, t1)}, config),
            4 + 3 + 1 + 1 + 1 + 2);
  config.core.branchTakenCycles = 5;
  EXPECT_EQ(cyclesPerIteration({}, config), 1 + 1 + 5);
}

TEST(NmcMachineTest, DependentMissesTakeTheIdleLatency) {
  MachineConfig config = evenConfig(1);
  // Same vault, another row than the bank has open, each time: PRE, ACT, RD and 6.4 ns of data, on the next core cycle:
  // 58 ns.
  uint64_t stride = 256 * 32 * 8 * 8;
  // The request leaves after the L1's 4 cycles; addi, blt and the bubbles follow the line's arrival.
  EXPECT_EQ(cyclesPerIteration({ld(a6, 0, a6)}, config, pointerChain(stride, 512)), 4 + 58 + 4);
  // Same row: four lines of a 256 B block, then the next block is in another vault; all rows were closed before.
  config.dram.vaults = 1;
  config.l1d.sizeBytes = 512; // one set, so that the 16 lines of the chain always miss
  EXPECT_EQ(cyclesPerIteration({ld(a6, 0, a6)}, config, pointerChain(64, 16)), 4 + 24 + 4)
      << "row hits: RD 17 and 6.4 of data";
}

TEST(NmcMachineTest, HopsAddBothWays) {
  MachineConfig config = evenConfig(1);
  config.network.hopNs = 3.0;
  uint64_t stride = 256 * 32 * 8 * 8;
  EXPECT_EQ(cyclesPerIteration({ld(a6, 0, a6)}, config, pointerChain(stride, 512)), 4 + 58 + 4)
      << "vault 0 is the core's own";
  std::vector<uint64_t> chain = pointerChain(stride, 512);
  chain.insert(chain.begin(), 8 * 32, 0); // 2,048 B on: vault 8, at column 2 and row 1 of the 6-wide mesh
  for (uint64_t &pointer : chain)
    if (pointer != 0)
      pointer += 2048;
  EXPECT_EQ(
      cyclesPerIteration({addi(t0, a6, 2047), ld(t1, 1, t0), sub(a6, t1, zero), addi(a6, a6, -2048)}, config, chain),
      1 + 4 + 58 + 2 * 3 * 3 + 1 + 1 + 4);
}

TEST(NmcMachineTest, ManyCoresShareTheVaultsBandwidth) {
  for (int64_t vaults : {1, 4}) {
    MachineConfig config = evenConfig(64);
    config.dram.vaults = vaults;
    config.dram.vaultBandwidthGBs = 1; // the data bus is the limit, not the banks
    NmcMachine machine(config, 2);
    Buffers buffers{std::vector<uint64_t>(64 * 1632 * 8), {}};
    // One load per line; 544 or 1632 lines a core, an odd number of rows of 2 KiB, so that cores spread over banks.
    std::vector<uint32_t> code = {ld(a6, 0, a0),    slli(t0, a1, 6), add(a6, a6, t0),  ld(t1, 0, a6),
                                  addi(a6, a6, 64), addi(a1, a1, 1), blt(a1, a2, -12), ret()};
    NmcLaunchStats few = launch(machine, code, 64 * 544, buffers), stats = launch(machine, code, 64 * 1632, buffers);
    double gigabytesPerSecond = static_cast<double>(stats.dramBytes) / stats.timeNs, peak = static_cast<double>(vaults);
    EXPECT_LE(gigabytesPerSecond, peak * 1.0001) << vaults;
    // Without the start and the end, when the cores do not all run.
    EXPECT_GE(static_cast<double>(stats.dramBytes - few.dramBytes) / (stats.timeNs - few.timeNs), peak * 0.95)
        << vaults;
    EXPECT_NEAR(stats.vaultBusyShare, gigabytesPerSecond / peak, 0.01);
  }
}

TEST(NmcMachineTest, ResultsDoNotDependOnThreadsOrHistory) {
  MachineConfig config; // refresh on, clocks that do not divide each other
  config.core.count = 16;
  config.core.clockGHz = 1.3;
  config.network.hopNs = 2.4;
  auto run = [&](int threads, bool warm) {
    NmcMachine machine(config, threads);
    Buffers buffers{std::vector<uint64_t>(100'000), std::vector<uint64_t>(100'000)};
    for (size_t i = 0; i < buffers.input.size(); ++i)
      buffers.input[i] = i * 2654435761u;
    if (warm)
      launch(machine, loopKernel({addi(t0, t0, 1)}), 50, buffers);
    NmcLaunchStats stats = launch(machine, copyKernel(), 100'000, buffers);
    return std::pair(fields(stats), buffers.output);
  };
  auto reference = run(1, false);
  for (int threads : {1, 2, 3, 16})
    EXPECT_EQ(run(threads, threads != 1), reference) << threads;
}

TEST(NmcMachineTest, StatusOfTheLowestCoreThatSetsOne) {
  NmcMachine machine(evenConfig(8), 1);
  Buffers buffers{std::vector<uint64_t>(8), {}};
  // Cores 5 and up (begin >= 5) set code 1 and value begin.
  std::vector<uint32_t> code = {addi(t0, zero, 5), blt(a1, t0, 16), addi(t1, zero, 1),
                                sd(t1, 0, a3),     sd(a1, 8, a3),   ret()};
  NmcLaunchStats stats = launch(machine, code, 8, buffers);
  EXPECT_EQ(stats.status.code, 1);
  EXPECT_EQ(stats.status.value, 5);
  EXPECT_EQ(launch(machine, {ret()}, 8, buffers).status.code, 0) << "cleared for the next launch";
}

TEST(NmcMachineTest, StacksAreZeroedAndSeparate) {
  NmcMachine machine(evenConfig(4), 2);
  Buffers buffers{std::vector<uint64_t>(8), std::vector<uint64_t>(4)};
  // output[core] = old stack word + 10 + begin
  std::vector<uint32_t> code = {ld(a5, 8, a0),   slli(t0, a1, 3), add(a5, a5, t0), ld(t1, -8, sp), addi(t1, t1, 10),
                                add(t1, t1, a1), sd(t1, -8, sp),  sd(t1, 0, a5),   ret()};
  for (int repeat = 0; repeat < 2; ++repeat) {
    launch(machine, code, 4, buffers);
    EXPECT_THAT(buffers.output, ::testing::ElementsAre(10, 11, 12, 13));
  }
}

TEST(NmcMachineTest, CallsReturn) {
  NmcMachine machine(evenConfig(1), 1);
  Buffers buffers{std::vector<uint64_t>(8), std::vector<uint64_t>(1)};
  std::vector<uint32_t> code = {ld(a5, 8, a0),   addi(t2, ra, 0), jal(ra, 20),      jal(ra, 16), sd(t0, 0, a5),
                                addi(ra, t2, 0), ret(),           addi(t0, t0, 21), ret()};
  launch(machine, code, 1, buffers);
  EXPECT_EQ(buffers.output[0], 42u);
}

TEST(NmcMachineTest, LongStraightCodeSpansBlocks) {
  NmcMachine machine(evenConfig(1), 1);
  Buffers buffers{std::vector<uint64_t>(8), std::vector<uint64_t>(1)};
  std::vector<uint32_t> code = {ld(a5, 8, a0)};
  for (int i = 0; i < 1000; ++i)
    code.push_back(addi(t0, t0, 1));
  code.push_back(sd(t0, 0, a5));
  code.push_back(ret());
  NmcLaunchStats stats = launch(machine, code, 1, buffers);
  EXPECT_EQ(buffers.output[0], 1000u);
  EXPECT_EQ(stats.instructions, 1003u);
  EXPECT_EQ(stats.l1iMisses, (1003u * 4 + 63) / 64);
}

TEST(NmcMachineTest, TextBeyondTheInstructionCacheMissesAgain) {
  MachineConfig config = evenConfig(1);
  config.l1i.sizeBytes = 1024, config.l1i.ways = 2;
  NmcMachine machine(config, 1);
  Buffers buffers{std::vector<uint64_t>(8), {}};
  // The loop takes 512 + 3 instructions, 33 lines; the cache has 8 sets of 2: all thrash but those of one visit.
  std::vector<uint32_t> body(512, addi(t0, t0, 1));
  uint64_t two = launch(machine, loopKernel(body), 2, buffers).l1iMisses,
           ten = launch(machine, loopKernel(body), 10, buffers).l1iMisses;
  EXPECT_GE(ten - two, 8u * 32);
}

} // namespace
} // namespace nearbank::sim
