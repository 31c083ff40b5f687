// SPDX-License-Identifier: Apache-2.0
// One decoded instruction. Integer registers are 0-31, floating-point registers 32-63 of one register file.
#pragma once

#include "sim/isa/Opcode.h"

#include <cstdint>
#include <string>

namespace nearbank::sim {

/// First floating-point register of the unified register file.
inline constexpr uint8_t firstFloatRegister = 32;
/// Register that takes results nobody reads: those written to x0.
inline constexpr uint8_t discardRegister = 64;
inline constexpr size_t numRegisters = 65;
/// First vector register in the numbering of Instruction; for dependences only, vectors lie in VectorState.
inline constexpr uint8_t firstVectorRegister = 65;
/// Registers that timing tells apart.
inline constexpr size_t numTimedRegisters = firstVectorRegister + 32;

/// Rounding modes as encoded in instructions and in frm.
enum class Rounding : uint8_t { NearestEven = 0, TowardZero = 1, Down = 2, Up = 3, NearestAway = 4, Dynamic = 7 };

struct Instruction {
  Opcode opcode = Opcode::Illegal;
  uint8_t rd = discardRegister; ///< discardRegister when there is no result.
  uint8_t rs1 = 0;              ///< x0 when absent.
  uint8_t rs2 = 0;
  uint8_t rs3 = 0;
  Rounding rounding = Rounding::Dynamic; ///< Floating-point instructions that round.
  uint8_t length = 4;                    ///< Bytes.
  int32_t imm = 0;                       ///< Immediate, sign-extended; CSR number of CSR instructions.
  uint32_t word = 0;                     ///< Encoding; the low half only of a compressed instruction.
};

/// Decodes one instruction of RV64IMAFDC_Zicsr_Zifencei_Zfhmin_Zfbfmin, and of V (sim/isa/Vector.h).
/// @param word the 32 bits at the program counter; the upper half is ignored when the instruction is compressed
/// @return opcode Illegal when the encoding is none of the set
Instruction decode(uint32_t word);

/// Decodes the 16-bit encodings; `decode` calls it.
Instruction decodeCompressed(uint16_t word);

/// Assembler-like text and encoding: "ld a0, 8(sp) [0x00813503]".
std::string describe(const Instruction &instruction);

} // namespace nearbank::sim
