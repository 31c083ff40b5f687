// SPDX-License-Identifier: Apache-2.0
// A decoded instruction of a DPU program: RV32IM and the few instructions that a DPU has and RV32IM has not.
#pragma once

#include <cstdint>

namespace nearbank::dpu {

enum class Op : uint8_t {
  // clang-format off
  Li, Jal, Jalr, Beq, Bne, Blt, Bge, Bltu, Bgeu,
  Lb, Lh, Lw, Lbu, Lhu, Sb, Sh, Sw,
  MramLb, MramLh, MramLw, MramLbu, MramLhu, MramSb, MramSh, MramSw, // In the order of those before.
  Addi, AddSp, Slti, Sltiu, Xori, Ori, Andi, Slli, Srli, Srai,
  Add, Sub, Sll, Slt, Sltu, Xor, Srl, Sra, Or, And,
  Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu,
  MulByte, Acquire, TryAcquire, Release, Stop, Resume, Halt, Fault,
  CounterConfig, CounterGet, ClockHz, Print, DmaLoad, DmaStore, Nop, Illegal
  // clang-format on
};

/// What issue slots are spent on.
enum class SlotKind : uint8_t { Arithmetic, Multiply, Divide, Float, Memory, Control, Dma, Synchronisation, Other };
inline constexpr unsigned NumSlotKinds = 9;
/// Names of the kinds in reports.
inline constexpr const char *SlotKindNames[NumSlotKinds] = {
    "arithmetic", "multiply", "divide", "float", "memory", "control", "dma", "synchronisation", "other"};

/// Register that takes what is written to x0.
inline constexpr uint8_t DiscardRegister = 32;

struct Instruction {
  Op op = Op::Illegal;
  uint8_t rd = DiscardRegister; ///< DiscardRegister instead of x0.
  uint8_t rs1 = 0, rs2 = 0;
  int32_t imm = 0;   ///< Immediate; for jumps and branches the index of the target; for DMA the third register.
  uint8_t slots = 1; ///< Issue slots that the DPU spends; a multiply adds its steps.
  SlotKind kind = SlotKind::Arithmetic;
  uint16_t routineSlots = 0; ///< Not 0 at the entry of a library routine: slots of the whole call.
};

} // namespace nearbank::dpu
