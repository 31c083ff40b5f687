// SPDX-License-Identifier: Apache-2.0
// Encodes instructions for tests and benches: enough of an assembler to write loops by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nearbank::sim::encode {

// Register numbers of the calling convention.
inline constexpr uint32_t zero = 0, ra = 1, sp = 2, t0 = 5, t1 = 6, t2 = 7, s0 = 8, a0 = 10, a1 = 11, a2 = 12, a3 = 13,
                          a4 = 14, a5 = 15, a6 = 16, a7 = 17;
// Floating-point registers by number.
inline constexpr uint32_t f0 = 0, f1 = 1, f2 = 2, f3 = 3, f4 = 4, f5 = 5, f6 = 6, f7 = 7;
inline constexpr uint32_t dynamicRounding = 7;

constexpr uint32_t rType(uint32_t opcode, uint32_t funct3, uint32_t funct7, uint32_t rd, uint32_t rs1, uint32_t rs2) {
  return opcode | rd << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | funct7 << 25;
}
constexpr uint32_t iType(uint32_t opcode, uint32_t funct3, uint32_t rd, uint32_t rs1, int32_t imm) {
  return opcode | rd << 7 | funct3 << 12 | rs1 << 15 | static_cast<uint32_t>(imm) << 20;
}
constexpr uint32_t sType(uint32_t opcode, uint32_t funct3, uint32_t rs2, int32_t imm, uint32_t rs1) {
  auto u = static_cast<uint32_t>(imm);
  return opcode | (u & 31) << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | (u >> 5 & 127) << 25;
}
constexpr uint32_t bType(uint32_t funct3, uint32_t rs1, uint32_t rs2, int32_t offset) {
  auto u = static_cast<uint32_t>(offset);
  return 0x63 | (u >> 11 & 1) << 7 | (u >> 1 & 15) << 8 | funct3 << 12 | rs1 << 15 | rs2 << 20 | (u >> 5 & 63) << 25 |
         (u >> 12 & 1) << 31;
}

constexpr uint32_t addi(uint32_t rd, uint32_t rs1, int32_t imm) { return iType(0x13, 0, rd, rs1, imm); }
constexpr uint32_t slli(uint32_t rd, uint32_t rs1, int32_t shift) { return iType(0x13, 1, rd, rs1, shift); }
constexpr uint32_t lui(uint32_t rd, uint32_t upper) { return 0x37 | rd << 7 | upper << 12; }
constexpr uint32_t auipc(uint32_t rd, uint32_t upper) { return 0x17 | rd << 7 | upper << 12; }
constexpr uint32_t add(uint32_t rd, uint32_t rs1, uint32_t rs2) { return rType(0x33, 0, 0, rd, rs1, rs2); }
constexpr uint32_t sub(uint32_t rd, uint32_t rs1, uint32_t rs2) { return rType(0x33, 0, 0x20, rd, rs1, rs2); }
constexpr uint32_t mul(uint32_t rd, uint32_t rs1, uint32_t rs2) { return rType(0x33, 0, 1, rd, rs1, rs2); }
constexpr uint32_t div(uint32_t rd, uint32_t rs1, uint32_t rs2) { return rType(0x33, 4, 1, rd, rs1, rs2); }
constexpr uint32_t lw(uint32_t rd, int32_t imm, uint32_t rs1) { return iType(0x03, 2, rd, rs1, imm); }
constexpr uint32_t ld(uint32_t rd, int32_t imm, uint32_t rs1) { return iType(0x03, 3, rd, rs1, imm); }
constexpr uint32_t sw(uint32_t rs2, int32_t imm, uint32_t rs1) { return sType(0x23, 2, rs2, imm, rs1); }
constexpr uint32_t sd(uint32_t rs2, int32_t imm, uint32_t rs1) { return sType(0x23, 3, rs2, imm, rs1); }
constexpr uint32_t flw(uint32_t rd, int32_t imm, uint32_t rs1) { return iType(0x07, 2, rd, rs1, imm); }
constexpr uint32_t fld(uint32_t rd, int32_t imm, uint32_t rs1) { return iType(0x07, 3, rd, rs1, imm); }
constexpr uint32_t fsw(uint32_t rs2, int32_t imm, uint32_t rs1) { return sType(0x27, 2, rs2, imm, rs1); }
constexpr uint32_t fsd(uint32_t rs2, int32_t imm, uint32_t rs1) { return sType(0x27, 3, rs2, imm, rs1); }
constexpr uint32_t beq(uint32_t rs1, uint32_t rs2, int32_t offset) { return bType(0, rs1, rs2, offset); }
constexpr uint32_t bne(uint32_t rs1, uint32_t rs2, int32_t offset) { return bType(1, rs1, rs2, offset); }
constexpr uint32_t blt(uint32_t rs1, uint32_t rs2, int32_t offset) { return bType(4, rs1, rs2, offset); }
constexpr uint32_t jal(uint32_t rd, int32_t offset) {
  auto u = static_cast<uint32_t>(offset);
  return 0x6f | rd << 7 | (u & 0xff000) | (u >> 11 & 1) << 20 | (u >> 1 & 1023) << 21 | (u >> 20 & 1) << 31;
}
constexpr uint32_t jalr(uint32_t rd, uint32_t rs1, int32_t imm) { return iType(0x67, 0, rd, rs1, imm); }
constexpr uint32_t ret() { return jalr(zero, ra, 0); }
constexpr uint32_t ecall() { return 0x73; }
constexpr uint32_t csrrw(uint32_t rd, int32_t csr, uint32_t rs1) { return iType(0x73, 1, rd, rs1, csr); }
constexpr uint32_t csrrs(uint32_t rd, int32_t csr, uint32_t rs1) { return iType(0x73, 2, rd, rs1, csr); }
constexpr uint32_t csrrwi(uint32_t rd, int32_t csr, uint32_t imm) { return iType(0x73, 5, rd, imm, csr); }
constexpr uint32_t amo(uint32_t funct5, bool isDouble, uint32_t rd, uint32_t rs1, uint32_t rs2) {
  return rType(0x2f, isDouble ? 3 : 2, funct5 << 2, rd, rs1, rs2);
}
/// OP-FP with format 0 single, 1 double, 2 half.
constexpr uint32_t fp(uint32_t funct5, uint32_t format, uint32_t funct3, uint32_t rd, uint32_t rs1, uint32_t rs2) {
  return rType(0x53, funct3, funct5 << 2 | format, rd, rs1, rs2);
}
constexpr uint32_t faddS(uint32_t rd, uint32_t rs1, uint32_t rs2) { return fp(0, 0, dynamicRounding, rd, rs1, rs2); }
constexpr uint32_t fmulS(uint32_t rd, uint32_t rs1, uint32_t rs2) { return fp(2, 0, dynamicRounding, rd, rs1, rs2); }
constexpr uint32_t fdivS(uint32_t rd, uint32_t rs1, uint32_t rs2) { return fp(3, 0, dynamicRounding, rd, rs1, rs2); }
constexpr uint32_t fmaxS(uint32_t rd, uint32_t rs1, uint32_t rs2) { return fp(5, 0, 1, rd, rs1, rs2); }
/// which: 0 fmadd, 1 fmsub, 2 fnmsub, 3 fnmadd.
constexpr uint32_t fma(uint32_t which, uint32_t format, uint32_t rd, uint32_t rs1, uint32_t rs2, uint32_t rs3,
                       uint32_t rounding = dynamicRounding) {
  return rType(0x43 | which << 2, rounding, rs3 << 2 | format, rd, rs1, rs2);
}

/// output[i] = input[i] + 1 for i in [a1, a2).
inline std::vector<uint32_t> copyKernel() {
  return {ld(a4, 0, a0),
          ld(a5, 8, a0),
          slli(t0, a1, 3),
          add(a4, a4, t0),
          add(a5, a5, t0),
          ld(t1, 0, a4),
          addi(t1, t1, 1),
          sd(t1, 0, a5),
          addi(a4, a4, 8),
          addi(a5, a5, 8),
          addi(a1, a1, 1),
          blt(a1, a2, -24),
          ret()};
}

/// Wraps code into a static executable: text at 0x10000, which is its entry.
inline std::vector<std::byte> elfOf(const std::vector<uint32_t> &code) {
  constexpr uint64_t textOffset = 0x1000, textAddress = 0x10000;
  std::vector<std::byte> file(textOffset + code.size() * 4);
  auto put = [&](size_t offset, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      file[offset + i] = static_cast<std::byte>(value >> (8 * i));
  };
  put(0, 0x464c457f, 4), put(4, 2, 1), put(5, 1, 1), put(6, 1, 1);
  put(16, 2, 2), put(18, 243, 2), put(20, 1, 4), put(24, textAddress, 8), put(32, 64, 8);
  put(52, 64, 2), put(54, 56, 2), put(56, 1, 2);
  put(64, 1, 4), put(68, 5, 4), put(72, textOffset, 8), put(80, textAddress, 8), put(88, textAddress, 8);
  put(96, code.size() * 4, 8), put(104, code.size() * 4, 8), put(112, 0x1000, 8);
  for (size_t i = 0; i < code.size(); ++i)
    put(textOffset + 4 * i, code[i], 4);
  return file;
}

} // namespace nearbank::sim::encode
