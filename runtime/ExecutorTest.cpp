// SPDX-License-Identifier: Apache-2.0
#include "runtime/Executor.h"
#include "runtime/Error.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <random>

namespace nearbank {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t length = 1000;

/// out[i] = a[i] + b[i]
void addKernel(void **operands, int64_t begin, int64_t end, KernelStatus *) {
  auto *a = static_cast<float *>(operands[0]), *b = static_cast<float *>(operands[1]),
       *out = static_cast<float *>(operands[2]);
  for (int64_t i = begin; i < end; ++i)
    out[i] = a[i] + b[i];
}

void failKernel(void **, int64_t begin, int64_t, KernelStatus *status) {
  if (begin == 0)
    *status = {1, 30522};
}

/// A device that runs a C++ function whose index is the first byte of the "ELF", and notes what it was given.
class FakePim : public PimDevice {
public:
  PimTiming execute(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                    std::span<const NestOperand> operands, KernelStatus &status) override {
    lastBuffers.assign(buffers.begin(), buffers.end());
    std::vector<void *> pointers;
    for (const NestOperand &operand : operands) {
      EXPECT_NE(buffers[operand.buffer].host, nullptr);
      EXPECT_EQ(buffers[operand.buffer].isWritable, operand.writes);
      EXPECT_EQ(buffers[operand.buffer].guestBase % 4096, 0u);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers[operand.buffer].host) % 16, 0u);
      pointers.push_back(static_cast<std::byte *>(buffers[operand.buffer].host) + operand.byteOffset);
    }
    ++executions;
    if (kernel.elf[0] != std::byte{9})
      (kernel.elf[0] == std::byte{0} ? addKernel : failKernel)(pointers.data(), 0, kernel.tasks, &status);
    PimTiming timing;
    timing.timeNs = 123;
    return timing;
  }
  std::vector<BoundBuffer> lastBuffers;
  int executions = 0;
};

/// t0 = in + w;  t1 = t0 + const;  out = t1 + t0
class ExecutorTest : public ::testing::Test {
protected:
  ExecutorTest() {
    constexpr uint64_t bytes = length * sizeof(float);
    auto add = [&](const char *name, BufferKind kind, std::optional<uint32_t> argument) {
      program.buffers.push_back({name, kind, bytes, ElementType::F32, argument, {}, {}});
    };
    add("arg0", BufferKind::Input, 0);
    add("arg1", BufferKind::Parameter, 1);
    add("const0", BufferKind::Constant, std::nullopt);
    add("tmp0", BufferKind::Temporary, std::nullopt);
    add("tmp1", BufferKind::Temporary, std::nullopt);
    add("out0", BufferKind::Output, std::nullopt);
    std::vector<float> hundred(length, 100.0f);
    program.buffers[2].constantData.resize(bytes);
    std::memcpy(program.buffers[2].constantData.data(), hundred.data(), bytes);
    program.kernels.resize(2);
    addNest(0, 1, 3);
    addNest(3, 2, 4);
    addNest(4, 3, 5);
    program.outputs.push_back({5, ElementType::F32, 0, {length}, {1}});
    in.assign(length, 1);
    weight.assign(length, 10);
    out.assign(length, -1);
    machine.coherence = {1000, 2000, 50, 70, 64, 1 << 20, 10};
  }

  void addNest(uint32_t a, uint32_t b, uint32_t result) {
    constexpr uint64_t bytes = length * sizeof(float);
    NestInstance nest;
    nest.id = fmt::format("n{}", program.nests.size());
    nest.source = fmt::format("model.py:{}", program.nests.size() + 1);
    nest.operands = {{a, 0, 0, bytes, bytes, true, false},
                     {b, 0, 0, bytes, bytes, true, false},
                     {result, 0, 0, bytes, bytes, false, true}};
    program.nests.push_back(nest);
  }

  RunRecord run(std::vector<Site> placement, bool poison = false) {
    void *arguments[] = {in.data(), weight.data()};
    void *outputs[] = {out.data()};
    return executeProgram({program, hostKernels, pimKernels, placement, arguments, outputs, machine, &pim, 2, poison});
  }

  Program program;
  MachineConfig machine;
  std::vector<HostKernel> hostKernels{{addKernel, nullptr, length, 0, false}, {failKernel, nullptr, length, 0, false}};
  std::vector<PimKernel> pimKernels{{{std::byte{0}}, nullptr, length}, {{std::byte{1}}, nullptr, length}};
  FakePim pim;
  std::vector<float> in, weight, out;
};

constexpr Site onHost = Site::Host, onPim = Site::Pim;

TEST_F(ExecutorTest, EveryPlacementGivesTheSameResultAndTheModelledCrossings) {
  for (int mask = 0; mask < 8; ++mask) {
    std::vector<Site> placement;
    for (int nest = 0; nest < 3; ++nest)
      placement.push_back(mask >> nest & 1 ? onPim : onHost);
    out.assign(length, -1);
    RunRecord record = run(placement);
    EXPECT_THAT(out, Each(122.0f)) << "placement " << mask;
    ASSERT_EQ(record.launches.size(), 3u);
    auto modelled = modelCrossings(program, placement, machine);
    ASSERT_EQ(record.crossings.size(), modelled.size());
    for (size_t i = 0; i < modelled.size(); ++i) {
      EXPECT_EQ(record.crossings[i].nest, modelled[i].nest);
      EXPECT_EQ(record.crossings[i].kind, modelled[i].kind);
      EXPECT_EQ(record.crossings[i].buffer, modelled[i].buffer);
      EXPECT_EQ(record.crossings[i].bytes, modelled[i].bytes);
      EXPECT_EQ(record.crossings[i].timeNs, modelled[i].timeNs);
    }
  }
}

TEST_F(ExecutorTest, LaunchRecordsSayWhereAndHowLong) {
  RunRecord record = run({onHost, onPim, onHost});
  EXPECT_GT(record.launches[0].hostNs, 0);
  EXPECT_EQ(record.launches[1].site, onPim);
  EXPECT_EQ(record.launches[1].pim.timeNs, 123);
  EXPECT_EQ(record.launches[1].hostNs, 0);
  EXPECT_GT(record.launches[1].wallNs, 0);
  EXPECT_GE(record.wallNs, record.launches[0].hostNs + record.launches[2].hostNs);
  EXPECT_EQ(pim.executions, 1);
}

TEST_F(ExecutorTest, GuestAddressesFollowBufferOrderNotHostPointers) {
  run({onPim, onPim, onPim});
  std::vector<uint64_t> first;
  for (auto &buffer : pim.lastBuffers)
    first.push_back(buffer.guestBase);
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(first[0], 0x100000000u);
  std::vector<float> otherInput(5000, 1.0f);
  in = otherInput;
  run({onHost, onHost, onPim});
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(pim.lastBuffers[i].guestBase, first[i]);
}

TEST_F(ExecutorTest, TemporariesAreFreedAfterTheirLastUse) {
  addNest(0, 1, 5);
  run({onHost, onHost, onHost, onPim});
  EXPECT_EQ(pim.lastBuffers[3].host, nullptr);
  EXPECT_EQ(pim.lastBuffers[4].host, nullptr);
  EXPECT_THAT(out, Each(11.0f));
}

TEST_F(ExecutorTest, HoistedNestsRunToo) {
  program.nests[0].operands[0].buffer = 2;
  program.nests[0].isHoisted = true;
  run({onPim, onHost, onPim});
  EXPECT_THAT(out, Each(320.0f));
}

TEST_F(ExecutorTest, IndexOutOfRangeIsAUserErrorOnBothSides) {
  program.nests[1].kernel = 1;
  program.nests[1].torchOp = "aten.embedding";
  for (Site site : {onHost, onPim})
    try {
      run({onHost, site, onHost});
      FAIL() << "no error";
    } catch (const UserError &error) {
      EXPECT_STREQ(error.what(), "error[NB0301]: index out of range\n"
                                 "  where:    model.py:2 -> loop nest n1 (aten.embedding)\n"
                                 "  expected: an index inside the indexed dimension\n"
                                 "  actual:   index 30522\n"
                                 "  fix:      check the index tensor that the model was called with\n"
                                 "  more:     nearbank explain NB0301");
    }
}

TEST_F(ExecutorTest, PoisonShowsANestThatDidNotRun) {
  pimKernels[0].elf[0] = std::byte{9}; // Runs nothing.
  out.assign(length, 122.0f);
  run({onHost, onHost, onPim}, true);
  uint32_t bits;
  std::memcpy(&bits, &out[length / 2], sizeof(bits));
  EXPECT_EQ(bits, 0xCBCBCBCBu);
}

TEST_F(ExecutorTest, PoisonSparesWhatANestReadsOrWritesInPart) {
  NestOperand &result = program.nests[2].operands[2];
  result.distinctBytes /= 2;
  pimKernels[0].elf[0] = std::byte{9};
  out.assign(length, 5.0f);
  run({onHost, onHost, onPim}, true);
  EXPECT_THAT(out, Each(5.0f));
}

TEST_F(ExecutorTest, PoisonDoesNotHarmAProgramThatRuns) {
  run({onPim, onPim, onPim}, true);
  EXPECT_THAT(out, Each(122.0f));
}

TEST_F(ExecutorTest, InconsistentProgramsAreInternalErrors) {
  EXPECT_THROW(run({onHost, onHost}), InternalError);
  program.nests[0].operands[2].spanEnd += 1;
  EXPECT_THROW(run({onHost, onHost, onHost}), InternalError);
  program.nests[0].operands[2].spanEnd -= 1;
  program.nests[2].operands[2].buffer = 1; // Writes a parameter.
  EXPECT_THROW(run({onHost, onHost, onHost}), InternalError);
  program.nests[2].operands[2].buffer = 5;
  hostKernels[0].run = nullptr;
  EXPECT_THROW(run({onHost, onHost, onHost}), InternalError);
}

TEST_F(ExecutorTest, ByteOffsetsReachTheKernel) {
  // Nest 2 works on the second half of everything.
  for (NestOperand &operand : program.nests[2].operands) {
    operand.byteOffset = operand.spanBegin = length / 2 * sizeof(float);
    operand.distinctBytes = length / 2 * sizeof(float);
  }
  program.nests[2].kernel = 1;
  hostKernels[1] = {addKernel, nullptr, length / 2, 0, false};
  run({onHost, onHost, onHost});
  EXPECT_THAT(std::vector<float>(out.begin(), out.begin() + length / 2), Each(-1.0f));
  EXPECT_THAT(std::vector<float>(out.begin() + length / 2, out.end()), Each(122.0f));
}

} // namespace
} // namespace nearbank
