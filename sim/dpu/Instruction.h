// SPDX-License-Identifier: Apache-2.0
// A decoded instruction of a DPU program: RV32IM and the few instructions that a DPU has and RV32IM has not.
#pragma once

#include <cstdint>

namespace nearbank::dpu {

enum class Op : uint8_t {
  // clang-format off
  Li, Jal, Jalr, Beq, Bne, Blt, Bge, Bltu, Bgeu,
  Lb, Lh, Lw, Lbu, Lhu, Sb, Sh, Sw,
  Addi, AddSp, Slti, Sltiu, Xori, Ori, Andi, Slli, Srli, Srai,
  Add, Sub, Sll, Slt, Sltu, Xor, Srl, Sra, Or, And,
  Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu,
  Nop, MulByte,
  // From here on only engines can execute them: they act on other tasklets, on time or on MRAM.
  Acquire, TryAcquire, Release, Stop, Resume, Halt, Fault, CounterConfig, CounterGet, ClockHz, Print, DmaLoad, DmaStore,
  MramLb, MramLh, MramLw, MramLbu, MramLhu, MramSb, MramSh, MramSw, // In the order of Lb to Sw.
  Illegal
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
/// gp: holds the number of the tasklet; tp points at its thread-local variables.
inline constexpr uint8_t IdRegister = 3;

struct Instruction {
  Op op = Op::Illegal;
  uint8_t rd = DiscardRegister; ///< DiscardRegister instead of x0.
  uint8_t rs1 = 0, rs2 = 0;
  int32_t imm = 0;   ///< Immediate; for jumps and branches the index of the target; for DMA the third register.
  uint8_t slots = 1; ///< Issue slots that the DPU spends; a multiply adds its steps.
  SlotKind kind = SlotKind::Arithmetic;
  uint16_t routineSlots = 0; ///< Not 0 at the entry of a library routine: slots of the whole call.
};

inline bool isBranch(Op op) { return op >= Op::Beq && op <= Op::Bgeu; }
inline bool isLoad(Op op) { return op >= Op::Lb && op <= Op::Lhu; }
inline bool isStore(Op op) { return op >= Op::Sb && op <= Op::Sw; }
inline bool isMramStore(Op op) { return op >= Op::MramSb && op <= Op::MramSw; }
inline bool isRegisterRegister(Op op) { return op >= Op::Add && op <= Op::Remu; }
inline bool isAlu(Op op) { return op >= Op::Addi && op <= Op::And; }
inline bool isForEngine(Op op) { return op >= Op::Acquire; }

/// Whether `reg` is one of the first two source registers.
inline bool reads(const Instruction &in, uint8_t reg) {
  if (reg == 0 || reg == DiscardRegister || in.op == Op::Li || in.op == Op::Jal)
    return false;
  bool second = isBranch(in.op) || isStore(in.op) || isRegisterRegister(in.op) ||
                (in.op >= Op::MulByte && in.op < Op::MramLb) || isMramStore(in.op);
  return in.rs1 == reg || (second && in.rs2 == reg);
}
/// The register that is written; DiscardRegister when none is.
inline uint8_t written(const Instruction &in) {
  return isBranch(in.op) || isStore(in.op) || isMramStore(in.op) ? DiscardRegister : in.rd;
}

} // namespace nearbank::dpu
