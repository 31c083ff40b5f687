// SPDX-License-Identifier: Apache-2.0
// Decodes the 16-bit encodings of RV64C into the instructions they stand for.
#include "sim/isa/Instruction.h"

namespace nearbank::sim {
namespace {

using enum Opcode;

/// Moves bits [from, from+width) of `w` to position `to`.
constexpr uint32_t bits(uint32_t w, unsigned from, unsigned width, unsigned to) {
  return ((w >> from) & ((1u << width) - 1)) << to;
}
constexpr int32_t signExtend(uint32_t value, unsigned width) {
  return static_cast<int32_t>(value << (32 - width)) >> (32 - width);
}

constexpr uint8_t stackPointer = 2, returnAddress = 1;
uint8_t shortRegister(uint32_t w, unsigned low) { return static_cast<uint8_t>(8 + ((w >> low) & 7)); }
uint8_t fullRegister(uint32_t w, unsigned low) { return static_cast<uint8_t>((w >> low) & 31); }
uint8_t asFloat(uint8_t r) { return static_cast<uint8_t>(r + firstFloatRegister); }

Instruction make(uint16_t w, Opcode opcode, uint8_t rd, uint8_t rs1, uint8_t rs2, int32_t imm) {
  Instruction out;
  out.opcode = opcode;
  out.rd = rd == 0 ? discardRegister : rd;
  out.rs1 = rs1, out.rs2 = rs2, out.imm = imm;
  out.length = 2;
  out.word = w;
  return out;
}
Instruction illegal(uint16_t w) { return make(w, Illegal, 0, 0, 0, 0); }
Instruction load(uint16_t w, Opcode opcode, uint8_t rd, uint8_t base, uint32_t imm) {
  return make(w, opcode, rd, base, 0, static_cast<int32_t>(imm));
}
Instruction store(uint16_t w, Opcode opcode, uint8_t data, uint8_t base, uint32_t imm) {
  return make(w, opcode, 0, base, data, static_cast<int32_t>(imm));
}

uint32_t wordOffset(uint32_t w) { return bits(w, 10, 3, 3) | bits(w, 6, 1, 2) | bits(w, 5, 1, 6); }
uint32_t doubleOffset(uint32_t w) { return bits(w, 10, 3, 3) | bits(w, 5, 2, 6); }

Instruction quadrant0(uint16_t w) {
  uint8_t rd = shortRegister(w, 2), rs1 = shortRegister(w, 7);
  switch (w >> 13) {
  case 0: {
    uint32_t imm = bits(w, 11, 2, 4) | bits(w, 7, 4, 6) | bits(w, 6, 1, 2) | bits(w, 5, 1, 3);
    return imm == 0 ? illegal(w) : make(w, Addi, rd, stackPointer, 0, static_cast<int32_t>(imm));
  }
  case 1:
    return load(w, Fld, asFloat(rd), rs1, doubleOffset(w));
  case 2:
    return load(w, Lw, rd, rs1, wordOffset(w));
  case 3:
    return load(w, Ld, rd, rs1, doubleOffset(w));
  case 5:
    return store(w, Fsd, asFloat(rd), rs1, doubleOffset(w));
  case 6:
    return store(w, Sw, rd, rs1, wordOffset(w));
  case 7:
    return store(w, Sd, rd, rs1, doubleOffset(w));
  default:
    return illegal(w);
  }
}

Instruction arithmetic(uint16_t w, int32_t imm6) {
  uint8_t rd = shortRegister(w, 7), rs2 = shortRegister(w, 2);
  uint32_t shift = static_cast<uint32_t>(imm6) & 63;
  switch ((w >> 10) & 3) {
  case 0:
    return make(w, Srli, rd, rd, 0, static_cast<int32_t>(shift));
  case 1:
    return make(w, Srai, rd, rd, 0, static_cast<int32_t>(shift));
  case 2:
    return make(w, Andi, rd, rd, 0, imm6);
  default:
    break;
  }
  static constexpr Opcode table[] = {Sub, Xor, Or, And, Subw, Addw, Illegal, Illegal};
  Opcode opcode = table[bits(w, 12, 1, 2) | bits(w, 5, 2, 0)];
  return opcode == Illegal ? illegal(w) : make(w, opcode, rd, rd, rs2, 0);
}

Instruction quadrant1(uint16_t w) {
  uint8_t rd = fullRegister(w, 7);
  int32_t imm6 = signExtend(bits(w, 12, 1, 5) | bits(w, 2, 5, 0), 6);
  switch (w >> 13) {
  case 0:
    return make(w, Addi, rd, rd, 0, imm6);
  case 1:
    return rd == 0 ? illegal(w) : make(w, Addiw, rd, rd, 0, imm6);
  case 2:
    return make(w, Addi, rd, 0, 0, imm6);
  case 3:
    if (rd == stackPointer) {
      int32_t imm =
          signExtend(bits(w, 12, 1, 9) | bits(w, 6, 1, 4) | bits(w, 5, 1, 6) | bits(w, 3, 2, 7) | bits(w, 2, 1, 5), 10);
      return imm == 0 ? illegal(w) : make(w, Addi, rd, rd, 0, imm);
    }
    return imm6 == 0 ? illegal(w) : make(w, Lui, rd, 0, 0, imm6 * 4096);
  case 4:
    return arithmetic(w, imm6);
  case 5: {
    uint32_t imm = bits(w, 12, 1, 11) | bits(w, 11, 1, 4) | bits(w, 9, 2, 8) | bits(w, 8, 1, 10) | bits(w, 7, 1, 6) |
                   bits(w, 6, 1, 7) | bits(w, 3, 3, 1) | bits(w, 2, 1, 5);
    return make(w, Jal, 0, 0, 0, signExtend(imm, 12));
  }
  default: {
    uint32_t imm = bits(w, 12, 1, 8) | bits(w, 10, 2, 3) | bits(w, 5, 2, 6) | bits(w, 3, 2, 1) | bits(w, 2, 1, 5);
    return make(w, (w >> 13) == 6 ? Beq : Bne, 0, shortRegister(w, 7), 0, signExtend(imm, 9));
  }
  }
}

Instruction quadrant2(uint16_t w) {
  uint8_t rd = fullRegister(w, 7), rs2 = fullRegister(w, 2);
  uint32_t doubleSp = bits(w, 12, 1, 5) | bits(w, 5, 2, 3) | bits(w, 2, 3, 6);
  uint32_t wordSp = bits(w, 12, 1, 5) | bits(w, 4, 3, 2) | bits(w, 2, 2, 6);
  uint32_t storeDoubleSp = bits(w, 10, 3, 3) | bits(w, 7, 3, 6), storeWordSp = bits(w, 9, 4, 2) | bits(w, 7, 2, 6);
  switch (w >> 13) {
  case 0:
    return make(w, Slli, rd, rd, 0, static_cast<int32_t>(bits(w, 12, 1, 5) | bits(w, 2, 5, 0)));
  case 1:
    return load(w, Fld, asFloat(rd), stackPointer, doubleSp);
  case 2:
    return rd == 0 ? illegal(w) : load(w, Lw, rd, stackPointer, wordSp);
  case 3:
    return rd == 0 ? illegal(w) : load(w, Ld, rd, stackPointer, doubleSp);
  case 4:
    if ((w & 0x1000) == 0) {
      if (rs2 != 0)
        return make(w, Add, rd, 0, rs2, 0);
      return rd == 0 ? illegal(w) : make(w, Jalr, 0, rd, 0, 0);
    }
    if (rs2 != 0)
      return make(w, Add, rd, rd, rs2, 0);
    return rd == 0 ? make(w, Ebreak, 0, 0, 0, 0) : make(w, Jalr, returnAddress, rd, 0, 0);
  case 5:
    return store(w, Fsd, asFloat(rs2), stackPointer, storeDoubleSp);
  case 6:
    return store(w, Sw, rs2, stackPointer, storeWordSp);
  default:
    return store(w, Sd, rs2, stackPointer, storeDoubleSp);
  }
}

} // namespace

Instruction decodeCompressed(uint16_t w) {
  switch (w & 3) {
  case 0:
    return quadrant0(w);
  case 1:
    return quadrant1(w);
  case 2:
    return quadrant2(w);
  default:
    return illegal(w);
  }
}

} // namespace nearbank::sim
