// SPDX-License-Identifier: Apache-2.0
#include "sim/system/SimulatedDevice.h"

#include "runtime/Error.h"

#include <gmock/gmock.h>

#include <cstring>

namespace nearbank::sim {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Key;

/// Registers of the calling convention: operand table, begin, end, status; temporaries.
constexpr uint32_t a0 = 10, a1 = 11, a2 = 12, t0 = 5, t1 = 6, t2 = 7, t3 = 28;

uint32_t ld(uint32_t rd, uint32_t base, uint32_t offset) {
  return offset << 20 | base << 15 | 3 << 12 | rd << 7 | 0x03;
}
uint32_t sd(uint32_t source, uint32_t base, uint32_t offset) {
  return offset >> 5 << 25 | source << 20 | base << 15 | 3 << 12 | (offset & 31) << 7 | 0x23;
}
uint32_t addi(uint32_t rd, uint32_t rs, uint32_t value) { return value << 20 | rs << 15 | rd << 7 | 0x13; }
uint32_t slli(uint32_t rd, uint32_t rs, uint32_t bits) { return bits << 20 | rs << 15 | 1 << 12 | rd << 7 | 0x13; }
uint32_t add(uint32_t rd, uint32_t rs1, uint32_t rs2) { return rs2 << 20 | rs1 << 15 | rd << 7 | 0x33; }
/// bge rs1, rs2, +bytes, for 0 <= bytes < 2048.
uint32_t bge(uint32_t rs1, uint32_t rs2, uint32_t bytes) {
  return (bytes >> 5 & 63) << 25 | rs2 << 20 | rs1 << 15 | 5 << 12 | (bytes >> 1 & 15) << 8 | (bytes >> 11 & 1) << 7 |
         0x63;
}
/// j -bytes, for 0 < bytes < 2048.
uint32_t jumpBack(uint32_t bytes) {
  uint32_t offset = -bytes;
  return (offset >> 20 & 1) << 31 | (offset >> 1 & 1023) << 21 | (offset >> 11 & 1) << 20 | (offset >> 12 & 255) << 12 |
         0x6f;
}
constexpr uint32_t ret = 0x00008067;

/// out[task] = in[task] + 1, 64-bit integers.
std::vector<uint32_t> incrementCode() {
  return {bge(a1, a2, 44), slli(t2, a1, 3), ld(t0, a0, 0), add(t0, t0, t2), ld(t3, t0, 0), addi(t3, t3, 1),
          ld(t1, a0, 8),   add(t1, t1, t2), sd(t3, t1, 0), addi(a1, a1, 1), jumpBack(40),  ret};
}

/// Static RV64 executable of one segment at 0x10000.
std::vector<std::byte> elfOf(const std::vector<uint32_t> &code) {
  constexpr uint64_t base = 0x10000, headerBytes = 64 + 56;
  std::vector<std::byte> file(headerBytes + code.size() * 4);
  auto put = [&](size_t offset, auto value) { std::memcpy(file.data() + offset, &value, sizeof(value)); };
  put(0, 0x464c457fu);
  put(4, uint8_t{2}), put(5, uint8_t{1}), put(6, uint8_t{1});
  put(16, uint16_t{2}), put(18, uint16_t{243}), put(20, 1u);
  put(24, base + headerBytes), put(32, uint64_t{64});
  put(52, uint16_t{64}), put(54, uint16_t{56}), put(56, uint16_t{1});
  put(64, 1u), put(68, 5u); // PT_LOAD, read and execute.
  put(64 + 8, uint64_t{0}), put(64 + 16, base), put(64 + 24, base);
  put(64 + 32, uint64_t{file.size()}), put(64 + 40, uint64_t{file.size()}), put(64 + 48, uint64_t{4096});
  std::memcpy(file.data() + headerBytes, code.data(), code.size() * 4);
  return file;
}

class SimulatedDeviceTest : public ::testing::Test {
protected:
  SimulatedDeviceTest() {
    for (int64_t i = 0; i < tasks; ++i)
      in[i] = i * 3;
  }
  PimTiming run(NmcDevice &device) {
    uint64_t bytes = tasks * sizeof(int64_t);
    std::vector<PimDevice::BoundBuffer> buffers{{in.data(), bytes, uint64_t{1} << 32, false},
                                                {nullptr, 64, (uint64_t{1} << 32) + 0x10000, false},
                                                {out.data(), bytes, (uint64_t{1} << 32) + 0x20000, isOutputWritable}};
    std::vector<NestOperand> operands{{0, 0, 0, bytes, bytes, true, false}, {2, 0, 0, bytes, bytes, false, true}};
    return device.execute(kernel, buffers, operands, status);
  }
  static constexpr int64_t tasks = 1000;
  MachineConfig config;
  PimKernel kernel{elfOf(incrementCode()), nullptr, tasks};
  std::vector<int64_t> in = std::vector<int64_t>(tasks), out = std::vector<int64_t>(tasks, -1);
  bool isOutputWritable = true;
  KernelStatus status;
};

TEST_F(SimulatedDeviceTest, KernelComputesOnTheHostsBuffers) {
  NmcDevice device(config);
  run(device);
  for (int64_t i = 0; i < tasks; ++i)
    ASSERT_EQ(out[i], i * 3 + 1);
  EXPECT_EQ(status.code, 0);
}

TEST_F(SimulatedDeviceTest, TimingCarriesTheMachinesStatistics) {
  NmcDevice device(config);
  PimTiming timing = run(device);
  EXPECT_GE(timing.instructions, static_cast<uint64_t>(tasks) * 11);
  EXPECT_GT(timing.timeNs, 0);
  EXPECT_EQ(timing.coresUsed, config.core.count);
  EXPECT_GT(timing.dramBytes, 0u);
  EXPECT_THAT(timing.counters, Contains(std::pair<std::string, double>("storeInstructions", tasks)));
  EXPECT_THAT(timing.counters, Contains(Key("rowHits")));
}

TEST_F(SimulatedDeviceTest, SimulatingThreadsDoNotChangeTheTiming) {
  NmcDevice one(config, 1), three(config, 3);
  PimTiming first = run(one), second = run(three);
  EXPECT_EQ(first.coreCycles, second.coreCycles);
  EXPECT_EQ(first.counters, second.counters);
}

TEST_F(SimulatedDeviceTest, BuffersThatTheNestOnlyReadsAreWriteProtected) {
  isOutputWritable = false;
  NmcDevice device(config);
  EXPECT_THROW(run(device), DeviceError);
  EXPECT_THAT(out, Each(-1));
}

} // namespace
} // namespace nearbank::sim
