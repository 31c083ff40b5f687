// SPDX-License-Identifier: Apache-2.0
// Decodes the 32-bit encodings.
#include "sim/isa/Instruction.h"
#include "sim/isa/Vector.h"

namespace nearbank::sim {
namespace {

uint32_t field(uint32_t word, unsigned low, unsigned width) { return (word >> low) & ((1u << width) - 1); }

int32_t immI(uint32_t w) { return static_cast<int32_t>(w) >> 20; }
int32_t immS(uint32_t w) { return (static_cast<int32_t>(w & 0xfe000000) >> 20) | static_cast<int32_t>(field(w, 7, 5)); }
int32_t immB(uint32_t w) {
  return (static_cast<int32_t>(w & 0x80000000) >> 19) |
         static_cast<int32_t>((field(w, 7, 1) << 11) | (field(w, 25, 6) << 5) | (field(w, 8, 4) << 1));
}
int32_t immJ(uint32_t w) {
  return (static_cast<int32_t>(w & 0x80000000) >> 11) |
         static_cast<int32_t>((w & 0xff000) | (field(w, 20, 1) << 11) | (field(w, 21, 10) << 1));
}

/// Fills the register fields that the opcode's format uses.
Instruction withOperands(Opcode opcode, uint32_t w, int32_t imm = 0) {
  Instruction out;
  out.opcode = opcode;
  out.word = w;
  out.imm = imm;
  uint8_t rd = field(w, 7, 5), rs1 = field(w, 15, 5), rs2 = field(w, 20, 5), rs3 = field(w, 27, 5);
  uint8_t xrd = rd == 0 ? discardRegister : rd;
  auto f = [](uint8_t r) { return static_cast<uint8_t>(r + firstFloatRegister); };
  switch (infoOf(opcode).format) {
  case Format::None:
    break;
  case Format::U:
  case Format::J:
    out.rd = xrd;
    break;
  case Format::Jalr:
  case Format::I:
  case Format::Load:
  case Format::Csr:
    out.rd = xrd, out.rs1 = rs1;
    break;
  case Format::CsrImm:
    out.rd = xrd, out.rs2 = rs1;
    break; // rs2 holds the 5-bit immediate, not a register
  case Format::Branch:
  case Format::Store:
    out.rs1 = rs1, out.rs2 = rs2;
    break;
  case Format::FLoad:
    out.rd = f(rd), out.rs1 = rs1;
    break;
  case Format::FStore:
    out.rs1 = rs1, out.rs2 = f(rs2);
    break;
  case Format::R:
  case Format::Amo:
    out.rd = xrd, out.rs1 = rs1, out.rs2 = rs2;
    break;
  case Format::FFF:
    out.rd = f(rd), out.rs1 = f(rs1), out.rs2 = f(rs2);
    break;
  case Format::FFFF:
    out.rd = f(rd), out.rs1 = f(rs1), out.rs2 = f(rs2), out.rs3 = f(rs3);
    break;
  case Format::FF:
    out.rd = f(rd), out.rs1 = f(rs1);
    break;
  case Format::XFF:
    out.rd = xrd, out.rs1 = f(rs1), out.rs2 = f(rs2);
    break;
  case Format::XF:
    out.rd = xrd, out.rs1 = f(rs1);
    break;
  case Format::FX:
    out.rd = f(rd), out.rs1 = rs1;
    break;
  case Format::Vector: // decodeVector fills them
    break;
  }
  return out;
}

Instruction illegal(uint32_t w) {
  Instruction out;
  out.word = w;
  return out;
}

/// Picks opcodes[index], Illegal when out of range.
template <size_t N> Opcode pick(const Opcode (&opcodes)[N], uint32_t index) {
  return index < N ? opcodes[index] : Opcode::Illegal;
}

using enum Opcode;

Opcode decodeOp(uint32_t funct3, uint32_t funct7) {
  static constexpr Opcode base[] = {Add, Sll, Slt, Sltu, Xor, Srl, Or, And};
  static constexpr Opcode muldiv[] = {Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu};
  if (funct7 == 0)
    return base[funct3];
  if (funct7 == 1)
    return muldiv[funct3];
  if (funct7 == 0x20)
    return funct3 == 0 ? Sub : funct3 == 5 ? Sra : Illegal;
  return Illegal;
}

Opcode decodeOp32(uint32_t funct3, uint32_t funct7) {
  static constexpr Opcode base[] = {Addw, Sllw, Illegal, Illegal, Illegal, Srlw, Illegal, Illegal};
  static constexpr Opcode muldiv[] = {Mulw, Illegal, Illegal, Illegal, Divw, Divuw, Remw, Remuw};
  if (funct7 == 0)
    return base[funct3];
  if (funct7 == 1)
    return muldiv[funct3];
  if (funct7 == 0x20)
    return funct3 == 0 ? Subw : funct3 == 5 ? Sraw : Illegal;
  return Illegal;
}

Opcode decodeAmo(uint32_t funct5, bool isWord, uint32_t rs2) {
  switch (funct5) {
  case 0x02:
    return rs2 != 0 ? Illegal : isWord ? LrW : LrD;
  case 0x03:
    return isWord ? ScW : ScD;
  case 0x01:
    return isWord ? AmoSwapW : AmoSwapD;
  case 0x00:
    return isWord ? AmoAddW : AmoAddD;
  case 0x04:
    return isWord ? AmoXorW : AmoXorD;
  case 0x0c:
    return isWord ? AmoAndW : AmoAndD;
  case 0x08:
    return isWord ? AmoOrW : AmoOrD;
  case 0x10:
    return isWord ? AmoMinW : AmoMinD;
  case 0x14:
    return isWord ? AmoMaxW : AmoMaxD;
  case 0x18:
    return isWord ? AmoMinuW : AmoMinuD;
  case 0x1c:
    return isWord ? AmoMaxuW : AmoMaxuD;
  default:
    return Illegal;
  }
}

/// OP-FP. Sets `hasRounding` when the funct3 field is a rounding mode.
Opcode decodeFloat(uint32_t w, bool &hasRounding) {
  uint32_t funct5 = field(w, 27, 5), fmt = field(w, 25, 2), rs2 = field(w, 20, 5), funct3 = field(w, 12, 3);
  bool isD = fmt == 1;
  hasRounding = true;
  if (fmt == 2) { // half precision: moves and conversions only
    if (funct5 == 0x08)
      return pick({FcvtHS, FcvtHD, Illegal, Illegal, Illegal, Illegal, Illegal, Illegal, FcvtBf16S}, rs2);
    hasRounding = false;
    if (rs2 != 0 || funct3 != 0)
      return Illegal;
    return funct5 == 0x1c ? FmvXH : funct5 == 0x1e ? FmvHX : Illegal;
  }
  if (fmt > 1)
    return Illegal;
  switch (funct5) {
  case 0x00:
    return isD ? FaddD : FaddS;
  case 0x01:
    return isD ? FsubD : FsubS;
  case 0x02:
    return isD ? FmulD : FmulS;
  case 0x03:
    return isD ? FdivD : FdivS;
  case 0x0b:
    return rs2 != 0 ? Illegal : isD ? FsqrtD : FsqrtS;
  case 0x08:
    if (isD)
      return rs2 == 0 ? FcvtDS : rs2 == 2 ? FcvtDH : Illegal;
    return rs2 == 1 ? FcvtSD : rs2 == 2 ? FcvtSH : rs2 == 6 ? FcvtSBf16 : Illegal;
  case 0x18:
    return isD ? pick({FcvtWD, FcvtWuD, FcvtLD, FcvtLuD}, rs2) : pick({FcvtWS, FcvtWuS, FcvtLS, FcvtLuS}, rs2);
  case 0x1a:
    return isD ? pick({FcvtDW, FcvtDWu, FcvtDL, FcvtDLu}, rs2) : pick({FcvtSW, FcvtSWu, FcvtSL, FcvtSLu}, rs2);
  default:
    break;
  }
  hasRounding = false;
  switch (funct5) {
  case 0x04:
    return isD ? pick({FsgnjD, FsgnjnD, FsgnjxD}, funct3) : pick({FsgnjS, FsgnjnS, FsgnjxS}, funct3);
  case 0x05:
    return isD ? pick({FminD, FmaxD}, funct3) : pick({FminS, FmaxS}, funct3);
  case 0x14:
    return isD ? pick({FleD, FltD, FeqD}, funct3) : pick({FleS, FltS, FeqS}, funct3);
  case 0x1c:
    if (rs2 != 0)
      return Illegal;
    return isD ? pick({FmvXD, FclassD}, funct3) : pick({FmvXW, FclassS}, funct3);
  case 0x1e:
    return rs2 != 0 || funct3 != 0 ? Illegal : isD ? FmvDX : FmvWX;
  default:
    return Illegal;
  }
}

Instruction withRounding(Instruction instruction, uint32_t w) {
  uint32_t mode = field(w, 12, 3);
  if (mode == 5 || mode == 6)
    return illegal(w);
  instruction.rounding = static_cast<Rounding>(mode);
  return instruction;
}

Instruction decodeSystem(uint32_t w, uint32_t funct3) {
  if (w == 0x00000073)
    return withOperands(Ecall, w);
  if (w == 0x00100073)
    return withOperands(Ebreak, w);
  Opcode opcode = pick({Illegal, Csrrw, Csrrs, Csrrc, Illegal, Csrrwi, Csrrsi, Csrrci}, funct3);
  return opcode == Illegal ? illegal(w) : withOperands(opcode, w, static_cast<int32_t>(w >> 20));
}

Instruction decodeShiftImmediate(uint32_t w, Opcode logical, Opcode arithmetic, unsigned shiftBits) {
  uint32_t upper = w >> (20 + shiftBits), arithmeticUpper = 0x400u >> shiftBits;
  Opcode opcode = upper == 0 ? logical : upper == arithmeticUpper ? arithmetic : Illegal;
  return opcode == Illegal ? illegal(w) : withOperands(opcode, w, static_cast<int32_t>(field(w, 20, shiftBits)));
}

} // namespace

Instruction decode(uint32_t w) {
  if ((w & 3) != 3)
    return decodeCompressed(static_cast<uint16_t>(w));
  uint32_t funct3 = field(w, 12, 3), funct7 = field(w, 25, 7);
  auto make = [&](Opcode opcode, int32_t imm) { return opcode == Illegal ? illegal(w) : withOperands(opcode, w, imm); };
  switch (w & 0x7f) {
  case 0x37:
    return make(Lui, static_cast<int32_t>(w & 0xfffff000));
  case 0x17:
    return make(Auipc, static_cast<int32_t>(w & 0xfffff000));
  case 0x6f:
    return make(Jal, immJ(w));
  case 0x67:
    return make(funct3 == 0 ? Jalr : Illegal, immI(w));
  case 0x63:
    return make(pick({Beq, Bne, Illegal, Illegal, Blt, Bge, Bltu, Bgeu}, funct3), immB(w));
  case 0x03:
    return make(pick({Lb, Lh, Lw, Ld, Lbu, Lhu, Lwu}, funct3), immI(w));
  case 0x23:
    return make(pick({Sb, Sh, Sw, Sd}, funct3), immS(w));
  case 0x07:
    return funct3 == 0 || funct3 >= 5 ? decodeVector(w) : make(pick({Illegal, Flh, Flw, Fld}, funct3), immI(w));
  case 0x27:
    return funct3 == 0 || funct3 >= 5 ? decodeVector(w) : make(pick({Illegal, Fsh, Fsw, Fsd}, funct3), immS(w));
  case 0x57:
    return decodeVector(w);
  case 0x13:
    if (funct3 == 1)
      return decodeShiftImmediate(w, Slli, Illegal, 6);
    if (funct3 == 5)
      return decodeShiftImmediate(w, Srli, Srai, 6);
    return make(pick({Addi, Illegal, Slti, Sltiu, Xori, Illegal, Ori, Andi}, funct3), immI(w));
  case 0x1b:
    if (funct3 == 1)
      return decodeShiftImmediate(w, Slliw, Illegal, 5);
    if (funct3 == 5)
      return decodeShiftImmediate(w, Srliw, Sraiw, 5);
    return make(funct3 == 0 ? Addiw : Illegal, immI(w));
  case 0x33:
    return make(decodeOp(funct3, funct7), 0);
  case 0x3b:
    return make(decodeOp32(funct3, funct7), 0);
  case 0x0f:
    return make(funct3 <= 1 ? Fence : Illegal, 0);
  case 0x73:
    return decodeSystem(w, funct3);
  case 0x2f:
    return funct3 == 2 || funct3 == 3 ? make(decodeAmo(field(w, 27, 5), funct3 == 2, field(w, 20, 5)), 0) : illegal(w);
  case 0x43:
  case 0x47:
  case 0x4b:
  case 0x4f: {
    static constexpr Opcode single[] = {FmaddS, FmsubS, FnmsubS, FnmaddS}, dbl[] = {FmaddD, FmsubD, FnmsubD, FnmaddD};
    uint32_t fmt = field(w, 25, 2), which = field(w, 2, 2);
    return fmt > 1 ? illegal(w) : withRounding(withOperands(fmt == 1 ? dbl[which] : single[which], w), w);
  }
  case 0x53: {
    bool hasRounding = false;
    Opcode opcode = decodeFloat(w, hasRounding);
    if (opcode == Illegal)
      return illegal(w);
    Instruction out = withOperands(opcode, w);
    return hasRounding ? withRounding(out, w) : out;
  }
  default:
    return illegal(w);
  }
}

} // namespace nearbank::sim
