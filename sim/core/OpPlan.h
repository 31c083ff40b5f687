// SPDX-License-Identifier: Apache-2.0
// Instructions as the window of an out-of-order core sees them, worked out once per block.
#pragma once

#include "sim/core/Translation.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace nearbank::sim {

/// What an instruction asks of the core.
enum class OpKind : uint8_t {
  Int,
  IntMul,
  IntDiv,
  Branch,
  Jump,
  Call,
  Return,
  IndirectJump,
  Load,
  FpLoad,
  VectorLoad,
  Store,
  FpStore,
  VectorStore,
  FpAdd,
  FpMul,
  FpDiv,
  FpMove
};

/// How a vector instruction breaks up; HM-10 of docs/model.md.
enum class VectorPart : uint8_t {
  None,      ///< No vector instruction.
  Set,       ///< vset*: an integer instruction that changes type and length.
  Pieces,    ///< One operation per piece of the datapath's width; each waits for its own registers.
  Permute,   ///< The same, but every piece needs all sources.
  Reduce,    ///< Pieces, then folds of the last one.
  Divide,    ///< One operation that keeps the divider for all pieces.
  DivideInt, ///< One operation that keeps the divider for all elements.
  Memory     ///< What it touches says how many.
};

/// One instruction as the window sees it.
struct OpPlan {
  uint8_t rd = discardRegister, rs1 = 0, rs2 = 0, rs3 = 0;
  OpKind kind = OpKind::Int;
  VectorPart part = VectorPart::None;
  bool isWide = false;   ///< Its result has elements of twice the width, or its source has.
  bool isMask = false;   ///< Its result is a mask: one register.
  uint16_t latency = 1;  ///< From start to result; of loads without the cache's part.
  uint16_t interval = 1; ///< Until the unit takes the next one; beyond 1 for dividers.

  bool isLoad() const { return kind >= OpKind::Load && kind <= OpKind::VectorLoad; }
  bool isStore() const { return kind >= OpKind::Store && kind <= OpKind::VectorStore; }
  bool isBranch() const { return kind >= OpKind::Branch && kind <= OpKind::IndirectJump; }
};

/// Whether a jump through this register calls or returns (RISC-V ISA, return-address stack hints).
constexpr bool isLinkRegister(uint8_t number) { return number == 1 || number == 5; }

/// The plans of a program's blocks; made when first asked for. Shared by the cores of one machine.
class PlanTable {
public:
  explicit PlanTable(const MachineConfig &config) : config_(config) {}
  const std::vector<OpPlan> &planOf(const Block &block);

private:
  OpPlan planOf(const Instruction &instruction) const;
  void planVector(const Instruction &instruction, OpPlan &plan) const;

  const MachineConfig &config_;
  std::deque<std::vector<OpPlan>> plans_; ///< By block id. Cores hold on to plans while others are added.
};

} // namespace nearbank::sim
