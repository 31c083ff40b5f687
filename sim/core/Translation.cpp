// SPDX-License-Identifier: Apache-2.0
// Builds blocks of micro-ops and their memoised timing.
#include "sim/core/Translation.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nearbank::sim {
namespace {

InstructionClass classOf(Unit unit) {
  switch (unit) {
  case Unit::Alu:
    return InstructionClass::IntAlu;
  case Unit::Mul:
  case Unit::Div:
    return InstructionClass::IntMulDiv;
  case Unit::Branch:
    return InstructionClass::Branch;
  case Unit::Load:
    return InstructionClass::Load;
  case Unit::Store:
    return InstructionClass::Store;
  case Unit::FAdd:
    return InstructionClass::FloatAdd;
  case Unit::FMul:
    return InstructionClass::FloatMul;
  case Unit::FFma:
    return InstructionClass::FloatFma;
  case Unit::FDiv:
  case Unit::FSqrt:
    return InstructionClass::FloatDiv;
  case Unit::FOther:
    return InstructionClass::FloatOther;
  case Unit::VInt:
    return InstructionClass::IntAlu;
  case Unit::VIntMul:
  case Unit::VIntDiv:
    return InstructionClass::IntMulDiv;
  case Unit::VLoad:
    return InstructionClass::Load;
  case Unit::VStore:
    return InstructionClass::Store;
  case Unit::VFAdd:
  case Unit::VReduce:
    return InstructionClass::FloatAdd;
  case Unit::VFMul:
    return InstructionClass::FloatMul;
  case Unit::VFFma:
    return InstructionClass::FloatFma;
  case Unit::VFDiv:
  case Unit::VFSqrt:
    return InstructionClass::FloatDiv;
  case Unit::VMove:
  case Unit::VPermute:
    return InstructionClass::FloatOther;
  case Unit::VSet:
  case Unit::Other:
    return InstructionClass::Other;
  }
  return InstructionClass::Other;
}

bool endsBlock(Opcode opcode) {
  return infoOf(opcode).unit == Unit::Branch || opcode == Opcode::VSet || opcode == Opcode::Illegal ||
         opcode == Opcode::Ecall || opcode == Opcode::Ebreak;
}

/// Whether the host's rounding mode must be set around an instruction with a static one. Conversions to integers and to
/// 16-bit formats round in software; those from integers look at the mode themselves.
bool roundsOnHost(Opcode opcode) {
  switch (infoOf(opcode).unit) {
  case Unit::FAdd:
  case Unit::FMul:
  case Unit::FFma:
  case Unit::FDiv:
  case Unit::FSqrt:
    return true;
  default:
    return opcode == Opcode::FcvtSD;
  }
}

} // namespace

Translation::Translation(std::vector<TextSegment> text, const LatencyTable &latency, const void *const *handlers)
    : text_(std::move(text)), latency_(latency), handlers_(handlers) {
  for (const TextSegment &segment : text_)
    blockAt_.emplace_back(segment.bytes.size() / 2 + 1, nullptr);
}

uint64_t Translation::textBytes() const {
  uint64_t bytes = 0;
  for (const TextSegment &segment : text_)
    bytes += segment.bytes.size();
  return bytes;
}

const TextSegment *Translation::segmentOf(uint64_t pc) const {
  for (const TextSegment &segment : text_)
    if (pc - segment.guestBase < segment.bytes.size() && segment.bytes.size() - (pc - segment.guestBase) >= 2)
      return &segment;
  return nullptr;
}

TimedBlock *Translation::enter(uint64_t pc, StateId state) {
  const TextSegment *segment = segmentOf(pc);
  if (segment == nullptr || (pc & 1) != 0)
    return nullptr;
  Block *&block = blockAt_[static_cast<size_t>(segment - text_.data())][(pc - segment->guestBase) / 2];
  if (block == nullptr)
    block = translate(pc, *segment);
  return enter(*block, state);
}

TimedBlock *Translation::enter(Block &block, StateId state) {
  for (TimedBlock *entry : block.entries)
    if (entry->state == state)
      return entry;
  TimedBlock *entry = makeTimed(block, 0, state);
  block.entries.push_back(entry);
  return entry;
}

TimedBlock *Translation::resume(Block &block, unsigned index, uint32_t vectorType) {
  if (index == 0)
    return enter(block, emptyState(vectorType));
  TimedBlock *&first = block.resumed[index];
  for (TimedBlock *entry = first; entry != nullptr; entry = entry->nextResumed)
    if (entry->vectorType == vectorType)
      return entry;
  TimedBlock *entry = makeTimed(block, index, emptyState(vectorType));
  entry->nextResumed = first;
  return first = entry;
}

TimedBlock *Translation::enterAfterVset(TimedBlock &before, uint32_t vectorType) {
  for (TimedBlock *next : before.afterVset)
    if (next->vectorType == vectorType)
      return next;
  PipelineState state = states_[before.edges[0].state];
  if (vectorTypeOf(state) != 0)
    state.pop_back();
  if (vectorType != 0)
    state.emplace_back(vectorTypeEntry, vectorType);
  TimedBlock *next = enter(before.block->endPc, states_.intern(state));
  if (next != nullptr)
    before.afterVset.push_back(next);
  return next;
}

TimedBlock *Translation::makeTimed(Block &block, unsigned start, StateId state) {
  TimedBlock &timed = timedBlocks_.emplace_back();
  timed.ops = block.ops.data() + block.opOfInstruction[start];
  timed.block = &block;
  timed.blockId = block.id;
  timed.state = state;
  timed.issueTimes.resize(start);
  timed.issueTimes.reserve(block.instructions.size());
  timed.vectorType = vectorTypeOf(states_[state]);
  RunTiming timing =
      timeRun(std::span(block.instructions).subspan(start), PipelineState(states_[state]), latency_, timed.issueTimes);
  // A run resumed behind the last instruction is empty: its branch has not been executed, it never resumes there.
  timed.edges[0] = {nullptr, timing.fallThroughCycles, states_.intern(timing.fallThroughState)};
  timed.edges[1] = {nullptr, timing.takenCycles, states_.intern(timing.takenState)};
  return &timed;
}

Block *Translation::translate(uint64_t pc, const TextSegment &segment) {
  Block &block = blocks_.emplace_back();
  block.id = static_cast<uint32_t>(blocks_.size() - 1);
  block.pc = pc;
  for (;;) {
    uint64_t offset = pc - segment.guestBase,
             left = segment.bytes.size() - std::min<uint64_t>(offset, segment.bytes.size());
    uint32_t word = 0;
    std::memcpy(&word, segment.bytes.data() + std::min<uint64_t>(offset, segment.bytes.size()),
                std::min<uint64_t>(4, left));
    if (left < 2)
      break; // runs off the end: the jump there traps
    Instruction instruction = decode(word);
    if (instruction.length > left)
      instruction = Instruction{}; // cut off by the end of the text
    lower(block, instruction, pc);
    pc += instruction.length;
    if (endsBlock(instruction.opcode))
      break;
    if (block.instructions.size() == maxInstructions)
      break;
  }
  block.endPc = pc;
  block.opOfInstruction.push_back(static_cast<uint16_t>(block.ops.size()));
  if (!endsBlock(block.instructions.back().opcode)) {
    MicroOp fallThrough;
    fallThrough.handler = handlers_[numOpcodes + static_cast<size_t>(PseudoOp::FallThrough)];
    fallThrough.index = static_cast<uint8_t>(block.instructions.size() - 1);
    block.ops.push_back(fallThrough);
  }
  block.resumed.resize(block.instructions.size() + 1, nullptr);
  return &block;
}

void Translation::lower(Block &block, const Instruction &instruction, uint64_t pc) {
  auto pseudo = [&](PseudoOp op) { return handlers_[numOpcodes + static_cast<size_t>(op)]; };
  block.opOfInstruction.push_back(static_cast<uint16_t>(block.ops.size()));
  MicroOp op;
  op.handler = handlers_[static_cast<size_t>(instruction.opcode)];
  op.rd = instruction.rd, op.rs1 = instruction.rs1, op.rs2 = instruction.rs2, op.rs3 = instruction.rs3;
  op.index = static_cast<uint8_t>(block.instructions.size());
  op.rounding = static_cast<uint8_t>(instruction.rounding);
  op.imm = instruction.imm;
  const OpcodeInfo &info = infoOf(instruction.opcode);
  if (instruction.opcode == Opcode::Lui || instruction.opcode == Opcode::Auipc) {
    op.handler = pseudo(PseudoOp::Constant);
    if (instruction.opcode == Opcode::Auipc)
      op.imm += static_cast<int64_t>(pc);
  } else if (instruction.opcode == Opcode::Jal) {
    op.imm = static_cast<int64_t>(pc + instruction.length);
    block.takenPc = pc + static_cast<uint64_t>(int64_t{instruction.imm});
  } else if (info.format == Format::Branch) {
    block.takenPc = pc + static_cast<uint64_t>(int64_t{instruction.imm});
  }
  bool needsMode = roundsOnHost(instruction.opcode) && instruction.rounding != Rounding::Dynamic;
  if (needsMode) {
    MicroOp set = op;
    set.handler = pseudo(PseudoOp::SetRounding);
    block.ops.push_back(set);
  }
  block.ops.push_back(op);
  if (needsMode) {
    MicroOp restore = op;
    restore.handler = pseudo(PseudoOp::RestoreRounding);
    block.ops.push_back(restore);
  }
  block.instructions.push_back(instruction);
  block.pcs.push_back(pc);
  ++block.classCounts[static_cast<size_t>(classOf(info.unit))];
  if (info.unit == Unit::Load || info.unit == Unit::Store || info.unit == Unit::VLoad || info.unit == Unit::VStore)
    ++block.memoryAccesses;
}

uint32_t Translation::drainOf(StateId state) const {
  uint32_t drain = 0;
  for (auto [resource, cycles] : states_[state])
    if (resource != vectorTypeEntry)
      drain = std::max(drain, cycles);
  return drain;
}

void Translation::collectCounts(NmcLaunchStats &stats) {
  for (Block &block : blocks_) {
    uint64_t executions = 0;
    for (TimedBlock *entry : block.entries)
      executions += std::exchange(entry->executions, 0);
    if (executions == 0)
      continue;
    stats.instructions += executions * block.instructions.size();
    stats.l1dAccesses += executions * block.memoryAccesses;
    for (size_t c = 0; c < numInstructionClasses; ++c)
      stats.instructionsByClass[c] += executions * block.classCounts[c];
  }
}

} // namespace nearbank::sim
