// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/SlotTable.h"
#include "sim/dpu/Decode.h"

#include <gmock/gmock.h>

using namespace nearbank::dpu;
using testing::ElementsAre;

namespace {

constexpr unsigned A0 = 10, A1 = 11, A2 = 12, A3 = 13, A4 = 14, A5 = 15, Sp = 2;

uint32_t r(unsigned function, unsigned upper, unsigned rd, unsigned rs1, unsigned rs2) {
  return upper << 25 | rs2 << 20 | rs1 << 15 | function << 12 | rd << 7 | 0x33;
}
uint32_t i(unsigned opcode, unsigned function, unsigned rd, unsigned rs1, int immediate) {
  return static_cast<uint32_t>(immediate) << 20 | rs1 << 15 | function << 12 | rd << 7 | opcode;
}
uint32_t add(unsigned rd, unsigned a, unsigned b) { return r(0, 0, rd, a, b); }
uint32_t sub(unsigned rd, unsigned a, unsigned b) { return r(0, 0x20, rd, a, b); }
uint32_t sltu(unsigned rd, unsigned a, unsigned b) { return r(3, 0, rd, a, b); }
uint32_t mul(unsigned rd, unsigned a, unsigned b) { return r(0, 1, rd, a, b); }
uint32_t mulhu(unsigned rd, unsigned a, unsigned b) { return r(3, 1, rd, a, b); }
uint32_t addi(unsigned rd, unsigned a, int value) { return i(0x13, 0, rd, a, value); }
uint32_t slli(unsigned rd, unsigned a, int value) { return i(0x13, 1, rd, a, value); }
uint32_t lw(unsigned rd, unsigned a, int value) { return i(0x03, 2, rd, a, value); }
uint32_t lui(unsigned rd, uint32_t value) { return value << 12 | rd << 7 | 0x37; }
uint32_t sw(unsigned value, unsigned base, unsigned offset) {
  return (offset >> 5) << 25 | value << 20 | base << 15 | 2 << 12 | (offset & 31) << 7 | 0x23;
}
// bne a, b, -4
uint32_t bneBack(unsigned a, unsigned b) { return 0xfe000ee3 | b << 20 | a << 15 | 1 << 12; }

std::vector<unsigned> slots(const std::vector<uint32_t> &words) {
  DpuConfig config;
  config.wideMultiplySlots = 131;
  std::vector<Instruction> code = decodeText(words);
  assignSlots(code, config);
  std::vector<unsigned> out;
  for (const Instruction &in : code)
    out.push_back(in.slots);
  return out;
}

TEST(SlotTableTest, PlainInstructionsTakeOneSlotEach) {
  EXPECT_THAT(slots({lw(A0, A1, 0), add(A0, A0, A2), sw(A0, A1, 0)}), ElementsAre(1, 1, 1));
}

TEST(SlotTableTest, ImmediatesOf32BitsArePartOfTheInstruction) {
  EXPECT_THAT(slots({lui(A0, 0x12345), addi(A0, A0, 0x67)}), ElementsAre(0, 1));
  EXPECT_THAT(slots({lui(A0, 0x1), lw(A1, A0, 8)}), ElementsAre(0, 1));
}

TEST(SlotTableTest, ShiftAndAddIsOneInstruction) {
  EXPECT_THAT(slots({slli(A0, A0, 2), add(A0, A0, A1)}), ElementsAre(0, 1));
  EXPECT_THAT(slots({slli(A0, A0, 2), add(A1, A0, A1)}), ElementsAre(1, 1));
  EXPECT_THAT(slots({slli(A0, A0, 2), add(A1, A0, A1), add(A0, A0, A2)}), ElementsAre(0, 1, 1));
  EXPECT_THAT(slots({slli(A0, A0, 2), sw(A0, A1, 0), add(A0, A0, A2)}), ElementsAre(1, 1, 1));
}

TEST(SlotTableTest, ArithmeticJumpsOnItsResult) {
  EXPECT_THAT(slots({addi(A1, A1, 4), addi(A0, A0, -1), bneBack(A0, 0)}), ElementsAre(1, 1, 0));
  EXPECT_THAT(slots({addi(A1, A1, 4), addi(A0, A0, -1), bneBack(A0, A2)}), ElementsAre(1, 1, 1));
}

TEST(SlotTableTest, WideAdditionIsAddAndAddc) {
  // (a1:a0) + (a3:a2)
  EXPECT_THAT(slots({add(A2, A0, A2), sltu(A4, A2, A0), add(A3, A1, A3), add(A3, A3, A4)}), ElementsAre(1, 0, 1, 0));
}

TEST(SlotTableTest, WideSubtractionIsSubAndSubc) {
  EXPECT_THAT(slots({sltu(A4, A0, A2), sub(A1, A1, A3), sub(A1, A1, A4), sub(A0, A0, A2)}), ElementsAre(0, 1, 0, 1));
}

TEST(SlotTableTest, WideResultsAreStoredAtOnce) {
  EXPECT_THAT(
      slots({add(A2, A0, A2), sltu(A4, A2, A0), add(A3, A1, A3), add(A3, A3, A4), sw(A2, A5, 0), sw(A3, A5, 4)}),
      ElementsAre(1, 0, 1, 0, 1, 0));
  EXPECT_THAT(
      slots({add(A2, A0, A2), sltu(A4, A2, A0), add(A3, A1, A3), add(A3, A3, A4), sw(A2, A5, 4), sw(A3, A5, 8)}),
      ElementsAre(1, 0, 1, 0, 1, 1));
}

TEST(SlotTableTest, WideAdditionOfAConstantIsAddAndAddc) {
  EXPECT_THAT(slots({add(A2, A0, A2), sltu(A4, A2, A0), add(A1, A1, A4)}), ElementsAre(1, 0, 1));
}

TEST(SlotTableTest, WideMultiplicationIsOneCall) {
  EXPECT_THAT(slots({mul(A4, A1, A2), mulhu(A5, A0, A2), mul(A1, A0, A3), mul(A0, A0, A2)}), ElementsAre(0, 131, 0, 0));
}

TEST(SlotTableTest, OperandsThatLiveElsewhereAreMovedForAMultiplication) {
  EXPECT_THAT(slots({lw(A1, A0, 0), lw(A2, A0, 4), mul(A3, A1, A2)}), ElementsAre(1, 1, 1));
  EXPECT_THAT(slots({lw(A1, A0, 0), mul(A3, A1, A2)}), ElementsAre(1, 2));
  EXPECT_THAT(slots({lw(A1, A0, 0), mul(A3, A1, A1)}), ElementsAre(1, 2));
  EXPECT_THAT(slots({mul(A3, A1, A2)}), ElementsAre(3));
}

TEST(SlotTableTest, PairsOnTheStackAreOneAccess) {
  EXPECT_THAT(slots({sw(A0, Sp, 8), sw(A1, Sp, 12)}), ElementsAre(1, 0));
  EXPECT_THAT(slots({sw(A0, Sp, 12), sw(A1, Sp, 16)}), ElementsAre(1, 1));
}

TEST(SlotTableTest, CopiesOfDoubleWordsAreOneLoadAndOneStore) {
  EXPECT_THAT(slots({lw(A0, A2, 0), lw(A1, A2, 4), sw(A0, A3, 0), sw(A1, A3, 4)}), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(slots({lw(A0, A2, 0), lw(A1, A2, 4), sw(A0, A3, 0), sw(A0, A3, 4)}), ElementsAre(1, 1, 1, 1));
}

TEST(SlotTableTest, SequencesThatAJumpEntersStay) {
  // The branch goes to the addi in the middle.
  EXPECT_THAT(slots({lui(A0, 1), addi(A0, A0, 4), bneBack(A0, A1)}), ElementsAre(1, 1, 1));
}

} // namespace
