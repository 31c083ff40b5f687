// SPDX-License-Identifier: Apache-2.0
// Each instruction, run as a kernel of one core, against closed forms.
#include "sim/isa/FloatConvert.h"
#include "sim/isa/TestEncoder.h"
#include "sim/system/NmcMachine.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

namespace nearbank::sim {
namespace {

using namespace encode;

struct Result {
  uint64_t x; ///< a5 afterwards.
  uint64_t f; ///< f0 afterwards.
  uint64_t flags;
};

MachineConfig oneCore() {
  MachineConfig config;
  config.core.count = 1;
  return config;
}

/// Runs one instruction with x: t0=a t1=b t2=c and f1=a f2=b f3=c; its result goes to a5 or f0.
Result evaluate(uint32_t word, uint64_t a, uint64_t b = 0, uint64_t c = 0, uint32_t frm = 0) {
  static NmcMachine machine(oneCore(), 1);
  uint64_t data[8] = {a, b, c, 0, 0, 0, 0, 0};
  std::vector<uint32_t> code = {ld(a4, 0, a0),   ld(t0, 0, a4),      ld(t1, 8, a4),     ld(t2, 16, a4), fld(f1, 0, a4),
                                fld(f2, 8, a4),  fld(f3, 16, a4),    csrrwi(0, 2, frm), word,           sd(a5, 24, a4),
                                fsd(f0, 32, a4), csrrs(t0, 1, zero), sd(t0, 40, a4),    ret()};
  std::vector<std::byte> elf = elfOf(code);
  GuestRegion region{0x100000, data, sizeof data, true};
  uint64_t operand = 0x100000;
  machine.launch({.elf = elf, .regions = {&region, 1}, .operandAddresses = {&operand, 1}, .tasks = 1});
  return {data[3], data[4], data[5]};
}

uint64_t box(float value) { return 0xffffffff00000000 | std::bit_cast<uint32_t>(value); }
uint64_t box(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t boxHalf(uint16_t bits) { return 0xffffffffffff0000 | bits; }
uint64_t signExtended(uint32_t value) { return static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)}); }
constexpr float infinity = INFINITY, notANumber = NAN;

TEST(InstructionTest, IntegerRegisterForms) {
  struct Row {
    uint32_t opcode, funct3, funct7;
    uint64_t (*expected)(uint64_t, uint64_t);
  };
  using U = uint64_t;
  using S = int64_t;
  static const Row rows[] = {
      {0x33, 0, 0, [](U a, U b) { return a + b; }},
      {0x33, 0, 0x20, [](U a, U b) { return a - b; }},
      {0x33, 1, 0, [](U a, U b) { return a << (b & 63); }},
      {0x33, 2, 0, [](U a, U b) { return U{S(a) < S(b)}; }},
      {0x33, 3, 0, [](U a, U b) { return U{a < b}; }},
      {0x33, 4, 0, [](U a, U b) { return a ^ b; }},
      {0x33, 5, 0, [](U a, U b) { return a >> (b & 63); }},
      {0x33, 5, 0x20, [](U a, U b) { return U(S(a) >> (b & 63)); }},
      {0x33, 6, 0, [](U a, U b) { return a | b; }},
      {0x33, 7, 0, [](U a, U b) { return a & b; }},
      {0x3b, 0, 0, [](U a, U b) { return signExtended(uint32_t(a) + uint32_t(b)); }},
      {0x3b, 0, 0x20, [](U a, U b) { return signExtended(uint32_t(a) - uint32_t(b)); }},
      {0x3b, 1, 0, [](U a, U b) { return signExtended(uint32_t(a) << (b & 31)); }},
      {0x3b, 5, 0, [](U a, U b) { return signExtended(uint32_t(a) >> (b & 31)); }},
      {0x3b, 5, 0x20, [](U a, U b) { return U(S(int32_t(a) >> (b & 31))); }},
      {0x33, 0, 1, [](U a, U b) { return a * b; }},
      {0x33, 1, 1, [](U a, U b) { return U((__int128(S(a)) * S(b)) >> 64); }},
      {0x33, 2, 1, [](U a, U b) { return U((__int128(S(a)) * __int128(b)) >> 64); }},
      {0x33, 3, 1, [](U a, U b) { return U((static_cast<unsigned __int128>(a) * b) >> 64); }},
      {0x3b, 0, 1, [](U a, U b) { return signExtended(uint32_t(a) * uint32_t(b)); }},
  };
  const uint64_t values[] = {0, 1, 7, 63, ~uint64_t{0}, uint64_t{1} << 63, 0x7fffffff, 0x80000000, 0x123456789abcdef0};
  for (const Row &row : rows)
    for (uint64_t a : values)
      for (uint64_t b : values)
        EXPECT_EQ(evaluate(rType(row.opcode, row.funct3, row.funct7, a5, t0, t1), a, b).x, row.expected(a, b))
            << row.opcode << "/" << row.funct3 << "/" << row.funct7 << " of " << a << ", " << b;
}

TEST(InstructionTest, IntegerImmediateForms) {
  uint64_t a = 0xfedcba9876543210;
  EXPECT_EQ(evaluate(addi(a5, t0, -5), a).x, a - 5);
  EXPECT_EQ(evaluate(iType(0x13, 2, a5, t0, -1), a).x, 1u); // slti: a is below -1
  EXPECT_EQ(evaluate(iType(0x13, 3, a5, t0, -1), a).x, 1u); // sltiu against 2^64-1
  EXPECT_EQ(evaluate(iType(0x13, 4, a5, t0, -1), a).x, ~a);
  EXPECT_EQ(evaluate(iType(0x13, 6, a5, t0, 0x0f), a).x, a | 0x0f);
  EXPECT_EQ(evaluate(iType(0x13, 7, a5, t0, 0xff), a).x, a & 0xff);
  EXPECT_EQ(evaluate(slli(a5, t0, 40), a).x, a << 40);
  EXPECT_EQ(evaluate(iType(0x13, 5, a5, t0, 40), a).x, a >> 40);
  EXPECT_EQ(evaluate(iType(0x13, 5, a5, t0, 40 | 0x400), a).x, uint64_t(int64_t(a) >> 40));
  EXPECT_EQ(evaluate(iType(0x1b, 0, a5, t0, 1), 0x7fffffff).x, 0xffffffff80000000);
  EXPECT_EQ(evaluate(iType(0x1b, 1, a5, t0, 4), a).x, signExtended(0x65432100));
  EXPECT_EQ(evaluate(iType(0x1b, 5, a5, t0, 4), 0xf0000000).x, 0x0f000000u);
  EXPECT_EQ(evaluate(iType(0x1b, 5, a5, t0, 4 | 0x400), 0xf0000000).x, signExtended(0xff000000));
  EXPECT_EQ(evaluate(lui(a5, 0x80001), 0).x, signExtended(0x80001000));
  EXPECT_EQ(evaluate(auipc(a5, 1), 0).x, 0x10000u + 8 * 4 + 0x1000);
}

TEST(InstructionTest, DivisionCorners) {
  constexpr uint64_t least = uint64_t{1} << 63, minusOne = ~uint64_t{0};
  auto op = [](uint32_t opcode, uint32_t funct3) { return rType(opcode, funct3, 1, a5, t0, t1); };
  EXPECT_EQ(evaluate(op(0x33, 4), uint64_t(-7), 2).x, uint64_t(-3));
  EXPECT_EQ(evaluate(op(0x33, 6), uint64_t(-7), 2).x, uint64_t(-1));
  EXPECT_EQ(evaluate(op(0x33, 4), 7, 0).x, minusOne);
  EXPECT_EQ(evaluate(op(0x33, 6), 7, 0).x, 7u);
  EXPECT_EQ(evaluate(op(0x33, 5), 7, 0).x, minusOne);
  EXPECT_EQ(evaluate(op(0x33, 7), 7, 0).x, 7u);
  EXPECT_EQ(evaluate(op(0x33, 4), least, minusOne).x, least);
  EXPECT_EQ(evaluate(op(0x33, 6), least, minusOne).x, 0u);
  EXPECT_EQ(evaluate(op(0x33, 5), minusOne, 10).x, minusOne / 10);
  EXPECT_EQ(evaluate(op(0x33, 7), minusOne, 10).x, minusOne % 10);
  EXPECT_EQ(evaluate(op(0x3b, 4), 0x80000000, 0xffffffff).x, signExtended(0x80000000));
  EXPECT_EQ(evaluate(op(0x3b, 6), 0x80000000, 0xffffffff).x, 0u);
  EXPECT_EQ(evaluate(op(0x3b, 4), uint64_t(-9), 4).x, uint64_t(-2));
  EXPECT_EQ(evaluate(op(0x3b, 5), 0xfffffff0, 0).x, minusOne);
  EXPECT_EQ(evaluate(op(0x3b, 7), 0xfffffff0, 0).x, signExtended(0xfffffff0));
  EXPECT_EQ(evaluate(op(0x3b, 5), 0xfffffff0, 2).x, 0x7ffffff8u);
  EXPECT_EQ(evaluate(op(0x3b, 6), uint64_t(-9), 4).x, uint64_t(-1));
}

TEST(InstructionTest, LoadsExtend) {
  uint64_t a = 0x8182838485868788;
  auto load = [&](uint32_t funct3, int32_t offset) { return evaluate(iType(0x03, funct3, a5, a4, offset), a).x; };
  EXPECT_EQ(load(0, 7), uint64_t(int64_t{-0x7f}));
  EXPECT_EQ(load(4, 7), 0x81u);
  EXPECT_EQ(load(1, 6), uint64_t(int64_t{int16_t(0x8182)}));
  EXPECT_EQ(load(5, 6), 0x8182u);
  EXPECT_EQ(load(2, 4), signExtended(0x81828384));
  EXPECT_EQ(load(6, 4), 0x81828384u);
  EXPECT_EQ(load(3, 0), a);
  EXPECT_EQ(load(6, 3), 0x82838485u) << "unaligned";
  EXPECT_EQ(evaluate(iType(0x07, 1, f0, a4, 6), a).f, boxHalf(0x8182));
  EXPECT_EQ(evaluate(flw(f0, 4, a4), a).f, 0xffffffff81828384);
  EXPECT_EQ(evaluate(fld(f0, 0, a4), a).f, a);
}

TEST(InstructionTest, StoresTruncate) {
  // The store goes to the word of `c`; read back through f0, which nothing else writes.
  auto stored = [](uint32_t funct3, uint32_t opcode, uint32_t source) {
    static NmcMachine machine(oneCore(), 1);
    uint64_t data[4] = {0x8182838485868788, 0, 0x1111111111111111, 0};
    std::vector<std::byte> elf =
        elfOf({ld(a4, 0, a0), ld(t0, 0, a4), fld(f1, 0, a4), sType(opcode, funct3, source, 16, a4), ret()});
    GuestRegion region{0x100000, data, sizeof data, true};
    uint64_t operand = 0x100000;
    machine.launch({.elf = elf, .regions = {&region, 1}, .operandAddresses = {&operand, 1}, .tasks = 1});
    return data[2];
  };
  EXPECT_EQ(stored(0, 0x23, t0), 0x1111111111111188u);
  EXPECT_EQ(stored(1, 0x23, t0), 0x1111111111118788u);
  EXPECT_EQ(stored(2, 0x23, t0), 0x1111111185868788u);
  EXPECT_EQ(stored(3, 0x23, t0), 0x8182838485868788u);
  EXPECT_EQ(stored(1, 0x27, f1), 0x1111111111118788u);
  EXPECT_EQ(stored(2, 0x27, f1), 0x1111111185868788u);
  EXPECT_EQ(stored(3, 0x27, f1), 0x8182838485868788u);
}

TEST(InstructionTest, FloatArithmeticMatchesTheHost) {
  const float values[] = {0.0f, -0.0f, 1.0f, -1.5f, 3.14159f, 1e-40f, 1e38f, -infinity, 0.1f};
  for (float a : values)
    for (float b : values) {
      auto check = [&](uint32_t funct5, float expected) {
        uint64_t want = std::isnan(expected) ? 0xffffffff7fc00000 : box(expected);
        EXPECT_EQ(evaluate(fp(funct5, 0, dynamicRounding, f0, f1, f2), box(a), box(b)).f, want)
            << funct5 << ": " << a << ", " << b;
      };
      check(0, a + b), check(1, a - b), check(2, a * b), check(3, a / b);
    }
  EXPECT_EQ(evaluate(fp(0, 1, 7, f0, f1, f2), box(0.1), box(0.2)).f, box(0.1 + 0.2));
  EXPECT_EQ(evaluate(fp(1, 1, 7, f0, f1, f2), box(0.1), box(0.2)).f, box(0.1 - 0.2));
  EXPECT_EQ(evaluate(fp(2, 1, 7, f0, f1, f2), box(0.1), box(0.2)).f, box(0.1 * 0.2));
  EXPECT_EQ(evaluate(fp(3, 1, 7, f0, f1, f2), box(0.1), box(0.3)).f, box(0.1 / 0.3));
  EXPECT_EQ(evaluate(fp(0x0b, 0, 7, f0, f1, 0), box(2.0f)).f, box(std::sqrt(2.0f)));
  EXPECT_EQ(evaluate(fp(0x0b, 1, 7, f0, f1, 0), box(2.0)).f, box(std::sqrt(2.0)));
  EXPECT_EQ(evaluate(fp(0x0b, 1, 7, f0, f1, 0), box(-2.0)).f, canonicalNan64);
}

TEST(InstructionTest, MultiplyAddIsFused) {
  // (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46: lost when the product is rounded.
  float a = 1 + 0x1p-23f, c = -(1 + 0x1p-22f);
  EXPECT_EQ(evaluate(fma(0, 0, f0, f1, f2, f3), box(a), box(a), box(c)).f, box(0x1p-46f));
  EXPECT_EQ(evaluate(fma(1, 0, f0, f1, f2, f3), box(a), box(a), box(-c)).f, box(0x1p-46f));
  EXPECT_EQ(evaluate(fma(2, 0, f0, f1, f2, f3), box(a), box(a), box(-c)).f, box(-0x1p-46f));
  EXPECT_EQ(evaluate(fma(3, 0, f0, f1, f2, f3), box(a), box(a), box(c)).f, box(-0x1p-46f));
  double d = 1 + 0x1p-52, e = -(1 + 0x1p-51);
  EXPECT_EQ(evaluate(fma(0, 1, f0, f1, f2, f3), box(d), box(d), box(e)).f, box(0x1p-104));
  EXPECT_EQ(evaluate(fma(1, 1, f0, f1, f2, f3), box(3.0), box(5.0), box(1.0)).f, box(14.0));
  EXPECT_EQ(evaluate(fma(2, 1, f0, f1, f2, f3), box(3.0), box(5.0), box(1.0)).f, box(-14.0));
  EXPECT_EQ(evaluate(fma(3, 1, f0, f1, f2, f3), box(3.0), box(5.0), box(1.0)).f, box(-16.0));
}

TEST(InstructionTest, SeparateMultiplyAndAddAreNotFused) {
  float a = 1 + 0x1p-23f, c = -(1 + 0x1p-22f);
  static NmcMachine machine(oneCore(), 1);
  float data[16] = {a, a, c, 0};
  std::vector<std::byte> elf = elfOf({ld(a4, 0, a0), flw(f1, 0, a4), flw(f2, 4, a4), flw(f3, 8, a4), fmulS(f0, f1, f2),
                                      faddS(f0, f0, f3), fsw(f0, 12, a4), ret()});
  GuestRegion region{0x100000, data, sizeof data, true};
  uint64_t operand = 0x100000;
  machine.launch({.elf = elf, .regions = {&region, 1}, .operandAddresses = {&operand, 1}, .tasks = 1});
  EXPECT_EQ(data[3], 0.0f);
}

TEST(InstructionTest, StaticAndDynamicRoundingModes) {
  float a = 1, b = 0x1p-30f, next = std::nextafter(1.0f, 2.0f), below = std::nextafter(1.0f, 0.0f);
  auto rounded = [&](uint32_t mode, uint32_t frm, float y) {
    return evaluate(fp(0, 0, mode, f0, f1, f2), box(a), box(y), 0, frm).f;
  };
  EXPECT_EQ(rounded(3, 0, b), box(next));
  EXPECT_EQ(rounded(7, 3, b), box(next));
  EXPECT_EQ(rounded(2, 0, -b), box(below));
  EXPECT_EQ(rounded(7, 2, -b), box(below));
  EXPECT_EQ(rounded(1, 0, -b), box(below));
  EXPECT_EQ(rounded(0, 3, b), box(1.0f)) << "the static mode wins";
  EXPECT_EQ(rounded(7, 0, b), box(1.0f));
  EXPECT_EQ(evaluate(fp(0x1a, 0, 3, f0, t0, 0), 0x1000001).f, box(16777218.0f)) << "fcvt.s.w towards plus infinity";
  EXPECT_EQ(evaluate(fp(0x1a, 0, 1, f0, t0, 2), (uint64_t{1} << 40) + 1).f, box(0x1p40f));
}

TEST(InstructionTest, NansAreCanonicalAndBoxesChecked) {
  EXPECT_EQ(evaluate(faddS(f0, f1, f2), 0xffffffff7fa00001, box(1.0f)).f, 0xffffffff7fc00000);
  EXPECT_EQ(evaluate(faddS(f0, f1, f2), box(1.0f) & 0xffffffff, box(1.0f)).f, 0xffffffff7fc00000) << "not boxed";
  EXPECT_EQ(evaluate(fp(0, 1, 7, f0, f1, f2), 0xfff8000000000123, box(1.0)).f, canonicalNan64);
  EXPECT_EQ(evaluate(fp(4, 0, 0, f0, f1, f2), 0x3f800000, box(-1.0f)).f, 0xffffffffffc00000)
      << "fsgnj of what is not boxed";
  EXPECT_EQ(evaluate(fp(0x1c, 0, 0, a5, f1, 0), 0x123456789abcdef0).x, signExtended(0x9abcdef0))
      << "fmv.x.w moves bits";
}

TEST(InstructionTest, SignInjection) {
  EXPECT_EQ(evaluate(fp(4, 0, 0, f0, f1, f2), box(1.0f), box(-2.0f)).f, box(-1.0f));
  EXPECT_EQ(evaluate(fp(4, 0, 1, f0, f1, f2), box(1.0f), box(-2.0f)).f, box(1.0f));
  EXPECT_EQ(evaluate(fp(4, 0, 2, f0, f1, f2), box(-1.0f), box(-2.0f)).f, box(1.0f));
  EXPECT_EQ(evaluate(fp(4, 1, 0, f0, f1, f2), box(1.0), box(-2.0)).f, box(-1.0));
  EXPECT_EQ(evaluate(fp(4, 1, 1, f0, f1, f2), box(1.0), box(2.0)).f, box(-1.0));
  EXPECT_EQ(evaluate(fp(4, 1, 2, f0, f1, f2), box(1.0), box(-2.0)).f, box(-1.0));
}

TEST(InstructionTest, MinimumAndMaximum) {
  auto min = [](float a, float b) { return evaluate(fp(5, 0, 0, f0, f1, f2), box(a), box(b)); };
  auto max = [](float a, float b) { return evaluate(fp(5, 0, 1, f0, f1, f2), box(a), box(b)); };
  EXPECT_EQ(min(1, 2).f, box(1.0f));
  EXPECT_EQ(max(1, 2).f, box(2.0f));
  EXPECT_EQ(min(0.0f, -0.0f).f, box(-0.0f));
  EXPECT_EQ(max(-0.0f, 0.0f).f, box(0.0f));
  EXPECT_EQ(min(notANumber, 2).f, box(2.0f));
  EXPECT_EQ(max(2, notANumber).f, box(2.0f));
  EXPECT_EQ(min(notANumber, notANumber).f, 0xffffffff7fc00000);
  EXPECT_EQ(min(notANumber, 2).flags, 0u);
  EXPECT_EQ(evaluate(fp(5, 0, 0, f0, f1, f2), 0xffffffff7fa00000, box(2.0f)).flags, flagInvalid) << "signalling";
  EXPECT_EQ(evaluate(fp(5, 1, 0, f0, f1, f2), box(-3.0), box(2.0)).f, box(-3.0));
  EXPECT_EQ(evaluate(fp(5, 1, 1, f0, f1, f2), box(-3.0), box(2.0)).f, box(2.0));
}

TEST(InstructionTest, Comparisons) {
  auto compare = [](uint32_t funct3, float a, float b) {
    return evaluate(fp(0x14, 0, funct3, a5, f1, f2), box(a), box(b));
  };
  EXPECT_EQ(compare(2, 1, 1).x, 1u);
  EXPECT_EQ(compare(2, 0.0f, -0.0f).x, 1u);
  EXPECT_EQ(compare(1, 1, 2).x, 1u);
  EXPECT_EQ(compare(1, 2, 2).x, 0u);
  EXPECT_EQ(compare(0, 2, 2).x, 1u);
  EXPECT_EQ(compare(2, notANumber, 1).x, 0u);
  EXPECT_EQ(compare(2, notANumber, 1).flags, 0u) << "feq is quiet";
  EXPECT_EQ(compare(1, notANumber, 1).x, 0u);
  EXPECT_EQ(compare(1, notANumber, 1).flags, flagInvalid) << "flt signals";
  EXPECT_EQ(compare(0, 1, notANumber).flags, flagInvalid) << "fle signals";
  EXPECT_EQ(evaluate(fp(0x14, 1, 1, a5, f1, f2), box(1.0), box(2.0)).x, 1u);
  EXPECT_EQ(evaluate(fp(0x1c, 0, 1, a5, f1, 0), box(-infinity)).x, 1u) << "fclass.s";
  EXPECT_EQ(evaluate(fp(0x1c, 1, 1, a5, f1, 0), box(0.0)).x, 16u) << "fclass.d";
}

TEST(InstructionTest, ConversionsToAndFromIntegers) {
  auto toInt = [](uint32_t format, uint32_t kind, uint32_t mode, uint64_t bits) {
    return evaluate(fp(0x18, format, mode, a5, f1, kind), bits).x;
  };
  EXPECT_EQ(toInt(0, 0, 1, box(-3.7f)), uint64_t(-3));
  EXPECT_EQ(toInt(0, 0, 2, box(-3.2f)), uint64_t(-4));
  EXPECT_EQ(toInt(0, 0, 4, box(2.5f)), 3u);
  EXPECT_EQ(toInt(0, 0, 0, box(2.5f)), 2u);
  EXPECT_EQ(toInt(0, 1, 1, box(4294967040.0f)), signExtended(4294967040u)) << "fcvt.wu sign-extends";
  EXPECT_EQ(toInt(0, 0, 1, box(notANumber)), 0x7fffffffu);
  EXPECT_EQ(toInt(0, 2, 1, box(-infinity)), uint64_t{1} << 63);
  EXPECT_EQ(toInt(1, 3, 1, box(-1.0)), 0u);
  EXPECT_EQ(toInt(1, 2, 1, box(-0x1p62)), uint64_t(-(int64_t{1} << 62)));
  EXPECT_EQ(evaluate(fp(0x18, 1, 7, a5, f1, 0), box(2.5), 0, 0, 3).x, 3u) << "dynamic mode up";
  EXPECT_EQ(evaluate(fp(0x1a, 0, 7, f0, t0, 0), uint64_t(-5)).f, box(-5.0f));
  EXPECT_EQ(evaluate(fp(0x1a, 0, 7, f0, t0, 1), uint64_t(-5)).f, box(4294967291.0f));
  EXPECT_EQ(evaluate(fp(0x1a, 0, 7, f0, t0, 2), uint64_t(-5)).f, box(-5.0f));
  EXPECT_EQ(evaluate(fp(0x1a, 0, 7, f0, t0, 3), uint64_t(-5)).f, box(0x1p64f));
  EXPECT_EQ(evaluate(fp(0x1a, 1, 7, f0, t0, 3), uint64_t(-5)).f, box(0x1p64));
  EXPECT_EQ(evaluate(fp(0x1a, 1, 0, f0, t0, 0), uint64_t(-5)).f, box(-5.0));
  EXPECT_EQ(evaluate(fp(0x1a, 1, 0, f0, t0, 1), uint64_t(-5)).f, box(4294967291.0));
  EXPECT_EQ(evaluate(fp(0x08, 0, 7, f0, f1, 1), box(0.1)).f, box(0.1f));
  EXPECT_EQ(evaluate(fp(0x08, 1, 0, f0, f1, 0), box(0.1f)).f, box(double{0.1f}));
}

TEST(InstructionTest, SixteenBitFormats) {
  EXPECT_EQ(evaluate(fp(0x08, 0, 0, f0, f1, 2), boxHalf(0x3555)).f, box(0x1.554p-2f)) << "fcvt.s.h";
  EXPECT_EQ(evaluate(fp(0x08, 1, 0, f0, f1, 2), boxHalf(0x0001)).f, box(0x1p-24)) << "fcvt.d.h";
  EXPECT_EQ(evaluate(fp(0x08, 2, 7, f0, f1, 0), box(65519.9f)).f, boxHalf(0x7bff)) << "fcvt.h.s";
  EXPECT_EQ(evaluate(fp(0x08, 2, 7, f0, f1, 0), box(65520.0f)).f, boxHalf(0x7c00));
  EXPECT_EQ(evaluate(fp(0x08, 2, 7, f0, f1, 1), box(1 + 0x1p-11 + 0x1p-40)).f, boxHalf(0x3c01))
      << "fcvt.h.d rounds once";
  EXPECT_EQ(evaluate(fp(0x08, 0, 0, f0, f1, 6), boxHalf(0x3f80)).f, box(1.0f)) << "fcvt.s.bf16";
  EXPECT_EQ(evaluate(fp(0x08, 2, 7, f0, f1, 8), box(1 + 0x1p-8f)).f, boxHalf(0x3f80)) << "fcvt.bf16.s, tie to even";
  EXPECT_EQ(evaluate(fp(0x08, 2, 7, f0, f1, 8), box(notANumber)).f, boxHalf(0x7fc0));
  EXPECT_EQ(evaluate(fp(0x08, 2, 3, f0, f1, 8), box(1 + 0x1p-20f)).f, boxHalf(0x3f81)) << "static mode up";
  EXPECT_EQ(evaluate(fp(0x1c, 2, 0, a5, f1, 0), boxHalf(0x8001)).x, uint64_t(int64_t{int16_t(0x8001)})) << "fmv.x.h";
  EXPECT_EQ(evaluate(fp(0x1e, 2, 0, f0, t0, 0), 0x123453555).f, boxHalf(0x3555)) << "fmv.h.x";
  EXPECT_EQ(evaluate(fp(0x08, 0, 0, f0, f1, 2), 0x3555).f, 0xffffffff7fc00000) << "not boxed";
}

TEST(InstructionTest, MovesBetweenFiles) {
  EXPECT_EQ(evaluate(fp(0x1e, 0, 0, f0, t0, 0), 0x1234567889abcdef).f, 0xffffffff89abcdef);
  EXPECT_EQ(evaluate(fp(0x1e, 1, 0, f0, t0, 0), 0x1234567889abcdef).f, 0x1234567889abcdefu);
  EXPECT_EQ(evaluate(fp(0x1c, 1, 0, a5, f1, 0), 0x1234567889abcdef).x, 0x1234567889abcdefu);
}

TEST(InstructionTest, FlagsAccrue) {
  EXPECT_EQ(evaluate(fdivS(f0, f1, f2), box(1.0f), box(0.0f)).flags, flagDivideByZero);
  EXPECT_EQ(evaluate(fdivS(f0, f1, f2), box(1.0f), box(3.0f)).flags, flagInexact);
  EXPECT_EQ(evaluate(fmulS(f0, f1, f2), box(1e38f), box(1e38f)).flags, flagOverflow | flagInexact);
  EXPECT_EQ(evaluate(fdivS(f0, f1, f2), box(0.0f), box(0.0f)).flags, flagInvalid);
  EXPECT_EQ(evaluate(faddS(f0, f1, f2), box(1.0f), box(2.0f)).flags, 0u);
}

TEST(InstructionTest, Atomics) {
  // a4 points to `a`; the old value goes to a5, the new one is read back into t2 by the harness of the next word.
  auto run = [](uint32_t funct5, bool isDouble, uint64_t old, uint64_t operand) {
    static NmcMachine machine(oneCore(), 1);
    uint64_t data[4] = {old, operand, 0, 0};
    std::vector<std::byte> elf =
        elfOf({ld(a4, 0, a0), ld(t1, 8, a4), amo(funct5, isDouble, a5, a4, t1), sd(a5, 16, a4), ret()});
    GuestRegion region{0x100000, data, sizeof data, true};
    uint64_t address = 0x100000;
    machine.launch({.elf = elf, .regions = {&region, 1}, .operandAddresses = {&address, 1}, .tasks = 1});
    return std::pair(data[0], data[2]);
  };
  uint64_t minusOne = ~uint64_t{0};
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(run(0, true, 5, 7), Pair(12, 5));
  EXPECT_EQ(run(1, true, 5, 7), Pair(7, 5));
  EXPECT_EQ(run(4, true, 5, 7), Pair(2, 5));
  EXPECT_EQ(run(0x0c, true, 5, 7), Pair(5, 5));
  EXPECT_EQ(run(8, true, 5, 7), Pair(7, 5));
  EXPECT_EQ(run(0x10, true, minusOne, 7), Pair(minusOne, minusOne));
  EXPECT_EQ(run(0x14, true, minusOne, 7), Pair(7, minusOne));
  EXPECT_EQ(run(0x18, true, minusOne, 7), Pair(7, minusOne));
  EXPECT_EQ(run(0x1c, true, minusOne, 7), Pair(minusOne, minusOne));
  EXPECT_EQ(run(0, false, 0xaaaaaaaaffffffff, 1), Pair(0xaaaaaaaa00000000, minusOne)) << "words wrap and sign-extend";
  EXPECT_EQ(run(0x10, false, 0x80000000, 1), Pair(0x80000000, signExtended(0x80000000)));
  EXPECT_EQ(run(0x03, true, 5, 7), Pair(5, 1)) << "sc without a reservation fails";
}

TEST(InstructionTest, LoadReservedStoreConditional) {
  static NmcMachine machine(oneCore(), 1);
  uint64_t data[4] = {41, 0, 99, 0};
  std::vector<std::byte> elf =
      elfOf({ld(a4, 0, a0), amo(2, true, t0, a4, 0), addi(t0, t0, 1), amo(3, true, a5, a4, t0), sd(a5, 16, a4), ret()});
  GuestRegion region{0x100000, data, sizeof data, true};
  uint64_t address = 0x100000;
  machine.launch({.elf = elf, .regions = {&region, 1}, .operandAddresses = {&address, 1}, .tasks = 1});
  EXPECT_EQ(data[0], 42u);
  EXPECT_EQ(data[2], 0u);
}

} // namespace
} // namespace nearbank::sim
