// SPDX-License-Identifier: Apache-2.0
// Assembler-like text of a decoded instruction, for error messages.
#include "sim/isa/Instruction.h"

#include <fmt/format.h>

namespace nearbank::sim {
namespace {

const char *registerName(uint8_t r) {
  static const char *const names[numRegisters] = {
      "zero", "ra",  "sp",  "gp",  "tp",  "t0",  "t1",   "t2",   "s0",  "s1",  "a0",   "a1",   "a2",
      "a3",   "a4",  "a5",  "a6",  "a7",  "s2",  "s3",   "s4",   "s5",  "s6",  "s7",   "s8",   "s9",
      "s10",  "s11", "t3",  "t4",  "t5",  "t6",  "ft0",  "ft1",  "ft2", "ft3", "ft4",  "ft5",  "ft6",
      "ft7",  "fs0", "fs1", "fa0", "fa1", "fa2", "fa3",  "fa4",  "fa5", "fa6", "fa7",  "fs2",  "fs3",
      "fs4",  "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11", "zero"};
  return names[r];
}

std::string operands(const Instruction &i) {
  if (infoOf(i.opcode).format == Format::Vector)
    return "";
  const char *rd = registerName(i.rd), *rs1 = registerName(i.rs1), *rs2 = registerName(i.rs2),
             *rs3 = registerName(i.rs3);
  switch (infoOf(i.opcode).format) {
  case Format::None:
  case Format::Vector:
    return "";
  case Format::U:
    return fmt::format(" {}, {:#x}", rd, static_cast<uint32_t>(i.imm) >> 12);
  case Format::J:
    return fmt::format(" {}, {:+}", rd, i.imm);
  case Format::Jalr:
  case Format::Load:
  case Format::FLoad:
    return fmt::format(" {}, {}({})", rd, i.imm, rs1);
  case Format::Store:
  case Format::FStore:
    return fmt::format(" {}, {}({})", rs2, i.imm, rs1);
  case Format::Branch:
    return fmt::format(" {}, {}, {:+}", rs1, rs2, i.imm);
  case Format::I:
    return fmt::format(" {}, {}, {}", rd, rs1, i.imm);
  case Format::Amo:
    return fmt::format(" {}, {}, ({})", rd, rs2, rs1);
  case Format::Csr:
    return fmt::format(" {}, {:#x}, {}", rd, i.imm, rs1);
  case Format::CsrImm:
    return fmt::format(" {}, {:#x}, {}", rd, i.imm, i.rs2);
  case Format::R:
  case Format::FFF:
  case Format::XFF:
    return fmt::format(" {}, {}, {}", rd, rs1, rs2);
  case Format::FFFF:
    return fmt::format(" {}, {}, {}, {}", rd, rs1, rs2, rs3);
  case Format::FF:
  case Format::XF:
  case Format::FX:
    return fmt::format(" {}, {}", rd, rs1);
  }
  return "";
}

} // namespace

std::string describe(const Instruction &i) {
  const char *mnemonic = infoOf(i.opcode).mnemonic;
  return i.length == 2 ? fmt::format("{}{} [0x{:04x}]", mnemonic, operands(i), i.word)
                       : fmt::format("{}{} [0x{:08x}]", mnemonic, operands(i), i.word);
}

} // namespace nearbank::sim
