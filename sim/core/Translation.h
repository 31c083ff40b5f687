// SPDX-License-Identifier: Apache-2.0
// Program text turned into blocks of micro-ops, with the timing of each block memoised per pipeline state.
//
// A block starts at a jump target and ends after its first jump, branch or trap. Blocks are made when first reached. A
// TimedBlock is a block entered with a given pipeline state (or resumed in its middle after a miss); its edges lead to
// the timed blocks that follow, so that timing costs one addition per executed block. One Translation belongs to one
// simulating thread. Vector type and length are part of the pipeline state, so blocks end at vset* as well.
#pragma once

#include "sim/core/CoreTiming.h"
#include "sim/system/SimulatedMachine.h"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace nearbank::sim {

/// What the interpreter executes. `handler` is a label address of the interpreter's dispatch table.
struct MicroOp {
  const void *handler = nullptr;
  uint8_t rd = discardRegister, rs1 = 0, rs2 = 0, rs3 = 0;
  uint8_t index = 0;    ///< Position of the instruction in its block.
  uint8_t rounding = 7; ///< Rounding mode field of the instruction.
  int64_t imm = 0;      ///< Immediate; the result of Constant; the link address of Jal.
};

/// Micro-ops beyond the opcodes, numbered after them.
enum class PseudoOp : uint8_t { Constant, FallThrough, SetRounding, RestoreRounding, Count };
inline constexpr size_t numHandlers = numOpcodes + static_cast<size_t>(PseudoOp::Count);

struct TimedBlock;

struct Block {
  uint64_t pc = 0, endPc = 0;
  uint64_t takenPc = 0; ///< Target of the direct branch or jump that ends the block.
  uint32_t id = 0;      ///< Dense, in order of creation.
  std::vector<Instruction> instructions;
  std::vector<uint64_t> pcs; ///< Address of each instruction.
  std::vector<MicroOp> ops;
  std::vector<uint16_t> opOfInstruction; ///< First op of each instruction.
  std::array<uint16_t, numInstructionClasses> classCounts{};
  uint32_t memoryAccesses = 0;
  std::vector<TimedBlock *> entries; ///< Entered at its start, by pipeline state.
  /// Entered at instruction i with an empty pipeline, by vector type and linked by nextResumed; null until needed.
  std::vector<TimedBlock *> resumed;
};

struct BlockEdge {
  TimedBlock *next = nullptr; ///< Null until first taken.
  uint32_t cycles = 0;
  StateId state = 0;
};

struct TimedBlock {
  const MicroOp *ops = nullptr; ///< First op to execute.
  BlockEdge edges[2];           ///< 0 falls through, 1 taken.
  Block *block = nullptr;
  uint64_t executions = 0; ///< Counted when entered at the block's start.
  uint32_t blockId = 0;
  StateId state = 0;
  uint32_t vectorType = 0; ///< VectorType::packed() in it.
  TimedBlock *nextResumed = nullptr;
  std::vector<TimedBlock *> afterVset; ///< Where it went when it ended at a vset*, by what that set.
  std::vector<IssueTime> issueTimes;   ///< By instruction index; those before the first are meaningless.
};

/// Executable bytes of a program.
struct TextSegment {
  uint64_t guestBase = 0;
  std::span<const std::byte> bytes;
};

class Translation {
public:
  /// @param handlers label addresses of the interpreter, numHandlers of them
  Translation(std::vector<TextSegment> text, const LatencyTable &latency, const void *const *handlers);

  /// Block at `pc` entered with `state`; null when `pc` is odd or outside the text.
  TimedBlock *enter(uint64_t pc, StateId state);
  TimedBlock *enter(Block &block, StateId state);
  /// `block` resumed at instruction `index` (up to its size, meaning at its end) with an empty pipeline.
  /// @param vectorType VectorType::packed()
  TimedBlock *resume(Block &block, unsigned index, uint32_t vectorType);
  /// What follows `before`, which has set the vector type; null when there is no text.
  TimedBlock *enterAfterVset(TimedBlock &before, uint32_t vectorType);
  /// The empty pipeline with a vector type.
  StateId emptyState(uint32_t vectorType) {
    return vectorType == 0 ? 0 : states_.intern({{vectorTypeEntry, vectorType}});
  }

  /// Cycles until every result in flight in `state` is complete.
  uint32_t drainOf(StateId state) const;

  size_t numBlocks() const { return blocks_.size(); }
  /// Adds instruction counts, by class and of memory accesses, of everything executed since the last call.
  void collectCounts(NmcLaunchStats &stats);
  /// Bytes of all text segments.
  uint64_t textBytes() const;

private:
  const TextSegment *segmentOf(uint64_t pc) const;
  Block *translate(uint64_t pc, const TextSegment &segment);
  void lower(Block &block, const Instruction &instruction, uint64_t pc);
  TimedBlock *makeTimed(Block &block, unsigned start, StateId state);

  static constexpr unsigned maxInstructions = 128;

  std::vector<TextSegment> text_;
  std::vector<std::vector<Block *>> blockAt_; ///< By segment and halfword.
  LatencyTable latency_;
  const void *const *handlers_;
  StateTable states_;
  std::deque<Block> blocks_;
  std::deque<TimedBlock> timedBlocks_;
};

} // namespace nearbank::sim
