// SPDX-License-Identifier: Apache-2.0
// The vector extension (RVV 1.0) of the simulated cores: state and semantics, without memory accesses and timing.
//
// Implemented is what LLVM 22 emits for -march=rv64gcv_zfhmin_zfbfmin_zvfhmin_zvfbfmin with a fixed register length of
// 128, 256 or 512 bits. Not there: fixed-point arithmetic (saturating and averaging adds, clips, vssrl, vsmul),
// fault-only-first loads, vfrec7 and vfrsqrt7. Half precision and bfloat16 are in conversions only. Masked-off and tail
// elements are undisturbed, which the agnostic settings allow.
#pragma once

#include "sim/isa/Instruction.h"

#include <cstdint>
#include <cstring>

namespace nearbank::sim {

inline constexpr unsigned maxVectorBytes = 64;

/// What vsetvl has set.
struct VectorType {
  unsigned registerBytes = 0; ///< VLENB; 0 when there is no vector unit.
  uint64_t vl = 0;
  uint64_t vtype = uint64_t{1} << 63; ///< With the bit vill, before the first vsetvl.

  bool isSet() const { return (vtype >> 63) == 0; }
  unsigned sewLog2() const { return static_cast<unsigned>(vtype >> 3) & 7; } ///< Of bytes: 0 to 3.
  int lmulLog2() const {
    int lmul = static_cast<int>(vtype & 7);
    return lmul < 4 ? lmul : lmul - 8;
  }
  /// Elements of 1 << log2Bytes bytes that a group of 1 << lmul registers holds.
  uint64_t maxElements(unsigned log2Bytes, int lmul) const {
    uint64_t bytes = lmul >= 0 ? uint64_t{registerBytes} << lmul : uint64_t{registerBytes} >> -lmul;
    return bytes >> log2Bytes;
  }
  /// vl and vtype in one word; 0 before the first vsetvl, or with vill.
  uint32_t packed() const {
    return isSet() ? uint32_t{1} << 31 | static_cast<uint32_t>(vl) << 8 | static_cast<uint32_t>(vtype & 0xff) : 0;
  }
  static VectorType unpack(uint32_t packed, unsigned registerBytes) {
    VectorType type{registerBytes};
    if (packed != 0)
      type.vl = packed >> 8 & 0x7fffff, type.vtype = packed & 0xff;
    return type;
  }
  /// vsetvl: sets the type and the length for `avl` elements; returns the new length. An unsupported type sets vill.
  uint64_t set(uint64_t newType, uint64_t avl);
};

/// Registers, and their type.
struct VectorState : VectorType {
  alignas(64) uint8_t registers[32 * maxVectorBytes] = {}; ///< Register v begins at v * registerBytes.

  uint8_t *at(unsigned number) { return registers + size_t{number} * registerBytes; }
  bool maskBit(uint64_t i) const { return (registers[i / 8] >> (i % 8) & 1) != 0; }

  void reset(unsigned bytes) {
    std::memset(registers, 0, sizeof registers);
    registerBytes = bytes;
    vl = 0;
    vtype = uint64_t{1} << 63;
  }
};

/// Decodes OP-V and the vector encodings of LOAD-FP and STORE-FP; `decode` calls it. Instruction::imm is the word.
Instruction decodeVector(uint32_t word);

/// What an instruction moves under a type and length, for timing.
struct VectorWork {
  int64_t elements = 0;
  int64_t bytes = 0;          ///< Of its widest register group.
  bool isElementwise = false; ///< A load or store that goes element by element: strided, indexed, or of segments.
  bool isOrdered = false;     ///< A reduction that adds one element after the other.
  /// Registers of its groups; at least 1.
  uint8_t writes = 1, readsFirst = 1, readsSecond = 1, readsThird = 1;
};
VectorWork workOf(const Instruction &instruction, const VectorType &type);

/// Executes vsetvli, vsetivli or vsetvl. @return the new length
uint64_t setVector(VectorState &state, uint32_t word, uint64_t rs1, uint64_t rs2);

/// A load or store, taken apart.
struct VectorAccess {
  enum class Mode : uint8_t { Unit, Strided, Indexed };
  Mode mode = Mode::Unit;
  bool isStore = false, isMasked = false, isLegal = true;
  uint8_t data = 0;            ///< vd or vs3.
  uint8_t index = 0;           ///< vs2 of an indexed access.
  uint8_t fields = 1;          ///< Of a segment.
  uint8_t elementLog2 = 0;     ///< Bytes of an element.
  uint8_t indexLog2 = 0;       ///< Bytes of an index.
  uint64_t elements = 0;       ///< Or segments.
  unsigned registersApart = 1; ///< Registers from one field's group to the next.

  /// Offset of a segment from the base address.
  uint64_t offsetOf(const VectorState &state, uint64_t element, uint64_t stride) const;
};
VectorAccess takeApart(const VectorState &state, uint32_t word);

/// Executes an instruction that accesses no memory.
/// @param scalar value of the integer or floating-point register that it reads, if any
/// @param scalarResult set when it writes one
/// @param roundingMode frm; the host's rounding mode is the same
/// @return false when the instruction is illegal in this state
bool executeVector(VectorState &state, uint32_t word, uint64_t scalar, uint64_t &scalarResult, uint32_t roundingMode,
                   uint32_t &flags);

namespace vectorBaseline {
bool execute(VectorState &state, uint32_t word, uint64_t scalar, uint64_t &scalarResult, uint32_t roundingMode,
             uint32_t &flags);
}
namespace vectorFma {
bool execute(VectorState &state, uint32_t word, uint64_t scalar, uint64_t &scalarResult, uint32_t roundingMode,
             uint32_t &flags);
}

} // namespace nearbank::sim
