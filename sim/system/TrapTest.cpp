// SPDX-License-Identifier: Apache-2.0
// What kernels must not do ends in a DeviceError that names core, pc and instruction; never in a crash.
#include "runtime/Error.h"
#include "sim/isa/TestEncoder.h"
#include "sim/system/NmcMachine.h"

#include <gmock/gmock.h>

namespace nearbank::sim {
namespace {

using namespace encode;
using ::testing::HasSubstr;

constexpr uint64_t readOnlyBase = 0x10000000, writableBase = 0x10001000;

/// Runs `code` on four cores over a 100 B read-only and a 4096 B writable buffer; returns the report of its error.
ErrorReport reportOfElf(const std::vector<std::byte> &elf) {
  MachineConfig config;
  config.core.count = 4;
  NmcMachine machine(config, 2);
  alignas(64) static char readOnly[128], writable[4096];
  const GuestRegion regions[] = {{readOnlyBase, readOnly, 100, false}, {writableBase, writable, 4096, true}};
  const uint64_t operands[] = {readOnlyBase, writableBase};
  try {
    machine.launch({.elf = elf, .regions = regions, .operandAddresses = operands, .tasks = 4});
  } catch (const DeviceError &error) {
    return error.report();
  }
  return {};
}
ErrorReport reportOf(const std::vector<uint32_t> &code) { return reportOfElf(elfOf(code)); }

TEST(TrapTest, AccessOutsideNamesEverything) {
  ErrorReport report = reportOf({ld(a4, 0, a0), addi(t0, zero, 2), blt(a1, t0, 8), lw(a5, 0, zero), ret()});
  EXPECT_EQ(report.code, "NB0501");
  EXPECT_EQ(report.where, "core 2, pc 0x1000c: lw a5, 0(zero) [0x00002783]");
  EXPECT_THAT(report.actual, HasSubstr("4 B at 0x0"));
  EXPECT_THAT(report.expected, HasSubstr("[0x10000, "));
}

TEST(TrapTest, BuffersEndAtTheirByte) {
  auto load = [](uint32_t word) { return reportOf({ld(a4, 0, a0), word, ret()}).code; };
  EXPECT_EQ(load(lw(a5, 96, a4)), "") << "last word of the buffer";
  EXPECT_EQ(load(lw(a5, 97, a4)), "NB0501") << "one byte beyond";
  EXPECT_EQ(load(lw(a5, 100, a4)), "NB0501") << "in the line, outside the buffer";
  EXPECT_EQ(load(iType(0x03, 0, a5, a4, 99)), "");
  EXPECT_EQ(load(iType(0x03, 0, a5, a4, 100)), "NB0501");
  EXPECT_EQ(load(lw(a5, -4, a4)), "NB0501");
}

TEST(TrapTest, BoundsHoldForLinesThatAreCached) {
  // The second access hits the line that the first one brought.
  EXPECT_EQ(reportOf({ld(a4, 0, a0), lw(a5, 96, a4), lw(a5, 100, a4), ret()}).code, "NB0501");
  EXPECT_EQ(reportOf({ld(a4, 0, a0), lw(a5, 0, a4), sw(a5, 0, a4), ret()}).code, "NB0502");
}

TEST(TrapTest, WritesToReadOnlyMemory) {
  EXPECT_EQ(reportOf({ld(a4, 0, a0), sw(zero, 0, a4), ret()}).code, "NB0502");
  EXPECT_EQ(reportOf({sw(zero, 0, a0), ret()}).code, "NB0502") << "operand table";
  EXPECT_EQ(reportOf({auipc(t0, 0), sw(zero, 0, t0), ret()}).code, "NB0502") << "text";
  EXPECT_EQ(reportOf({ld(a4, 8, a0), sw(zero, 0, a4), ret()}).code, "");
}

TEST(TrapTest, StackOverflowHitsTheGuard) {
  // Pushes without end: 64 KiB of stack, then the guard.
  ErrorReport report = reportOf({addi(sp, sp, -16), sd(ra, 0, sp), jal(zero, -8)});
  EXPECT_EQ(report.code, "NB0501");
}

TEST(TrapTest, IllegalInstructions) {
  EXPECT_EQ(reportOf({0x00000000}).code, "NB0503");
  EXPECT_EQ(reportOf({0xffffffff}).code, "NB0503");
  EXPECT_EQ(reportOf({csrrs(a5, 0xc00, zero), ret()}).code, "NB0503") << "cycle: kernels do not see time";
  EXPECT_EQ(reportOf({csrrwi(zero, 2, 4), ret()}).code, "NB0503") << "frm = RMM";
  EXPECT_EQ(reportOf({fp(0, 0, 4, f0, f1, f2), ret()}).code, "NB0503") << "fadd.s with RMM";
  ErrorReport report = reportOf({addi(t0, t0, 1), 0x0000700b});
  EXPECT_EQ(report.where, "core 0, pc 0x10004: illegal [0x0000700b]");
}

TEST(TrapTest, JumpsOutsideTheText) {
  EXPECT_EQ(reportOf({jalr(zero, zero, 0)}).code, "NB0504");
  EXPECT_EQ(reportOf({jal(zero, 0x1000)}).code, "NB0504");
  EXPECT_EQ(reportOf({ld(a4, 8, a0), jalr(zero, a4, 0)}).code, "NB0504") << "data is not executable";
  std::vector<uint32_t> full(16, addi(t0, t0, 1)); // a whole line without an end
  EXPECT_EQ(reportOf(full).code, "NB0504");
}

TEST(TrapTest, EnvironmentCallsAndAtomics) {
  EXPECT_EQ(reportOf({ecall()}).code, "NB0507");
  EXPECT_EQ(reportOf({0x00100073}).code, "NB0507") << "ebreak";
  EXPECT_EQ(reportOf({ld(a4, 8, a0), addi(a4, a4, 2), amo(0, false, a5, a4, t0), ret()}).code, "NB0508");
}

TEST(TrapTest, MachineStaysUsable) {
  MachineConfig config;
  config.core.count = 2;
  NmcMachine machine(config, 2);
  std::vector<std::byte> bad = elfOf({0x00000000}), good = elfOf({ret()});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(machine.launch({.elf = bad, .regions = {}, .operandAddresses = {}, .tasks = 2}), DeviceError);
    EXPECT_EQ(machine.launch({.elf = good, .regions = {}, .operandAddresses = {}, .tasks = 2}).instructions, 2u);
  }
}

TEST(TrapTest, OverlappingRegionsAreRefused) {
  MachineConfig config;
  config.core.count = 1;
  NmcMachine machine(config, 1);
  static char memory[256];
  const GuestRegion regions[] = {{0x20000000, memory, 128, true}, {0x20000040, memory, 128, true}};
  std::vector<std::byte> elf = elfOf({ret()});
  EXPECT_THROW(machine.launch({.elf = elf, .regions = regions, .operandAddresses = {}, .tasks = 1}), DeviceError);
}

TEST(TrapTest, MalformedExecutables) {
  std::vector<std::byte> good = elfOf({ret()});
  EXPECT_EQ(reportOfElf(good).code, "");
  EXPECT_EQ(reportOfElf(std::vector<std::byte>{}).code, "NB0505");
  EXPECT_EQ(reportOfElf(std::vector<std::byte>(200)).code, "NB0505");
  for (size_t cut = 0; cut < 0x1000; cut += 7)
    EXPECT_EQ(reportOfElf(std::vector<std::byte>(good.begin(), good.begin() + static_cast<long>(cut))).code, "NB0505");
  auto broken = [&](size_t offset, int value) {
    std::vector<std::byte> elf = good;
    elf[offset] = static_cast<std::byte>(value);
    return reportOfElf(elf).code;
  };
  EXPECT_EQ(broken(4, 1), "NB0505") << "32 bit";
  EXPECT_EQ(broken(18, 62), "NB0505") << "x86";
  EXPECT_EQ(broken(26, 9), "NB0505") << "entry outside";
  EXPECT_EQ(broken(39, 0x7f), "NB0505") << "program headers far away";
  EXPECT_EQ(broken(79, 0x7f), "NB0505") << "segment offset far away";
  EXPECT_EQ(broken(103, 0x7f), "NB0505") << "huge file size";
}

TEST(TrapTest, AnyByteOfTheHeadersMayBeWrong) {
  std::vector<std::byte> good = elfOf({ret()});
  for (size_t offset = 0; offset < 120; ++offset)
    for (int value : {0, 1, 0x7f, 0xff}) {
      std::vector<std::byte> elf = good;
      elf[offset] = static_cast<std::byte>(value);
      std::string code = reportOfElf(elf).code;
      EXPECT_TRUE(code.empty() || code.starts_with("NB05")) << offset << ": " << code;
    }
}

} // namespace
} // namespace nearbank::sim
