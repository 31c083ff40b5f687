// SPDX-License-Identifier: Apache-2.0
#include "sim/isa/Instruction.h"

#include <gmock/gmock.h>

#include <set>

namespace nearbank::sim {
namespace {

struct Case {
  uint32_t word;
  const char *text;
};

constexpr Case cases[] = {
#include "sim/isa/DecoderCases.inc"
};

std::string mnemonicAndOperands(uint32_t word) {
  std::string text = describe(decode(word));
  return text.substr(0, text.find(" ["));
}

TEST(DecoderTest, DecodesWhatAnAssemblerEncodes) {
  for (const Case &c : cases)
    EXPECT_EQ(mnemonicAndOperands(c.word), c.text) << std::hex << c.word;
}

TEST(DecoderTest, CasesCoverEveryOpcode) {
  std::set<Opcode> seen;
  for (const Case &c : cases)
    seen.insert(decode(c.word).opcode);
  EXPECT_EQ(seen.size(), numOpcodes - 1);
}

TEST(DecoderTest, TellsLengths) {
  for (const Case &c : cases)
    EXPECT_EQ(decode(c.word).length, (c.word & 3) == 3 ? 4 : 2);
}

TEST(DecoderTest, DescribesEncoding) {
  EXPECT_EQ(describe(decode(0x00813503)), "ld a0, 8(sp) [0x00813503]");
  EXPECT_EQ(describe(decode(0x8082)), "jalr zero, 0(ra) [0x8082]");
}

TEST(DecoderTest, WritesToX0AreDiscarded) { EXPECT_EQ(decode(0x00100013).rd, discardRegister); }

TEST(DecoderTest, RejectsReservedEncodings) {
  const uint32_t reserved[] = {
      0x00000000,            // all zeros
      0xffffffff,            // all ones
      0x00001067,            // jalr with funct3 1
      0x00002063,            // branch with funct3 2
      0x00007003,            // load with funct3 7
      0x40001033,            // sll with funct7 0x20
      0x02001013 | 1u << 26, // slli beyond 63
      0x0200101b,            // slliw beyond 31
      0x00305053 | 5u << 12, // fadd.s with rounding mode 5
      0x04000053,            // fadd.h: half-precision arithmetic is not part of Zfhmin
      0x06000053,            // fadd.q
      0x00004043 | 2u << 25, // fmadd.h
      0x0000002f,            // atomic of a byte
  };
  for (uint32_t word : reserved)
    EXPECT_EQ(decode(word).opcode, Opcode::Illegal) << std::hex << word;
  EXPECT_EQ(decode(0x6101 & ~0x1000u & ~0x7cu).opcode, Opcode::Illegal); // c.addi16sp 0
  EXPECT_EQ(decode(0x8002).opcode, Opcode::Illegal);                     // c.jr x0
  EXPECT_EQ(decode(0x9c41).opcode, Opcode::Illegal);                     // reserved arithmetic
}

} // namespace
} // namespace nearbank::sim
