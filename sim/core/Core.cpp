// SPDX-License-Identifier: Apache-2.0
// Slow paths of a core: misses, fetches, jumps that are not linked yet, CSRs and traps.
#include "sim/core/Core.h"

#include "sim/core/Interpreter.h"

#include <algorithm>
#include <cfenv>

namespace nearbank::sim {

Core::Core(const CoreParameters &p)
    : l1d(p.l1d, "l1d"), l1i_(p.l1i, "l1i"), map_(p.dram), vectorBytes_(static_cast<unsigned>(p.vectorBits / 8)),
      lanesBytes_(static_cast<uint64_t>(std::max<int64_t>(8, p.vectorLanesBits) / 8)),
      elementsPerCycle_(static_cast<uint64_t>(std::max<int64_t>(1, p.vectorElementsPerCycle))) {
  if (p.l2)
    l2_.emplace(*p.l2, "l2");
}

void Core::start(Translation &translation, const GuestMemory &memory, uint64_t pc, uint64_t haltPc) {
  std::fill(std::begin(registers), std::end(registers), 0);
  translation_ = &translation;
  memory_ = &memory;
  recentRanges_.fill(nullptr);
  haltPc_ = haltPc, entryPc_ = pc;
  calls_.clear();
  ownCycles_ = 0;
  markProgress(0, 0);
  vector.reset(vectorBytes_);
  vectorLanes = vectorElement = 0;
  vectorBeat_ = missBeat_ = 0, hasMissed_ = false;
  cycle = 0, roundingMode = 0, softFlags = 0;
  reservation = ~uint64_t{0};
  l1dMisses = l1iMisses = l2Misses = writebacks = splitAccesses = 0;
  l1d.reset(), l1i_.reset();
  if (l2_)
    l2_->reset();
  // Text no larger than the cache is contiguous and never evicts itself.
  textFitsL1i_ = translation.textBytes() + 2 * l1i_.lineBytes() <= l1i_.capacityBytes();
  fetched.clear();
  events_.clear();
  scratchLines_.clear();
  trap_ = Trap{};
  state = CoreState::Ready;
  timed = translation.enter(pc, 0);
  op = nullptr;
  if (timed == nullptr) {
    trap_ = {TrapKind::JumpOutside, pc, pc, 0, Instruction{}};
    state = CoreState::Trapped;
  }
}

void Core::run(size_t eventLimit) {
  if (state != CoreState::Ready)
    return;
  eventLimit_ = eventLimit;
  coverBlocks();
  if (op == nullptr) { // first run
    ++timed->executions;
    fetch();
    op = timed->ops;
  }
  setHostRounding(roundingMode);
  interpret(*this);
  takeHostFlags(softFlags);
  if (state == CoreState::Ready && ownCycles_ >= ownLimit_) {
    settle();
    post(EventKind::Mark, cycle, 0, 0);
    state = CoreState::Halted;
  }
  if (state == CoreState::Halted)
    finish();
}

void Core::coverBlocks() {
  if (fetched.size() < translation_->numBlocks())
    fetched.resize(std::max<size_t>(64, translation_->numBlocks() * 2), 0);
}

void Core::finish() {
  // What is dirty leaves the caches, one line a cycle: the host reads it from memory afterwards.
  settle();
  auto flush = [&](uint64_t address) { evict({.state = address | 1}, cycle++); };
  l1d.forEachDirty(flush);
  if (l2_)
    l2_->forEachDirty([&](uint64_t address) {
      post(EventKind::Write, cycle++, address, 0);
      ++writebacks;
    });
  post(EventKind::End, cycle, 0, 0);
}

void Core::settle() {
  constexpr uint64_t longest = uint64_t{1} << 31;
  for (; cycle > longest; cycle -= longest, ownCycles_ += longest)
    events_.push_back({static_cast<uint32_t>(longest), 0, 0, 0, 0, EventKind::Wait});
}

void Core::post(EventKind kind, uint64_t gapCycles, uint64_t address, uint64_t drainCycles) {
  DramLocation where = map_.locate(address);
  events_.push_back({static_cast<uint32_t>(gapCycles), where.row, where.vault, where.bank,
                     static_cast<uint16_t>(std::min<uint64_t>(drainCycles, 0xffff)), kind});
}

void Core::evict(const CacheLine &victim, uint64_t gap) {
  if (!victim.isDirty())
    return;
  if (l2_) {
    if (CacheLine *line = l2_->touch(victim.address())) {
      line->markDirty();
      return;
    }
    CacheLine second;
    l2_->insert(victim.address(), second)->markDirty();
    if (!second.isDirty())
      return;
    post(EventKind::Write, gap, second.address(), 0);
  } else {
    post(EventKind::Write, gap, victim.address(), 0);
  }
  ++writebacks;
}

void Core::miss(uint64_t address, uint64_t issueCycle, uint64_t drain, int64_t hitCycles) {
  uint64_t hit = static_cast<uint64_t>(hitCycles), leaves = issueCycle + hit;
  if (l2_) {
    uint64_t secondHit = static_cast<uint64_t>(l2_->hitCycles());
    if (l2_->touch(address) != nullptr) {
      cycle = issueCycle + std::max(drain, hit + secondHit);
      return;
    }
    ++l2Misses;
    leaves += secondHit;
    CacheLine victim;
    l2_->insert(address, victim);
    if (victim.isDirty()) {
      post(EventKind::Write, leaves, victim.address(), 0);
      ++writebacks;
    }
  }
  uint64_t latest = issueCycle + drain;
  post(EventKind::Read, leaves, address, latest > leaves ? latest - leaves : 0);
  cycle = 0;
  ownCycles_ += leaves;
  if (ownCycles_ >= nextMark_) {
    post(EventKind::Mark, 0, 0, 0);
    nextMark_ += (ownCycles_ - nextMark_ + markStep_) / markStep_ * markStep_;
  }
  if (ownCycles_ >= ownLimit_)
    eventLimit_ = 0; // stops at its next miss
}

char *Core::access(uint64_t address, unsigned bytes, bool isStore, unsigned index) {
  CacheLine *line = l1d.touch(address);
  bool isOneLine = l1d.lineOf(address + bytes - 1) == l1d.lineOf(address);
  // A hit on a line whose tag is good needs no range.
  if (isOneLine && line != nullptr && (isStore ? line->storeTag : line->loadTag) == l1d.lineOf(address))
    return reinterpret_cast<char *>(address + static_cast<uint64_t>(line->hostDelta));
  const MemoryRange *range = findRange(address);
  if (range == nullptr || range->end - address < bytes)
    return trap(TrapKind::AccessOutside, address, bytes), nullptr;
  if (isStore && !range->isWritable)
    return trap(TrapKind::WriteToReadOnly, address, bytes), nullptr;
  if (events_.size() >= eventLimit_)
    return nullptr;
  IssueTime at = timed->issueTimes[index];
  if (line == nullptr) {
    line = fill(address, index, at, *range);
    at = {0, 0};
  }
  if (isStore)
    line->markDirty(), line->storeTag = line->loadTag;
  if (!isOneLine) {
    uint64_t last = address + bytes - 1;
    ++splitAccesses;
    line = l1d.touch(last);
    if (line == nullptr)
      line = fill(last, index, at, *range);
    if (isStore)
      line->markDirty(), line->storeTag = line->loadTag;
  }
  return reinterpret_cast<char *>(address + static_cast<uint64_t>(range->hostDelta));
}

const MemoryRange *Core::findRange(uint64_t address) {
  for (const MemoryRange *range : recentRanges_)
    if (range != nullptr && address >= range->begin && address < range->end)
      return range;
  const MemoryRange *range = memory_->find(address);
  if (range != nullptr)
    recentRanges_[nextRecent_++ % recentRanges_.size()] = range;
  return range;
}

CacheLine *Core::fill(uint64_t address, unsigned index, IssueTime at, const MemoryRange &range) {
  ++l1dMisses;
  settle();
  uint32_t beats = vectorBeat_ - missBeat_; // of a vector access since its issue or its last miss
  uint64_t issueCycle = cycle + at.cycle + beats;
  at.drain -= std::min(at.drain, beats);
  missBeat_ = vectorBeat_, hasMissed_ = true;
  CacheLine victim;
  CacheLine *line = l1d.insert(address, victim);
  evict(victim, issueCycle + static_cast<uint64_t>(l1d.hitCycles()));
  miss(address, issueCycle, at.drain, l1d.hitCycles());
  timed = translation_->resume(*timed->block, index + 1, timed->vectorType);
  uint64_t begin = l1d.lineOf(address);
  if (range.isScratch && scratchLines_.size() < maxScratchLines)
    scratchLines_.push_back(reinterpret_cast<char *>(begin + static_cast<uint64_t>(range.hostDelta)));
  bool isWhole = begin >= range.begin && begin + l1d.lineBytes() <= range.end;
  line->hostDelta = range.hostDelta;
  line->loadTag = isWhole ? begin : begin | CacheLine::slowBit;
  return line;
}

void Core::fetch() {
  coverBlocks();
  Block &block = *timed->block;
  for (uint64_t line = l1i_.lineOf(block.pc); line < block.endPc; line += l1i_.lineBytes()) {
    if (l1i_.touch(line) != nullptr)
      continue;
    ++l1iMisses;
    settle();
    CacheLine victim;
    l1i_.insert(line, victim);
    uint64_t drain = timed->state == 0 ? 0 : translation_->drainOf(timed->state);
    miss(line, cycle, drain, l1i_.hitCycles());
    timed = translation_->enter(block, translation_->emptyState(timed->vectorType));
  }
  if (textFitsL1i_)
    fetched[block.id] = 1;
}

void Core::markProgress(uint64_t step, uint64_t limit) {
  markStep_ = step;
  nextMark_ = step > 0 ? step : ~uint64_t{0};
  ownLimit_ = limit > 0 ? limit : ~uint64_t{0};
}

void Core::callAgain(std::vector<Call> calls) {
  std::copy_n(registers, arguments_.size(), arguments_.begin());
  std::reverse(calls.begin(), calls.end());
  calls_ = std::move(calls);
}

TimedBlock *Core::callNext(StateId pipeline) {
  settle();
  post(EventKind::Mark, cycle, 0, 0);
  while (!calls_.empty()) {
    auto [begin, end, waitCycles] = calls_.back();
    calls_.pop_back();
    cycle += waitCycles;
    settle();
    if (begin >= end) {
      post(EventKind::Mark, cycle, 0, 0);
      continue;
    }
    std::copy(arguments_.begin(), arguments_.end(), registers);
    registers[11] = begin, registers[12] = end;
    TimedBlock *next = translation_->enter(entryPc_, pipeline);
    coverBlocks();
    return next;
  }
  return nullptr;
}

TimedBlock *Core::follow(unsigned edge, uint64_t targetPc) {
  BlockEdge &taken = timed->edges[edge];
  if (targetPc == haltPc_) {
    TimedBlock *again = callNext(taken.state);
    if (again == nullptr && state == CoreState::Ready)
      state = CoreState::Halted;
    return again;
  }
  TimedBlock *next = translation_->enter(targetPc, taken.state);
  if (next == nullptr)
    return trap(TrapKind::JumpOutside, targetPc, 0), nullptr;
  coverBlocks();
  return taken.next = next;
}

TimedBlock *Core::followVset() {
  TimedBlock *next = translation_->enterAfterVset(*timed, vector.packed());
  if (next == nullptr)
    return trap(TrapKind::JumpOutside, timed->block->endPc, 0), nullptr;
  coverBlocks();
  return timed->edges[0].next = next;
}

void Core::endBeats(uint64_t bytes, uint64_t elements) {
  if (hasMissed_) { // else its block's timing has it
    uint64_t total = std::max<uint64_t>(1, (bytes + lanesBytes_ - 1) / lanesBytes_ +
                                               (elements + elementsPerCycle_ - 1) / elementsPerCycle_);
    cycle += total - 1 - std::min<uint64_t>(total - 1, missBeat_);
  }
  beginBeats();
}

void Core::trap(TrapKind kind, uint64_t address, uint32_t bytes) {
  const Block &block = *timed->block;
  trap_ = {kind, block.pcs[op->index], address, bytes, block.instructions[op->index]};
  state = CoreState::Trapped;
}

bool Core::accessCsr(const MicroOp &o) {
  const Instruction &instruction = timed->block->instructions[o.index];
  bool isImmediate = infoOf(instruction.opcode).format == Format::CsrImm;
  uint64_t operand = isImmediate ? instruction.rs2 : registers[instruction.rs1];
  bool writes = true;
  uint32_t flags = (softFlags | hostFlags()) & 31, old = 0;
  switch (o.imm) {
  case 1:
    old = flags;
    break;
  case 2:
    old = roundingMode;
    break;
  case 3:
    old = roundingMode << 5 | flags;
    break;
  case 0xc20: // vl, vtype and vlenb can be read only
  case 0xc21:
  case 0xc22:
    if (vectorBytes_ == 0 || instruction.opcode != Opcode::Csrrs || instruction.rs1 != 0)
      return trap(TrapKind::IllegalInstruction, 0, 0), false;
    registers[o.rd] = o.imm == 0xc20 ? vector.vl : o.imm == 0xc21 ? vector.vtype : vectorBytes_;
    return true;
  default:
    return trap(TrapKind::IllegalInstruction, 0, 0), false;
  }
  uint32_t value = static_cast<uint32_t>(operand);
  switch (instruction.opcode) {
  case Opcode::Csrrs:
  case Opcode::Csrrsi:
    writes = isImmediate ? operand != 0 : instruction.rs1 != 0;
    value |= old;
    break;
  case Opcode::Csrrc:
  case Opcode::Csrrci:
    writes = isImmediate ? operand != 0 : instruction.rs1 != 0;
    value = old & ~value;
    break;
  default:
    break;
  }
  if (writes) {
    uint32_t newMode = o.imm == 2 ? value & 7 : o.imm == 3 ? (value >> 5) & 7 : roundingMode;
    if (newMode > 3)
      return trap(TrapKind::IllegalInstruction, 0, 0), false; // RMM and reserved modes
    if (o.imm != 2) {
      softFlags = value & 31;
      std::feclearexcept(FE_ALL_EXCEPT);
    }
    roundingMode = newMode;
    setHostRounding(roundingMode);
  }
  registers[o.rd] = old;
  return true;
}

} // namespace nearbank::sim
