// SPDX-License-Identifier: Apache-2.0
// The RISC-V instructions that the simulated cores execute, with their operand format and execution unit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearbank::sim {

/// Operand formats; F marks floating-point registers, X integer ones, in the order rd, rs1, rs2, rs3.
enum class Format : uint8_t {
  None,
  U,
  J,
  Jalr,
  Branch,
  Load,
  FLoad,
  Store,
  FStore,
  I,
  R,
  Amo,
  Csr,
  CsrImm,
  FFF,
  FF,
  FFFF,
  XFF,
  XF,
  FX,
  Vector ///< Whatever the word says; imm holds it.
};

/// Units that timing and statistics tell apart.
enum class Unit : uint8_t {
  Alu,
  Mul,
  Div,
  Branch,
  Load,
  Store,
  FAdd,
  FMul,
  FFma,
  FDiv,
  FSqrt,
  FOther,
  Other,
  VSet,
  VLoad,
  VStore,
  VInt,
  VIntMul,
  VIntDiv,
  VFAdd,
  VFMul,
  VFFma,
  VFDiv,
  VFSqrt,
  VMove,
  VPermute,
  VReduce
};
inline constexpr size_t numUnits = static_cast<size_t>(Unit::VReduce) + 1;

// X(enumerator, mnemonic, format, unit)
#define NB_SIM_INTEGER_OPCODES(X)                                                                                      \
  X(Lui, "lui", U, Alu)                                                                                                \
  X(Auipc, "auipc", U, Alu)                                                                                            \
  X(Jal, "jal", J, Branch)                                                                                             \
  X(Jalr, "jalr", Jalr, Branch)                                                                                        \
  X(Beq, "beq", Branch, Branch)                                                                                        \
  X(Bne, "bne", Branch, Branch)                                                                                        \
  X(Blt, "blt", Branch, Branch)                                                                                        \
  X(Bge, "bge", Branch, Branch)                                                                                        \
  X(Bltu, "bltu", Branch, Branch)                                                                                      \
  X(Bgeu, "bgeu", Branch, Branch)                                                                                      \
  X(Lb, "lb", Load, Load)                                                                                              \
  X(Lh, "lh", Load, Load)                                                                                              \
  X(Lw, "lw", Load, Load)                                                                                              \
  X(Ld, "ld", Load, Load)                                                                                              \
  X(Lbu, "lbu", Load, Load)                                                                                            \
  X(Lhu, "lhu", Load, Load)                                                                                            \
  X(Lwu, "lwu", Load, Load)                                                                                            \
  X(Sb, "sb", Store, Store)                                                                                            \
  X(Sh, "sh", Store, Store)                                                                                            \
  X(Sw, "sw", Store, Store)                                                                                            \
  X(Sd, "sd", Store, Store)                                                                                            \
  X(Addi, "addi", I, Alu)                                                                                              \
  X(Slti, "slti", I, Alu)                                                                                              \
  X(Sltiu, "sltiu", I, Alu)                                                                                            \
  X(Xori, "xori", I, Alu)                                                                                              \
  X(Ori, "ori", I, Alu)                                                                                                \
  X(Andi, "andi", I, Alu)                                                                                              \
  X(Slli, "slli", I, Alu)                                                                                              \
  X(Srli, "srli", I, Alu)                                                                                              \
  X(Srai, "srai", I, Alu)                                                                                              \
  X(Addiw, "addiw", I, Alu)                                                                                            \
  X(Slliw, "slliw", I, Alu)                                                                                            \
  X(Srliw, "srliw", I, Alu)                                                                                            \
  X(Sraiw, "sraiw", I, Alu)                                                                                            \
  X(Add, "add", R, Alu)                                                                                                \
  X(Sub, "sub", R, Alu)                                                                                                \
  X(Sll, "sll", R, Alu)                                                                                                \
  X(Slt, "slt", R, Alu)                                                                                                \
  X(Sltu, "sltu", R, Alu)                                                                                              \
  X(Xor, "xor", R, Alu)                                                                                                \
  X(Srl, "srl", R, Alu)                                                                                                \
  X(Sra, "sra", R, Alu)                                                                                                \
  X(Or, "or", R, Alu)                                                                                                  \
  X(And, "and", R, Alu)                                                                                                \
  X(Addw, "addw", R, Alu)                                                                                              \
  X(Subw, "subw", R, Alu)                                                                                              \
  X(Sllw, "sllw", R, Alu)                                                                                              \
  X(Srlw, "srlw", R, Alu)                                                                                              \
  X(Sraw, "sraw", R, Alu)                                                                                              \
  X(Mul, "mul", R, Mul)                                                                                                \
  X(Mulh, "mulh", R, Mul)                                                                                              \
  X(Mulhsu, "mulhsu", R, Mul)                                                                                          \
  X(Mulhu, "mulhu", R, Mul)                                                                                            \
  X(Mulw, "mulw", R, Mul)                                                                                              \
  X(Div, "div", R, Div)                                                                                                \
  X(Divu, "divu", R, Div)                                                                                              \
  X(Rem, "rem", R, Div)                                                                                                \
  X(Remu, "remu", R, Div)                                                                                              \
  X(Divw, "divw", R, Div)                                                                                              \
  X(Divuw, "divuw", R, Div)                                                                                            \
  X(Remw, "remw", R, Div)                                                                                              \
  X(Remuw, "remuw", R, Div)                                                                                            \
  X(Fence, "fence", None, Other)                                                                                       \
  X(Ecall, "ecall", None, Other)                                                                                       \
  X(Ebreak, "ebreak", None, Other)                                                                                     \
  X(Csrrw, "csrrw", Csr, Other)                                                                                        \
  X(Csrrs, "csrrs", Csr, Other)                                                                                        \
  X(Csrrc, "csrrc", Csr, Other)                                                                                        \
  X(Csrrwi, "csrrwi", CsrImm, Other)                                                                                   \
  X(Csrrsi, "csrrsi", CsrImm, Other)                                                                                   \
  X(Csrrci, "csrrci", CsrImm, Other)

#define NB_SIM_ATOMIC_OPCODES(X)                                                                                       \
  X(LrW, "lr.w", Amo, Load)                                                                                            \
  X(ScW, "sc.w", Amo, Store)                                                                                           \
  X(AmoSwapW, "amoswap.w", Amo, Load)                                                                                  \
  X(AmoAddW, "amoadd.w", Amo, Load)                                                                                    \
  X(AmoXorW, "amoxor.w", Amo, Load)                                                                                    \
  X(AmoAndW, "amoand.w", Amo, Load)                                                                                    \
  X(AmoOrW, "amoor.w", Amo, Load)                                                                                      \
  X(AmoMinW, "amomin.w", Amo, Load)                                                                                    \
  X(AmoMaxW, "amomax.w", Amo, Load)                                                                                    \
  X(AmoMinuW, "amominu.w", Amo, Load)                                                                                  \
  X(AmoMaxuW, "amomaxu.w", Amo, Load)                                                                                  \
  X(LrD, "lr.d", Amo, Load)                                                                                            \
  X(ScD, "sc.d", Amo, Store)                                                                                           \
  X(AmoSwapD, "amoswap.d", Amo, Load)                                                                                  \
  X(AmoAddD, "amoadd.d", Amo, Load)                                                                                    \
  X(AmoXorD, "amoxor.d", Amo, Load)                                                                                    \
  X(AmoAndD, "amoand.d", Amo, Load)                                                                                    \
  X(AmoOrD, "amoor.d", Amo, Load)                                                                                      \
  X(AmoMinD, "amomin.d", Amo, Load)                                                                                    \
  X(AmoMaxD, "amomax.d", Amo, Load)                                                                                    \
  X(AmoMinuD, "amominu.d", Amo, Load)                                                                                  \
  X(AmoMaxuD, "amomaxu.d", Amo, Load)

#define NB_SIM_FLOAT_OPCODES(X)                                                                                        \
  X(Flh, "flh", FLoad, Load)                                                                                           \
  X(Flw, "flw", FLoad, Load)                                                                                           \
  X(Fld, "fld", FLoad, Load)                                                                                           \
  X(Fsh, "fsh", FStore, Store)                                                                                         \
  X(Fsw, "fsw", FStore, Store)                                                                                         \
  X(Fsd, "fsd", FStore, Store)                                                                                         \
  X(FaddS, "fadd.s", FFF, FAdd)                                                                                        \
  X(FsubS, "fsub.s", FFF, FAdd)                                                                                        \
  X(FmulS, "fmul.s", FFF, FMul)                                                                                        \
  X(FdivS, "fdiv.s", FFF, FDiv)                                                                                        \
  X(FsqrtS, "fsqrt.s", FF, FSqrt)                                                                                      \
  X(FmaddS, "fmadd.s", FFFF, FFma)                                                                                     \
  X(FmsubS, "fmsub.s", FFFF, FFma)                                                                                     \
  X(FnmsubS, "fnmsub.s", FFFF, FFma)                                                                                   \
  X(FnmaddS, "fnmadd.s", FFFF, FFma)                                                                                   \
  X(FsgnjS, "fsgnj.s", FFF, FOther)                                                                                    \
  X(FsgnjnS, "fsgnjn.s", FFF, FOther)                                                                                  \
  X(FsgnjxS, "fsgnjx.s", FFF, FOther)                                                                                  \
  X(FminS, "fmin.s", FFF, FOther)                                                                                      \
  X(FmaxS, "fmax.s", FFF, FOther)                                                                                      \
  X(FeqS, "feq.s", XFF, FOther)                                                                                        \
  X(FltS, "flt.s", XFF, FOther)                                                                                        \
  X(FleS, "fle.s", XFF, FOther)                                                                                        \
  X(FclassS, "fclass.s", XF, FOther)                                                                                   \
  X(FcvtWS, "fcvt.w.s", XF, FOther)                                                                                    \
  X(FcvtWuS, "fcvt.wu.s", XF, FOther)                                                                                  \
  X(FcvtLS, "fcvt.l.s", XF, FOther)                                                                                    \
  X(FcvtLuS, "fcvt.lu.s", XF, FOther)                                                                                  \
  X(FcvtSW, "fcvt.s.w", FX, FOther)                                                                                    \
  X(FcvtSWu, "fcvt.s.wu", FX, FOther)                                                                                  \
  X(FcvtSL, "fcvt.s.l", FX, FOther)                                                                                    \
  X(FcvtSLu, "fcvt.s.lu", FX, FOther)                                                                                  \
  X(FmvXW, "fmv.x.w", XF, FOther)                                                                                      \
  X(FmvWX, "fmv.w.x", FX, FOther)                                                                                      \
  X(FaddD, "fadd.d", FFF, FAdd)                                                                                        \
  X(FsubD, "fsub.d", FFF, FAdd)                                                                                        \
  X(FmulD, "fmul.d", FFF, FMul)                                                                                        \
  X(FdivD, "fdiv.d", FFF, FDiv)                                                                                        \
  X(FsqrtD, "fsqrt.d", FF, FSqrt)                                                                                      \
  X(FmaddD, "fmadd.d", FFFF, FFma)                                                                                     \
  X(FmsubD, "fmsub.d", FFFF, FFma)                                                                                     \
  X(FnmsubD, "fnmsub.d", FFFF, FFma)                                                                                   \
  X(FnmaddD, "fnmadd.d", FFFF, FFma)                                                                                   \
  X(FsgnjD, "fsgnj.d", FFF, FOther)                                                                                    \
  X(FsgnjnD, "fsgnjn.d", FFF, FOther)                                                                                  \
  X(FsgnjxD, "fsgnjx.d", FFF, FOther)                                                                                  \
  X(FminD, "fmin.d", FFF, FOther)                                                                                      \
  X(FmaxD, "fmax.d", FFF, FOther)                                                                                      \
  X(FeqD, "feq.d", XFF, FOther)                                                                                        \
  X(FltD, "flt.d", XFF, FOther)                                                                                        \
  X(FleD, "fle.d", XFF, FOther)                                                                                        \
  X(FclassD, "fclass.d", XF, FOther)                                                                                   \
  X(FcvtWD, "fcvt.w.d", XF, FOther)                                                                                    \
  X(FcvtWuD, "fcvt.wu.d", XF, FOther)                                                                                  \
  X(FcvtLD, "fcvt.l.d", XF, FOther)                                                                                    \
  X(FcvtLuD, "fcvt.lu.d", XF, FOther)                                                                                  \
  X(FcvtDW, "fcvt.d.w", FX, FOther)                                                                                    \
  X(FcvtDWu, "fcvt.d.wu", FX, FOther)                                                                                  \
  X(FcvtDL, "fcvt.d.l", FX, FOther)                                                                                    \
  X(FcvtDLu, "fcvt.d.lu", FX, FOther)                                                                                  \
  X(FcvtSD, "fcvt.s.d", FF, FOther)                                                                                    \
  X(FcvtDS, "fcvt.d.s", FF, FOther)                                                                                    \
  X(FmvXD, "fmv.x.d", XF, FOther)                                                                                      \
  X(FmvDX, "fmv.d.x", FX, FOther)                                                                                      \
  X(FmvXH, "fmv.x.h", XF, FOther)                                                                                      \
  X(FmvHX, "fmv.h.x", FX, FOther)                                                                                      \
  X(FcvtSH, "fcvt.s.h", FF, FOther)                                                                                    \
  X(FcvtHS, "fcvt.h.s", FF, FOther)                                                                                    \
  X(FcvtDH, "fcvt.d.h", FF, FOther)                                                                                    \
  X(FcvtHD, "fcvt.h.d", FF, FOther)                                                                                    \
  X(FcvtSBf16, "fcvt.s.bf16", FF, FOther)                                                                              \
  X(FcvtBf16S, "fcvt.bf16.s", FF, FOther)

// Of a vector instruction the opcode tells the unit only; sim/isa/Vector.h executes the word.
#define NB_SIM_VECTOR_OPCODES(X)                                                                                       \
  X(VSet, "vset", Vector, VSet)                                                                                        \
  X(VLoad, "vload", Vector, VLoad)                                                                                     \
  X(VStore, "vstore", Vector, VStore)                                                                                  \
  X(VInt, "vector integer", Vector, VInt)                                                                              \
  X(VIntMul, "vector multiply", Vector, VIntMul)                                                                       \
  X(VIntDiv, "vector divide", Vector, VIntDiv)                                                                         \
  X(VFAdd, "vector float add", Vector, VFAdd)                                                                          \
  X(VFMul, "vector float multiply", Vector, VFMul)                                                                     \
  X(VFFma, "vector float multiply-add", Vector, VFFma)                                                                 \
  X(VFDiv, "vector float divide", Vector, VFDiv)                                                                       \
  X(VFSqrt, "vector float square root", Vector, VFSqrt)                                                                \
  X(VMove, "vector move", Vector, VMove)                                                                               \
  X(VPermute, "vector permute", Vector, VPermute)                                                                      \
  X(VReduce, "vector reduce", Vector, VReduce)

#define NB_SIM_OPCODES(X)                                                                                              \
  NB_SIM_INTEGER_OPCODES(X)                                                                                            \
  NB_SIM_ATOMIC_OPCODES(X)                                                                                             \
  NB_SIM_FLOAT_OPCODES(X)                                                                                              \
  NB_SIM_VECTOR_OPCODES(X)

enum class Opcode : uint8_t {
#define NB_X(name, mnemonic, format, unit) name,
  NB_SIM_OPCODES(NB_X)
#undef NB_X
      Illegal
};
inline constexpr size_t numOpcodes = static_cast<size_t>(Opcode::Illegal) + 1;

/// Static properties of an opcode.
struct OpcodeInfo {
  const char *mnemonic;
  Format format;
  Unit unit;
};

inline constexpr OpcodeInfo opcodeTable[numOpcodes] = {
#define NB_X(name, mnemonic, format, unit) {mnemonic, Format::format, Unit::unit},
    NB_SIM_OPCODES(NB_X)
#undef NB_X
        {"illegal", Format::None, Unit::Other}};

inline const OpcodeInfo &infoOf(Opcode opcode) { return opcodeTable[static_cast<size_t>(opcode)]; }

} // namespace nearbank::sim
