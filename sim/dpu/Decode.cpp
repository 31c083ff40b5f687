// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/Decode.h"

namespace nearbank::dpu {
namespace {

int32_t signExtend(uint32_t value, unsigned bits) { return static_cast<int32_t>(value << (32 - bits)) >> (32 - bits); }
int32_t branchOffset(uint32_t w) {
  return signExtend(((w >> 31) << 12) | (((w >> 7) & 1) << 11) | (((w >> 25) & 0x3f) << 5) | (((w >> 8) & 0xf) << 1),
                    13);
}
int32_t jumpOffset(uint32_t w) {
  return signExtend(
      ((w >> 31) << 20) | (((w >> 12) & 0xff) << 12) | (((w >> 20) & 1) << 11) | (((w >> 21) & 0x3ff) << 1), 21);
}
int32_t storeOffset(uint32_t w) { return signExtend(((w >> 25) << 5) | ((w >> 7) & 31), 12); }

// custom-0: upmem/device/include/dpu_instructions.h.
void decodeCustom(uint32_t word, Instruction &out) {
  unsigned function = (word >> 12) & 7, variant = word >> 25;
  auto take = [&](Op op, SlotKind kind) { out.op = op, out.kind = kind; };
  switch (function) {
  case 0:
    take(Op::MulByte, SlotKind::Multiply);
    out.imm = static_cast<int32_t>(variant);
    break;
  case 1: {
    constexpr Op ops[] = {Op::Acquire, Op::TryAcquire, Op::Release};
    if (variant < 3)
      take(ops[variant], SlotKind::Synchronisation);
    break;
  }
  case 2: {
    constexpr Op ops[] = {Op::Stop, Op::Resume, Op::Halt, Op::Fault};
    if (variant < 4)
      take(ops[variant], SlotKind::Synchronisation);
    break;
  }
  case 3: {
    constexpr Op ops[] = {Op::CounterConfig, Op::CounterGet, Op::ClockHz};
    if (variant < 3)
      take(ops[variant], SlotKind::Other);
    break;
  }
  case 4:
    take(Op::Print, SlotKind::Other);
    break;
  case 5:
  case 6:
    take(function == 5 ? Op::DmaLoad : Op::DmaStore, SlotKind::Dma);
    out.imm = static_cast<int32_t>(word >> 27);
    // A length that is not constant is shifted, decremented and merged into the address first.
    out.slots = ((word >> 25) & 3) ? 4 : 1;
    break;
  default:
    break;
  }
}

void decodeInteger(uint32_t word, Instruction &out) {
  unsigned function = (word >> 12) & 7, upper = word >> 25;
  bool isImmediate = (word & 0x7f) == 0x13;
  if (isImmediate) {
    constexpr Op ops[] = {Op::Addi, Op::Slli, Op::Slti, Op::Sltiu, Op::Xori, Op::Srli, Op::Ori, Op::Andi};
    out.op = ops[function];
    out.imm = signExtend(word >> 20, 12);
    if (function == 1 || function == 5) {
      if (function == 5 && (upper & 0x20))
        out.op = Op::Srai;
      out.imm &= 31;
    }
    if (out.op == Op::Addi && out.rd == 2 && out.rs1 == 2)
      out.op = Op::AddSp;
    return;
  }
  if (upper == 1) {
    constexpr Op ops[] = {Op::Mul, Op::Mulh, Op::Mulhsu, Op::Mulhu, Op::Div, Op::Divu, Op::Rem, Op::Remu};
    out.op = ops[function];
    out.kind = function < 4 ? SlotKind::Multiply : SlotKind::Divide;
    return;
  }
  constexpr Op ops[] = {Op::Add, Op::Sll, Op::Slt, Op::Sltu, Op::Xor, Op::Srl, Op::Or, Op::And};
  out.op = ops[function];
  if (upper & 0x20)
    out.op = function == 0 ? Op::Sub : function == 5 ? Op::Sra : Op::Illegal;
}

Instruction decode(uint32_t word, uint32_t index) {
  Instruction out;
  unsigned rd = (word >> 7) & 31, function = (word >> 12) & 7;
  out.rd = rd == 0 ? DiscardRegister : static_cast<uint8_t>(rd);
  out.rs1 = (word >> 15) & 31;
  out.rs2 = (word >> 20) & 31;
  auto target = [&](int32_t offset) { return static_cast<int32_t>(index) + offset / 4; };
  switch (word & 0x7f) {
  case 0x37:
    out.op = Op::Li;
    out.imm = static_cast<int32_t>(word & 0xfffff000);
    break;
  case 0x17:
    out.op = Op::Li;
    out.imm = static_cast<int32_t>(TextBase + 4 * index + (word & 0xfffff000));
    break;
  case 0x6f:
    out.op = Op::Jal, out.kind = SlotKind::Control;
    out.imm = target(jumpOffset(word));
    break;
  case 0x67:
    out.op = Op::Jalr, out.kind = SlotKind::Control;
    out.imm = signExtend(word >> 20, 12);
    break;
  case 0x63: {
    constexpr Op ops[] = {Op::Beq, Op::Bne, Op::Illegal, Op::Illegal, Op::Blt, Op::Bge, Op::Bltu, Op::Bgeu};
    out.op = ops[function], out.kind = SlotKind::Control;
    out.imm = target(branchOffset(word));
    break;
  }
  case 0x03: {
    constexpr Op ops[] = {Op::Lb, Op::Lh, Op::Lw, Op::Illegal, Op::Lbu, Op::Lhu, Op::Illegal, Op::Illegal};
    out.op = ops[function], out.kind = SlotKind::Memory;
    out.imm = signExtend(word >> 20, 12);
    break;
  }
  case 0x23: {
    constexpr Op ops[] = {Op::Sb, Op::Sh, Op::Sw, Op::Illegal, Op::Illegal, Op::Illegal, Op::Illegal, Op::Illegal};
    out.op = ops[function], out.kind = SlotKind::Memory;
    out.imm = storeOffset(word);
    break;
  }
  case 0x13:
  case 0x33:
    decodeInteger(word, out);
    break;
  case 0x0b:
    decodeCustom(word, out);
    break;
  case 0x0f:
    out.op = Op::Nop;
    break;
  default:
    break;
  }
  return out;
}

// add x0, x0, x5 (ntl.all): dpu-upmem-dpurte-clang puts it before accesses through pointers to MRAM.
constexpr uint32_t MramHint = 0x00500033;

void markMram(Instruction &hint, Instruction &access) {
  if (access.op < Op::Lb || access.op > Op::Sw)
    return;
  hint.op = Op::Nop;
  hint.slots = 0;
  constexpr int distance = static_cast<int>(Op::MramLb) - static_cast<int>(Op::Lb);
  access.op = static_cast<Op>(static_cast<int>(access.op) + distance);
  access.kind = SlotKind::Dma;
  // The compiler turns it into a transfer of the double word around it: address, transfer, access in WRAM.
  access.slots = 4;
}

} // namespace

std::vector<Instruction> decodeText(std::span<const uint32_t> words) {
  std::vector<Instruction> code;
  code.reserve(words.size());
  for (uint32_t index = 0; index < words.size(); ++index)
    code.push_back(decode(words[index], index));
  for (uint32_t index = 0; index + 1 < words.size(); ++index)
    if (words[index] == MramHint)
      markMram(code[index], code[index + 1]);
  return code;
}

} // namespace nearbank::dpu
