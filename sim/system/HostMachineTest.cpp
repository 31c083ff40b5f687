// SPDX-License-Identifier: Apache-2.0
// The modelled host: results, and cores against sequences counted by hand (HM-1 to HM-9 of docs/model.md).
#include "sim/system/HostMachine.h"

#include "runtime/Error.h"
#include "sim/isa/TestEncoder.h"
#include "sim/system/SampledLaunch.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <tuple>

namespace nearbank::sim {
namespace {

using namespace encode;

constexpr uint64_t inputBase = 0x10000000, outputBase = 0x20000000;

/// A host that is easy to count by: 1 GHz, and DRAM at 1 ns whose latency hardly depends on rows.
MachineConfig evenHost(int64_t cores = 1) {
  MachineConfig config;
  config.kind = "host";
  config.core.count = cores;
  config.core.clockGHz = 1;
  config.core.intDivCycles = 20;
  config.l1d = config.l1i = {32768, 8, 64, 4};
  config.l2 = CacheConfig{262144, 8, 64, 12};
  config.l3 = {1 << 20, 16, 64, 40};
  config.l3SharedBy = cores;
  config.dram.vaults = 1;
  config.dram.banksPerVault = 16;
  config.dram.tCkNs = 1;
  config.dram.nRCD = config.dram.nRP = 1, config.dram.nRAS = 2, config.dram.nCL = 55, config.dram.nCWL = 55;
  config.dram.nCCD = config.dram.nCCDL = 4, config.dram.nRRD = config.dram.nRRDL = 1, config.dram.nFAW = 4;
  config.dram.nWR = config.dram.nRTP = 1;
  config.dram.nREFI = 0;
  config.dram.rowBytes = 8192;
  config.dram.vaultBandwidthGBs = 16; // 4 ns a line
  config.dram.writeQueueLines = 32;
  return config;
}

/// HM-8: an access to a closed row.
constexpr double dramCycles = 40 + 1 + 55 + 4;

struct Buffers {
  std::vector<uint64_t> input, output;
};

NmcLaunchStats launch(SimulatedMachine &machine, const std::vector<uint32_t> &code, int64_t tasks, Buffers &buffers) {
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
                    s.l1dMisses, s.l1iMisses, s.l2Accesses, s.l2Misses, s.l3Accesses, s.l3Misses, s.writebacks,
                    s.dramReads, s.dramWrites, s.dramBytes, s.rowHits, s.rowMisses, s.rowConflicts, s.mispredictions,
                    s.memoryStallCycles, s.vaultBusyShare);
}

/// A loop over [a1, a2) with `body` inside; a6 holds inputBase, a7 outputBase.
std::vector<uint32_t> loopKernel(const std::vector<uint32_t> &body) {
  std::vector<uint32_t> code = {ld(a6, 0, a0), ld(a7, 8, a0)};
  code.insert(code.end(), body.begin(), body.end());
  code.push_back(addi(a1, a1, 1));
  code.push_back(blt(a1, a2, -4 * static_cast<int32_t>(body.size() + 1)));
  code.push_back(ret());
  return code;
}

struct Loop {
  double cycles;         ///< Of one iteration.
  double mispredictions; ///< Of one iteration.
};

/// From two launches of different length on one core.
Loop timeLoop(const std::vector<uint32_t> &body, const MachineConfig &config, int64_t shorter = 200,
              int64_t longer = 1200, std::vector<uint64_t> input = std::vector<uint64_t>(8)) {
  HostMachine machine(config);
  Buffers buffers{std::move(input), std::vector<uint64_t>(8)};
  NmcLaunchStats a = launch(machine, loopKernel(body), shorter, buffers);
  NmcLaunchStats b = launch(machine, loopKernel(body), longer, buffers);
  auto iterations = static_cast<double>(longer - shorter);
  return {static_cast<double>(b.coreCycles - a.coreCycles) / iterations,
          static_cast<double>(b.mispredictions - a.mispredictions) / iterations};
}

std::vector<uint32_t> repeated(uint32_t instruction, int count) {
  return std::vector<uint32_t>(static_cast<size_t>(count), instruction);
}

TEST(HostMachineTest, EveryTaskRunsOnceOnAnyNumberOfCores) {
  for (int64_t cores : {1, 3, 16})
    for (int64_t tasks : {1, 2, 15, 16, 17, 1000}) {
      HostMachine machine(evenHost(cores));
      Buffers buffers{std::vector<uint64_t>(1000), std::vector<uint64_t>(1000, 7)};
      for (size_t i = 0; i < 1000; ++i)
        buffers.input[i] = i * i;
      NmcLaunchStats stats = launch(machine, copyKernel(), tasks, buffers);
      for (size_t i = 0; i < 1000; ++i)
        ASSERT_EQ(buffers.output[i], static_cast<int64_t>(i) < tasks ? i * i + 1 : 7) << i;
      EXPECT_EQ(stats.coresUsed, std::min(cores, tasks));
      EXPECT_EQ(stats.instructions, static_cast<uint64_t>(6 * stats.coresUsed + 7 * tasks));
    }
}

TEST(HostMachineTest, LaunchesRepeatExactly) {
  Buffers buffers{std::vector<uint64_t>(40000), std::vector<uint64_t>(40000)};
  HostMachine machine(evenHost(8)), other(evenHost(8));
  auto first = fields(launch(machine, copyKernel(), 40000, buffers));
  EXPECT_EQ(fields(launch(machine, copyKernel(), 40000, buffers)), first);
  launch(machine, loopKernel({addi(t0, t0, 1)}), 1000, buffers);
  EXPECT_EQ(fields(launch(machine, copyKernel(), 40000, buffers)), first);
  EXPECT_EQ(fields(launch(other, copyKernel(), 40000, buffers)), first);
}

// Hand-counted sequences. The loop adds one addition and one branch to each body.

TEST(HostMachineTest, DependentAdditionsTakeTheirLatencyEach) {
  EXPECT_DOUBLE_EQ(timeLoop(repeated(addi(t0, t0, 1), 8), evenHost()).cycles, 8);
  MachineConfig config = evenHost();
  config.core.intAluCycles = 2;
  EXPECT_DOUBLE_EQ(timeLoop(repeated(addi(t0, t0, 1), 8), config).cycles, 16);
}

TEST(HostMachineTest, IndependentAdditionsFillThePortsThenTheDispatchWidthHm1) {
  std::vector<uint32_t> body = repeated(addi(t0, zero, 1), 10); // 11 additions and a branch
  MachineConfig config = evenHost();
  config.outOfOrder.intPorts = 3;
  EXPECT_NEAR(timeLoop(body, config).cycles, 11 / 3.0, 0.01);
  config.outOfOrder.intPorts = 8;
  EXPECT_NEAR(timeLoop(body, config).cycles, 12 / 4.0, 0.01);
  config.outOfOrder.dispatchWidth = config.outOfOrder.retireWidth = 6;
  EXPECT_NEAR(timeLoop(body, config).cycles, 12 / 6.0, 0.01);
  config.outOfOrder.retireWidth = 3;
  EXPECT_NEAR(timeLoop(body, config).cycles, 12 / 3.0, 0.01);
}

TEST(HostMachineTest, DependentLoadsTakeTheHitLatency) {
  std::vector<uint64_t> input(8, inputBase); // every word points to the first
  EXPECT_DOUBLE_EQ(timeLoop(repeated(ld(a6, 0, a6), 4), evenHost(), 200, 1200, input).cycles, 16);
}

TEST(HostMachineTest, IndependentLoadsFillTheLoadPorts) {
  MachineConfig config = evenHost();
  config.outOfOrder.dispatchWidth = config.outOfOrder.retireWidth = 8;
  config.outOfOrder.memoryPorts = 3;
  EXPECT_NEAR(timeLoop(repeated(ld(t0, 0, a6), 6), config).cycles, 3, 0.01);
  config.outOfOrder.loadPorts = 3;
  EXPECT_NEAR(timeLoop(repeated(ld(t0, 0, a6), 6), config).cycles, 2, 0.01);
}

TEST(HostMachineTest, MixedSequenceIsBoundByItsSlowestPart) {
  // Four multiplications on one port, two additions in a chain through them, three loads: 4 cycles.
  std::vector<uint32_t> body = {mul(t0, a6, a6), ld(t1, 0, a6),  mul(t0, a6, a6), ld(t1, 8, a6),
                                mul(t0, a6, a6), ld(t1, 16, a6), mul(t0, a6, a6)};
  EXPECT_NEAR(timeLoop(body, evenHost()).cycles, 4, 0.01);
  // Load, multiply, add in a chain that the next iteration continues: 4 + 3 + 1.
  std::vector<uint32_t> chain = {ld(t0, 0, a6), mul(t0, t0, zero), add(a6, a6, t0)};
  EXPECT_NEAR(timeLoop(chain, evenHost()).cycles, 8, 0.01);
}

TEST(HostMachineTest, FloatingPointUnitsHm2) {
  MachineConfig config = evenHost();
  config.core.fpFmaCycles = 4, config.core.fpAddCycles = 3, config.core.fpDivCycles = 11;
  config.outOfOrder.fpPorts = 4, config.outOfOrder.fpAddPorts = config.outOfOrder.fpMulPorts = 2;
  config.outOfOrder.fpDivIntervalCycles = 3;
  config.outOfOrder.dispatchWidth = config.outOfOrder.retireWidth = 8;
  EXPECT_NEAR(timeLoop(repeated(fma(0, 0, f0, f1, f2, f0), 2), config).cycles, 8, 0.01); // accumulates
  EXPECT_NEAR(timeLoop(repeated(fma(0, 0, f0, f1, f2, f3), 6), config).cycles, 3, 0.01); // two a cycle
  std::vector<uint32_t> both = repeated(fma(0, 0, f0, f1, f2, f3), 4);
  for (int i = 0; i < 4; ++i)
    both.push_back(faddS(f4, f1, f2));
  EXPECT_NEAR(timeLoop(both, config).cycles, 2, 0.01); // four a cycle
  EXPECT_NEAR(timeLoop(repeated(fdivS(f0, f1, f2), 2), config).cycles, 6, 0.01);
  EXPECT_NEAR(timeLoop(repeated(fdivS(f0, f0, f2), 1), config).cycles, 11, 0.01);
  EXPECT_NEAR(timeLoop(repeated(div(t0, a6, a6), 1), config).cycles, 20, 0.01); // not pipelined
}

TEST(HostMachineTest, StoresForwardToLoadsHm4) {
  // Addition, store, load in a chain: 1 + 1 + forwardCycles.
  std::vector<uint32_t> body = {addi(t0, t0, 1), sd(t0, 0, a7), ld(t0, 0, a7)};
  MachineConfig config = evenHost();
  config.outOfOrder.forwardCycles = 5;
  EXPECT_NEAR(timeLoop(body, config).cycles, 7, 0.01);
  config.outOfOrder.forwardCycles = 9;
  EXPECT_NEAR(timeLoop(body, config).cycles, 11, 0.01);
}

TEST(HostMachineTest, OneTakenBranchACycle) {
  MachineConfig config = evenHost();
  config.outOfOrder.dispatchWidth = config.outOfOrder.retireWidth = 8;
  config.outOfOrder.branchPorts = 2;
  EXPECT_NEAR(timeLoop({}, config).cycles, 1, 0.01);
}

TEST(HostMachineTest, MispredictionsCostTheirPenaltyEachHm3) {
  // xorshift64 in t0, a branch on its lowest bit.
  std::vector<uint32_t> body = {
      slli(t1, t0, 13), rType(0x33, 4, 0, t0, t0, t1), iType(0x13, 5, t1, t0, 7), rType(0x33, 4, 0, t0, t0, t1),
      slli(t1, t0, 17), rType(0x33, 4, 0, t0, t0, t1), iType(0x13, 7, t1, t0, 1), bne(t1, zero, 8),
      addi(t2, t2, 1)};
  std::vector<uint32_t> kernel = {addi(t0, zero, 1234)};
  MachineConfig config = evenHost();
  auto run = [&](int64_t penalty) {
    config.outOfOrder.mispredictCycles = penalty;
    HostMachine machine(config);
    Buffers buffers{std::vector<uint64_t>(8), std::vector<uint64_t>(8)};
    std::vector<uint32_t> code = loopKernel(body);
    code.insert(code.begin(), kernel.begin(), kernel.end());
    return launch(machine, code, 4000, buffers);
  };
  NmcLaunchStats small = run(10), large = run(30);
  EXPECT_EQ(small.mispredictions, large.mispredictions);
  // The bits are random: no predictor does better than half.
  EXPECT_NEAR(static_cast<double>(small.mispredictions), 2000, 150);
  EXPECT_EQ(large.coreCycles - small.coreCycles, 20 * small.mispredictions);
}

TEST(HostMachineTest, LoopsWithConstantTripCountsArePredicted) {
  // An inner loop of 10 iterations per task.
  std::vector<uint32_t> body = {addi(t0, zero, 10), addi(t0, t0, -1), bne(t0, zero, -4)};
  EXPECT_LT(timeLoop(body, evenHost(), 1000, 3000).mispredictions, 0.02);
}

// Vectors, by encoding (RVV 1.0): registers of 256 bits.

/// vsetivli zero, elements, e32, m(1 << lmulLog2), ta, ma
constexpr uint32_t vset(uint32_t elements, uint32_t lmulLog2) {
  return 3u << 30 | (0xd0 | lmulLog2) << 20 | elements << 15 | 7 << 12 | 0x57;
}
constexpr uint32_t vv(uint32_t funct6, uint32_t vd, uint32_t vs2, uint32_t vs1) {
  return funct6 << 26 | 1 << 25 | vs2 << 20 | vs1 << 15 | 1 << 12 | vd << 7 | 0x57;
}
constexpr uint32_t vfadd(uint32_t vd, uint32_t vs2, uint32_t vs1) { return vv(0x00, vd, vs2, vs1); }
constexpr uint32_t vfmacc(uint32_t vd, uint32_t vs2, uint32_t vs1) { return vv(0x2c, vd, vs2, vs1); }
constexpr uint32_t vle32(uint32_t vd, uint32_t rs1) { return 1 << 25 | rs1 << 15 | 6 << 12 | vd << 7 | 0x07; }
constexpr uint32_t vluxei32(uint32_t vd, uint32_t rs1, uint32_t vs2) {
  return 1 << 26 | 1 << 25 | vs2 << 20 | rs1 << 15 | 6 << 12 | vd << 7 | 0x07;
}

MachineConfig vectorHost() {
  MachineConfig config = evenHost();
  config.core.vectorBits = config.core.vectorLanesBits = 256;
  config.core.vectorFpFmaCycles = 4, config.core.vectorFpAddCycles = 3, config.core.vectorFpDivCycles = 11;
  config.core.vectorPermuteCycles = 2, config.core.vectorElementsPerCycle = 1;
  config.outOfOrder.dispatchWidth = config.outOfOrder.retireWidth = 12;
  config.outOfOrder.robEntries = 512;
  config.outOfOrder.fpPorts = 4, config.outOfOrder.fpAddPorts = config.outOfOrder.fpMulPorts = 2;
  config.outOfOrder.memoryPorts = 3, config.outOfOrder.vectorLoadPorts = 2;
  config.outOfOrder.fpDivIntervalCycles = 3;
  return config;
}

double vectorCycles(uint32_t elements, uint32_t lmulLog2, std::vector<uint32_t> body,
                    const MachineConfig &config = vectorHost()) {
  body.insert(body.begin(), vset(elements, lmulLog2));
  return timeLoop(body, config).cycles;
}

TEST(HostMachineTest, VectorOperationsFillThePortsHm10) {
  std::vector<uint32_t> independent = {vfmacc(8, 0, 4),  vfmacc(12, 0, 4), vfmacc(16, 0, 4), vfmacc(20, 0, 4),
                                       vfmacc(24, 0, 4), vfmacc(28, 0, 4), vfmacc(8, 0, 4),  vfmacc(12, 0, 4)};
  // Eight on two ports: 4 cycles at one register each, as the chains through registers 8 and 12 allow (2 x 4) no less.
  EXPECT_NEAR(vectorCycles(8, 0, independent), 8, 0.01);
  // Two registers each: 16 operations on two ports.
  EXPECT_NEAR(vectorCycles(16, 1, independent), 8, 0.01);
  EXPECT_NEAR(vectorCycles(31, 2, independent), 16, 0.01);
  // Half as wide a datapath: twice as many.
  MachineConfig narrow = vectorHost();
  narrow.core.vectorLanesBits = 128;
  EXPECT_NEAR(vectorCycles(16, 1, independent, narrow), 16, 0.01);
  // Only the elements that vl covers count.
  EXPECT_NEAR(vectorCycles(8, 2, independent), 8, 0.01);
}

TEST(HostMachineTest, VectorChainsTakeTheirLatencyPerRegisterHm10) {
  EXPECT_NEAR(vectorCycles(8, 0, {vfmacc(8, 0, 4)}), 4, 0.01);
  // The two registers of a group are chains of their own.
  EXPECT_NEAR(vectorCycles(16, 1, {vfmacc(8, 0, 4)}), 4, 0.01);
  EXPECT_NEAR(vectorCycles(8, 0, {vfadd(8, 8, 0), vfadd(8, 8, 0)}), 6, 0.01);
}

TEST(HostMachineTest, VectorReductionsAndDivisionsHm10) {
  // vfredusum of 8 elements, accumulating: three folds of 2 + 3 cycles.
  EXPECT_NEAR(vectorCycles(8, 0, {vv(0x01, 8, 0, 8)}), 15, 0.01);
  EXPECT_NEAR(vectorCycles(8, 0, {vv(0x20, 8, 0, 4), vv(0x20, 12, 0, 4)}), 6, 0.01);
  EXPECT_NEAR(vectorCycles(16, 1, {vv(0x20, 8, 0, 4), vv(0x20, 12, 0, 4)}), 12, 0.01);
}

TEST(HostMachineTest, VectorLoadsFillTheirPortsHm10) {
  std::vector<uint32_t> loads = {vle32(8, a6), vle32(12, a6), vle32(16, a6), vle32(20, a6)};
  EXPECT_NEAR(vectorCycles(8, 0, loads), 2, 0.01);
  EXPECT_NEAR(vectorCycles(16, 1, loads), 4, 0.01);
  // Eight elements gathered from the same place: one a cycle.
  EXPECT_NEAR(vectorCycles(8, 0, {vluxei32(8, a6, 0), vluxei32(12, a6, 0)}), 16, 0.01);
}

// Misses. a6 walks over the input, one line per iteration.

std::vector<uint32_t> missLoop(int fillers) {
  std::vector<uint32_t> body = {ld(t0, 0, a6), addi(a6, a6, 64)};
  for (int i = 0; i < fillers; ++i)
    body.push_back(addi(t1, zero, 1));
  return body;
}

TEST(HostMachineTest, DependentMissesTakeTheMemoryLatencyHm8) {
  // Each line holds the address of the next.
  std::vector<uint64_t> input(8 * 2000);
  for (size_t i = 0; i < 2000; ++i)
    input[8 * i] = inputBase + 64 * (i + 1);
  double cycles = timeLoop({ld(a6, 0, a6)}, evenHost(), 200, 1200, input).cycles;
  // Most accesses find the row open, and save nRCD.
  EXPECT_NEAR(cycles, dramCycles - 1, 1);
}

TEST(HostMachineTest, WindowBoundsTheMissesInFlightHm1) {
  std::vector<uint64_t> input(8 * 2000);
  for (int64_t inFlight : {1, 2, 4, 8}) {
    MachineConfig config = evenHost();
    config.outOfOrder.robEntries = 8 * inFlight; // 8 instructions an iteration
    config.outOfOrder.outstandingMisses = 64;
    double cycles = timeLoop(missLoop(4), config, 200, 1200, input).cycles;
    // A window of n iterations waits for its oldest miss, then goes on: the latency is paid once for n of them. The
    // rest is the few cycles from the retirement of a miss to the start of the one that takes its place.
    EXPECT_GE(cycles, (dramCycles - 1) / static_cast<double>(inFlight) - 0.5);
    EXPECT_LE(cycles, (dramCycles + 6) / static_cast<double>(inFlight) + 0.5);
  }
}

TEST(HostMachineTest, MissBuffersBoundTheMissesInFlightHm6) {
  std::vector<uint64_t> input(8 * 2000);
  for (int64_t buffers : {1, 2, 4, 10}) {
    MachineConfig config = evenHost();
    config.outOfOrder.robEntries = 512;
    config.outOfOrder.loadQueueEntries = 128;
    config.outOfOrder.outstandingMisses = buffers;
    double cycles = timeLoop(missLoop(0), config, 200, 1200, input).cycles;
    EXPECT_NEAR(cycles, (dramCycles - 1) / static_cast<double>(buffers), 0.5) << buffers;
  }
}

TEST(HostMachineTest, LoadQueueBoundsTheMissesInFlight) {
  std::vector<uint64_t> input(8 * 2000);
  MachineConfig config = evenHost();
  config.outOfOrder.robEntries = 512;
  config.outOfOrder.outstandingMisses = 64;
  config.outOfOrder.loadQueueEntries = 5;
  EXPECT_NEAR(timeLoop(missLoop(0), config, 200, 1200, input).cycles, dramCycles / 5, 1);
}

TEST(HostMachineTest, StreamsRunAtTheChannelsRateAndCountTheirLines) {
  std::vector<uint64_t> input(8 * 4000);
  MachineConfig config = evenHost();
  config.outOfOrder.robEntries = 1024;
  config.outOfOrder.outstandingMisses = config.outOfOrder.loadQueueEntries = 64;
  // 64 misses in flight against 25 lines that the channel serves in one latency: 4 cycles a line.
  EXPECT_NEAR(timeLoop(missLoop(0), config, 1000, 3000, input).cycles, 4, 0.05);
  HostMachine machine(config);
  Buffers buffers{input, {}};
  NmcLaunchStats stats = launch(machine, loopKernel({ld(t0, 0, a6), addi(a6, a6, 8)}), 8 * 2000, buffers);
  EXPECT_EQ(stats.l1dMisses, 2000u + 1); // and the operand table
  EXPECT_EQ(stats.dramReads, stats.l3Misses);
  EXPECT_EQ(stats.dramReads, 2000u + 1 + stats.l1iMisses);
}

TEST(HostMachineTest, PrefetcherHidesTheLatencyOfStreams) {
  std::vector<uint64_t> input(8 * 4000);
  MachineConfig config = evenHost();
  config.outOfOrder.robEntries = 16; // two iterations of eight: two misses in flight
  double without = timeLoop(missLoop(4), config, 1000, 3000, input).cycles;
  config.prefetch = PrefetchConfig{.streams = 16, .trainAccesses = 2, .degree = 2, .distanceLines = 32};
  double with = timeLoop(missLoop(4), config, 1000, 3000, input).cycles;
  EXPECT_NEAR(without, dramCycles / 2, 5);
  EXPECT_LT(with, without / 3);
  EXPECT_GE(with, 4); // the channel
}

TEST(HostMachineTest, CoresContendForTheChannel) {
  std::vector<uint64_t> input(8 * 16 * 1000), output(8);
  // Every core reads its own 1,000 lines: a1 counts lines.
  std::vector<uint32_t> code = {ld(a6, 0, a0),    slli(t0, a1, 6), add(a6, a6, t0),  ld(t0, 0, a6),
                                addi(a6, a6, 64), addi(a1, a1, 1), blt(a1, a2, -12), ret()};
  Buffers buffers{input, output};
  for (int64_t cores : {2, 4, 16}) {
    MachineConfig config = evenHost(cores);
    HostMachine machine(config);
    NmcLaunchStats stats = launch(machine, code, 1000 * cores, buffers);
    double bytesPerNs = static_cast<double>(stats.dramBytes) / stats.timeNs;
    // Ten misses in flight per core reach 6.4 GB/s; the channel carries 16.
    double expected = std::min(16.0, 6.4 * static_cast<double>(cores));
    EXPECT_NEAR(bytesPerNs, expected, expected * 0.05) << cores;
  }
}

TEST(HostMachineTest, SharedLastLevelServesTheOtherCores) {
  // Both tasks read the same 1,000 lines.
  std::vector<uint32_t> code = {ld(a6, 0, a0),    lui(t1, 1),       addi(t1, zero, 1000), ld(t0, 0, a6),
                                addi(a6, a6, 64), addi(t1, t1, -1), bne(t1, zero, -12),   ret()};
  Buffers buffers{std::vector<uint64_t>(8 * 1000), {}};
  MachineConfig config = evenHost(2);
  HostMachine shared(config);
  NmcLaunchStats together = launch(shared, code, 2, buffers);
  EXPECT_NEAR(static_cast<double>(together.dramReads), 1000, 10);
  EXPECT_NEAR(static_cast<double>(together.l3Accesses), 2000, 20);
  config.l3SharedBy = 1;
  HostMachine apart(config);
  EXPECT_NEAR(static_cast<double>(launch(apart, code, 2, buffers).dramReads), 2000, 20);
}

TEST(HostMachineTest, DirtyLinesAreWrittenBackWhenTheyLeaveTheLastLevel) {
  // 4 MiB written through 1 MiB of last level: what does not stay must leave.
  constexpr size_t words = 1 << 19;
  Buffers buffers{std::vector<uint64_t>(words), std::vector<uint64_t>(words)};
  HostMachine machine(evenHost());
  NmcLaunchStats stats = launch(machine, copyKernel(), words, buffers);
  double lines = words * 8 / 64;
  EXPECT_NEAR(static_cast<double>(stats.dramReads), 2 * lines, 10); // with the lines that are written
  EXPECT_GE(static_cast<double>(stats.dramWrites), lines - (1 << 20) / 64 - 64);
  EXPECT_LE(static_cast<double>(stats.dramWrites), lines);
}

TEST(HostMachineTest, WarmStartFindsOperandsInTheLastLevel) {
  Buffers buffers{std::vector<uint64_t>(20000), std::vector<uint64_t>(20000)};
  HostMachine cold(evenHost()), warm(evenHost(), HostMachine::Start::Warm);
  NmcLaunchStats coldStats = launch(cold, copyKernel(), 20000, buffers);
  NmcLaunchStats warmStats = launch(warm, copyKernel(), 20000, buffers);
  EXPECT_NEAR(static_cast<double>(coldStats.dramReads), 5000, 10);
  EXPECT_LT(warmStats.dramReads, 10u);
  EXPECT_LT(warmStats.timeNs, coldStats.timeNs);
}

TEST(HostMachineTest, ForkAndJoinCountWhereThereAreThreadsHm9) {
  MachineConfig config = evenHost(4);
  Buffers buffers{std::vector<uint64_t>(8), std::vector<uint64_t>(8)};
  auto time = [&](int64_t tasks) {
    HostMachine machine(config);
    return launch(machine, loopKernel({addi(t0, t0, 1)}), tasks, buffers).timeNs;
  };
  double one = time(1), four = time(4);
  config.threads = {.forkNs = 300, .joinNs = 700};
  EXPECT_EQ(time(1), one);
  EXPECT_NEAR(time(4), four + 1000, 8); // the cores' first accesses meet the channel at another time
}

TEST(HostMachineTest, TrapsNameTheCore) {
  HostMachine machine(evenHost(2));
  Buffers buffers{std::vector<uint64_t>(8), std::vector<uint64_t>(8)};
  auto message = [&](const std::vector<uint32_t> &body) {
    try {
      launch(machine, loopKernel(body), 2, buffers);
    } catch (const DeviceError &error) {
      return error.report().text();
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message({ld(t0, 64, a6)}), testing::HasSubstr("NB0501"));
  EXPECT_THAT(message({sd(t0, 0, a6)}), testing::HasSubstr("NB0502"));
  EXPECT_THAT(message({0}), testing::HasSubstr("NB0503"));
  EXPECT_THAT(message({ecall()}), testing::HasSubstr("NB0507"));
  // And the machine goes on.
  EXPECT_EQ(message({addi(t0, t0, 1)}), "accepted");
}

TEST(HostMachineTest, SampledLaunchesAgreeWithWholeOnes) {
  constexpr size_t words = 1 << 20;
  Buffers buffers{std::vector<uint64_t>(words), std::vector<uint64_t>(words)};
  MachineConfig config = evenHost(2);
  HostMachine machine(config);
  std::vector<std::byte> elf = elfOf(copyKernel());
  GuestRegion regions[] = {{inputBase, buffers.input.data(), words * 8, false},
                           {outputBase, buffers.output.data(), words * 8, true}};
  const uint64_t operands[] = {inputBase, outputBase};
  NmcLaunch whole{.elf = elf, .regions = regions, .operandAddresses = operands, .tasks = words};
  double exact = machine.launch(whole).timeNs;
  SampledTiming sampled = launchSampled(machine, whole);
  EXPECT_FALSE(sampled.isExact);
  EXPECT_NEAR(sampled.stats.timeNs, exact, exact * 0.05);
}

TEST(HostMachineTest, MachinesWithoutCoresAreRefused) {
  MachineConfig noCores = evenHost(), noPorts = evenHost(), noSecondLevel = evenHost();
  noCores.core.count = noPorts.outOfOrder.loadPorts = 0;
  noSecondLevel.l2.reset();
  for (const MachineConfig &config : {noCores, noPorts, noSecondLevel})
    EXPECT_THROW(HostMachine machine(config), UserError);
}

} // namespace
} // namespace nearbank::sim
