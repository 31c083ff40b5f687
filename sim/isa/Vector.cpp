// SPDX-License-Identifier: Apache-2.0
// Decoding, configuration and memory shapes of vector instructions.
#include "sim/isa/Vector.h"

#include <algorithm>

namespace nearbank::sim {
namespace {

uint32_t field(uint32_t word, unsigned low, unsigned width) { return (word >> low) & ((1u << width) - 1); }
uint8_t vectorRegister(uint32_t number) { return static_cast<uint8_t>(firstVectorRegister + number); }

/// Log2 of the element bytes that the width field of a vector load or store names; -1 for scalar widths.
int widthLog2(uint32_t width) { return width == 0 ? 0 : width >= 5 ? static_cast<int>(width) - 4 : -1; }

/// Unit of an arithmetic instruction, as an opcode; Illegal when it is not implemented.
Opcode arithmeticOpcode(uint32_t category, uint32_t funct6, uint32_t vs1) {
  using enum Opcode;
  switch (category) {
  case 0: // OPIVV
  case 3: // OPIVI
  case 4: // OPIVX
    if (funct6 == 0x0c || funct6 == 0x0e || funct6 == 0x0f)
      return VPermute;
    if (funct6 == 0x17 || (funct6 >= 0x18 && funct6 <= 0x1f))
      return VMove;
    if (funct6 == 0x27)
      return category == 3 ? VMove : Illegal;
    if (funct6 == 0x30 || funct6 == 0x31)
      return category == 0 ? VReduce : Illegal;
    return (funct6 <= 0x13 && funct6 != 0x01 && funct6 != 0x08 && funct6 != 0x0d) || funct6 == 0x25 || funct6 == 0x28 ||
                   funct6 == 0x29 || funct6 == 0x2c || funct6 == 0x2d
               ? VInt
               : Illegal;
  case 2: // OPMVV
  case 6: // OPMVX
    if (funct6 <= 0x07)
      return category == 2 ? VReduce : Illegal;
    if (funct6 == 0x0e || funct6 == 0x0f)
      return category == 6 ? VPermute : Illegal;
    if (funct6 == 0x10 || funct6 == 0x12 || (funct6 >= 0x18 && funct6 <= 0x1f))
      return VMove;
    if (funct6 == 0x14)
      return vs1 == 16 ? VPermute : VMove;
    if (funct6 == 0x17)
      return VPermute;
    if (funct6 >= 0x20 && funct6 <= 0x23)
      return VIntDiv;
    if (funct6 >= 0x24 && funct6 <= 0x2f)
      return VIntMul;
    if (funct6 >= 0x30 && funct6 <= 0x37)
      return VInt;
    return funct6 >= 0x38 ? VIntMul : Illegal;
  case 1: // OPFVV
  case 5: // OPFVF
    if (funct6 == 0x01 || funct6 == 0x03 || funct6 == 0x05 || funct6 == 0x07 || funct6 == 0x31 || funct6 == 0x33)
      return category == 1 ? VReduce : Illegal;
    if (funct6 == 0x0e || funct6 == 0x0f)
      return category == 5 ? VPermute : Illegal;
    if (funct6 == 0x00 || funct6 == 0x02 || funct6 == 0x27 || funct6 == 0x30 || funct6 == 0x32 || funct6 == 0x34 ||
        funct6 == 0x36)
      return VFAdd;
    if (funct6 == 0x24 || funct6 == 0x38)
      return VFMul;
    if ((funct6 >= 0x28 && funct6 <= 0x2f) || funct6 >= 0x3c)
      return VFFma;
    if (funct6 == 0x20 || funct6 == 0x21)
      return VFDiv;
    if (funct6 == 0x13)
      return vs1 == 0 ? VFSqrt : vs1 == 16 ? VMove : Illegal;
    return funct6 <= 0x1f ? VMove : Illegal;
  default:
    return Illegal;
  }
}

Instruction decodeMemory(uint32_t w, bool isStore) {
  Instruction out;
  out.word = w;
  out.imm = static_cast<int32_t>(w);
  uint32_t mop = field(w, 26, 2), lumop = field(w, 20, 5), nf = field(w, 29, 3);
  bool isUnit = mop == 0;
  bool isWhole = isUnit && lumop == 8, isMask = isUnit && lumop == 0x0b;
  if (field(w, 28, 1) != 0 || (isUnit && lumop != 0 && !isWhole && !isMask) || (isWhole && (nf & (nf + 1)) != 0) ||
      (isMask && nf != 0))
    return out;
  out.opcode = isStore ? Opcode::VStore : Opcode::VLoad;
  uint8_t data = vectorRegister(field(w, 7, 5));
  out.rs1 = static_cast<uint8_t>(field(w, 15, 5));
  if (isStore)
    out.rs3 = data;
  else
    out.rd = data;
  if (mop == 2)
    out.rs2 = static_cast<uint8_t>(field(w, 20, 5));
  else if (!isUnit)
    out.rs2 = vectorRegister(field(w, 20, 5));
  return out;
}

} // namespace

Instruction decodeVector(uint32_t w) {
  Instruction out;
  out.word = w;
  out.imm = static_cast<int32_t>(w);
  uint32_t major = w & 0x7f, width = field(w, 12, 3);
  if (major == 0x07 || major == 0x27)
    return widthLog2(width) < 0 ? out : decodeMemory(w, major == 0x27);
  uint8_t rd = static_cast<uint8_t>(field(w, 7, 5)), rs1 = static_cast<uint8_t>(field(w, 15, 5));
  uint8_t xrd = rd == 0 ? discardRegister : rd;
  if (width == 7) { // vset*
    bool isRegister = field(w, 30, 2) == 2;
    if (isRegister && field(w, 25, 5) != 0)
      return out;
    out.opcode = Opcode::VSet;
    out.rd = xrd;
    out.rs1 = field(w, 30, 2) == 3 ? 0 : rs1;
    out.rs2 = isRegister ? static_cast<uint8_t>(field(w, 20, 5)) : 0;
    return out;
  }
  uint32_t funct6 = field(w, 26, 6), vs1 = rs1;
  Opcode opcode = arithmeticOpcode(width, funct6, vs1);
  if (opcode == Opcode::Illegal)
    return out;
  out.opcode = opcode;
  bool isFloatScalar = width == 5, isScalar = width == 4 || width == 6;
  bool isVectorVector = width <= 2;
  bool toInteger = width == 2 && funct6 == 0x10, toFloat = width == 1 && funct6 == 0x10;
  out.rd = toInteger ? xrd : toFloat ? static_cast<uint8_t>(firstFloatRegister + rd) : vectorRegister(rd);
  out.rs2 = vectorRegister(field(w, 20, 5));
  if (isFloatScalar)
    out.rs1 = static_cast<uint8_t>(firstFloatRegister + rs1);
  else if (isScalar)
    out.rs1 = rs1;
  else if (isVectorVector && !toInteger && !toFloat && funct6 != 0x12 && funct6 != 0x13)
    out.rs1 = vectorRegister(rs1);
  bool isUnarySource = (width == 1 || width == 2) && (funct6 == 0x12 || (width == 1 && funct6 == 0x13));
  bool readsOld = !toInteger && !toFloat && !isUnarySource && (opcode == Opcode::VFFma || opcode == Opcode::VIntMul) &&
                  (width == 1 || width == 5 || funct6 >= 0x29);
  bool isMasked = field(w, 25, 1) == 0;
  if (readsOld)
    out.rs3 = vectorRegister(rd);
  else if (isMasked)
    out.rs3 = vectorRegister(0);
  return out;
}

uint64_t VectorType::set(uint64_t newType, uint64_t avl) {
  VectorType type{registerBytes};
  type.vtype = newType;
  uint64_t limit = type.maxElements(type.sewLog2(), type.lmulLog2());
  bool isLegal = registerBytes != 0 && (newType >> 8) == 0 && (newType & 7) != 4 && type.sewLog2() <= 3 && limit > 0;
  if (!isLegal) {
    vtype = uint64_t{1} << 63;
    return vl = 0;
  }
  vtype = newType;
  return vl = std::min(avl, limit);
}

VectorWork workOf(const Instruction &instruction, const VectorType &type) {
  VectorWork work;
  auto w = static_cast<uint32_t>(instruction.imm);
  auto vlenb = static_cast<int64_t>(type.registerBytes);
  uint32_t funct6 = field(w, 26, 6), category = field(w, 12, 3), vs1 = field(w, 15, 5);
  // Registers of a group whose elements are 2^shift times as wide as SEW.
  auto groupOf = [&](int shift) {
    int lmul = type.lmulLog2() + shift;
    return static_cast<uint8_t>(lmul > 0 ? 1 << std::min(lmul, 3) : 1);
  };
  auto elements = static_cast<int64_t>(type.vl);
  int sew = static_cast<int>(type.sewLog2());
  Unit unit = infoOf(instruction.opcode).unit;
  if (unit == Unit::VLoad || unit == Unit::VStore) {
    uint32_t mop = field(w, 26, 2), lumop = field(w, 20, 5), fields = field(w, 29, 3) + 1;
    int width = widthLog2(category);
    if (mop == 0 && lumop == 8) { // whole registers
      work.elements = work.bytes = vlenb * fields;
      work.writes = work.readsThird = static_cast<uint8_t>(fields);
      return work;
    }
    if (mop == 0 && lumop == 0x0b) { // mask
      work.elements = work.bytes = (elements + 7) / 8;
      return work;
    }
    bool isIndexed = mop == 1 || mop == 3;
    int data = isIndexed ? sew : width;
    work.elements = elements * fields;
    work.bytes = work.elements << data;
    work.isElementwise = mop != 0 || fields > 1;
    work.writes = work.readsThird = static_cast<uint8_t>(fields * groupOf(data - sew));
    if (isIndexed)
      work.readsSecond = groupOf(width - sew);
    return work;
  }
  if (category == 3 && funct6 == 0x27) { // whole registers
    work.writes = work.readsSecond = static_cast<uint8_t>(vs1 + 1);
    work.elements = work.bytes = vlenb * (vs1 + 1);
    return work;
  }
  bool isFloat = category == 1 || category == 5, isMultiply = category == 2 || category == 6;
  bool isConversion = isFloat && funct6 == 0x12, isReduction = unit == Unit::VReduce;
  bool isNarrowing = isConversion ? vs1 >= 16 : !isFloat && !isMultiply && (funct6 == 0x2c || funct6 == 0x2d);
  bool isWidening = !isReduction && (isConversion ? vs1 >= 8 && vs1 < 16 : (isFloat || isMultiply) && funct6 >= 0x30);
  // vwadd.w and its kin take a first source that is wide already.
  bool isWideFirst = isWidening && !isConversion && funct6 >= 0x34 && funct6 <= 0x37;
  bool givesMask = !isMultiply && funct6 >= 0x18 && funct6 <= 0x1f;
  bool isOfMasks = isMultiply && (funct6 == 0x14 || (funct6 >= 0x18 && funct6 <= 0x1f));
  work.elements = elements;
  work.bytes = elements << (sew + (isNarrowing || isWidening ? 1 : 0));
  work.isOrdered = isReduction && isFloat && (funct6 == 0x03 || funct6 == 0x33);
  if (isOfMasks && funct6 != 0x14)
    work.bytes = (elements + 7) / 8;
  work.readsFirst = isReduction || isOfMasks ? 1 : groupOf(0);
  work.readsSecond = isOfMasks ? 1 : groupOf(isNarrowing || isWideFirst ? 1 : 0);
  work.writes = isReduction || givesMask || (isOfMasks && vs1 < 16) ? 1 : groupOf(isWidening ? 1 : 0);
  work.readsThird = instruction.rs3 == instruction.rd ? work.writes : 1;
  return work;
}

uint64_t setVector(VectorState &state, uint32_t w, uint64_t rs1Value, uint64_t rs2Value) {
  uint32_t top = field(w, 30, 2), rs1 = field(w, 15, 5), rd = field(w, 7, 5);
  if (top == 3) // vsetivli
    return state.set(field(w, 20, 10), rs1);
  uint64_t type = top == 2 ? rs2Value : field(w, 20, 11);
  if (rs1 != 0)
    return state.set(type, rs1Value);
  return state.set(type, rd != 0 ? ~uint64_t{0} : state.vl);
}

VectorAccess takeApart(const VectorState &state, uint32_t w) {
  VectorAccess access;
  access.isStore = (w & 0x7f) == 0x27;
  access.isMasked = field(w, 25, 1) == 0;
  access.data = static_cast<uint8_t>(field(w, 7, 5));
  access.index = static_cast<uint8_t>(field(w, 20, 5));
  uint32_t mop = field(w, 26, 2), lumop = field(w, 20, 5), nf = field(w, 29, 3) + 1;
  int width = widthLog2(field(w, 12, 3));
  access.elementLog2 = static_cast<uint8_t>(width);
  if (mop == 0 && lumop == 8) { // whole registers
    access.elementLog2 = 0;
    access.elements = uint64_t{nf} * state.registerBytes;
    access.isLegal = state.registerBytes != 0;
    return access;
  }
  access.isLegal = state.isSet();
  if (!access.isLegal)
    return access;
  if (mop == 0 && lumop == 0x0b) { // mask
    access.elementLog2 = 0;
    access.elements = (state.vl + 7) / 8;
    return access;
  }
  access.fields = static_cast<uint8_t>(nf);
  access.elements = state.vl;
  if (mop == 1 || mop == 3) {
    access.mode = VectorAccess::Mode::Indexed;
    access.indexLog2 = static_cast<uint8_t>(width);
    access.elementLog2 = static_cast<uint8_t>(state.sewLog2());
  } else if (mop == 2) {
    access.mode = VectorAccess::Mode::Strided;
  }
  int lmul = state.lmulLog2() + static_cast<int>(access.elementLog2) - static_cast<int>(state.sewLog2());
  access.registersApart = lmul > 0 ? 1u << lmul : 1;
  access.isLegal = lmul <= 3 && access.data + access.fields * access.registersApart <= 32;
  return access;
}

uint64_t VectorAccess::offsetOf(const VectorState &state, uint64_t element, uint64_t stride) const {
  switch (mode) {
  case Mode::Unit:
    return element * (uint64_t{fields} << elementLog2);
  case Mode::Strided:
    return element * stride;
  case Mode::Indexed: {
    uint64_t value = 0;
    std::memcpy(&value, state.registers + size_t{index} * state.registerBytes + (element << indexLog2),
                size_t{1} << indexLog2);
    return value;
  }
  }
  return 0;
}

} // namespace nearbank::sim
