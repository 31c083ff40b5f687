// SPDX-License-Identifier: Apache-2.0
// Window model of an out-of-order core. The ids cite docs/model.md, "Modelled host".
#include "sim/core/OutOfOrderCore.h"

#include <algorithm>
#include <bit>

namespace nearbank::sim {
bool OutOfOrderCore::fetch() {
  if (isTextWarm_)
    return true;
  if (block_->id < fetched_.size() && fetched_[block_->id] != 0)
    return true;
  for (uint64_t line = l1i_.lineOf(std::max(block_->pc, resumeAddress_)); line < block_->endPc;
       line += l1i_.lineBytes()) {
    if (l1i_.touch(line) != nullptr)
      continue;
    int64_t cycle = std::max(dispatch_, frontend_);
    if (!isGranted(cycle)) {
      resumeAddress_ = line;
      return false;
    }
    ++stats_.l1iMisses;
    int64_t there = readSecond(line, cycle, false);
    TimedCache::Line victim;
    l1i_.insert(line, victim);
    frontend_ = std::max(frontend_, there);
  }
  resumeAddress_ = 0;
  if (textFits_) {
    if (fetched_.size() <= block_->id)
      fetched_.resize(block_->id + 64);
    fetched_[block_->id] = 1;
  }
  return true;
}

__attribute__((always_inline)) inline void OutOfOrderCore::dispatch(const OpPlan &plan, size_t operation) {
  // HM-1: the window has room when the instruction robEntries ago has retired; the queues likewise.
  auto entryOf = [&](const std::vector<int64_t> &ring, size_t next) {
    return ring[operation == 0 ? next : (next + operation) % ring.size()];
  };
  int64_t cycle = std::max({dispatch_, frontend_, entryOf(retireOf_, rob_)});
  if (plan.isLoad())
    cycle = std::max(cycle, entryOf(loadFree_, loadEntry_));
  else if (plan.isStore())
    cycle = std::max(cycle, entryOf(storeFree_, storeEntry_));
  if (cycle == dispatch_ && dispatched_ >= config_.dispatchWidth)
    ++cycle;
  // The front end follows one taken branch a cycle.
  bool isTaken = plan.isBranch() && (plan.kind != OpKind::Branch || nextPc_ != block_->endPc);
  if (isTaken) {
    cycle = std::max(cycle, lastTaken_ + 1);
    lastTaken_ = cycle;
  }
  if (cycle > dispatch_) {
    if (cycle >> 6 != dispatch_ >> 6)
      forEachPort([&](PortTimeline &port) { port.advance(cycle); });
    dispatch_ = cycle;
    dispatched_ = 0;
  }
  ++dispatched_;
}

__attribute__((always_inline)) inline int64_t OutOfOrderCore::takePort(PortTimeline &ports, int64_t cycle) {
  cycle = ports.firstFree(cycle);
  ports.take(cycle);
  return cycle;
}

__attribute__((always_inline)) inline int64_t OutOfOrderCore::takePorts(PortTimeline &first, PortTimeline &second,
                                                                        int64_t cycle) {
  for (;;) {
    cycle = first.firstFree(cycle);
    int64_t other = second.firstFree(cycle);
    if (other == cycle)
      break;
    cycle = other;
  }
  first.take(cycle);
  second.take(cycle);
  return cycle;
}

__attribute__((always_inline)) inline int64_t OutOfOrderCore::startOf(const OpPlan &plan, int64_t cycle) {
  switch (plan.kind) {
  case OpKind::Int:
    return takePort(intPorts_, cycle);
  case OpKind::IntMul:
    return takePorts(mulPorts_, intPorts_, cycle);
  case OpKind::IntDiv:
    cycle = takePort(intPorts_, std::max(cycle, intDividerFree_));
    intDividerFree_ = cycle + plan.interval;
    return cycle;
  case OpKind::Branch:
  case OpKind::Jump:
  case OpKind::Call:
  case OpKind::Return:
  case OpKind::IndirectJump:
    return takePort(branchPorts_, cycle);
  case OpKind::Load:
  case OpKind::FpLoad:
    return takePorts(loadPorts_, memoryPorts_, cycle);
  case OpKind::Store:
  case OpKind::FpStore:
    return takePorts(storePorts_, memoryPorts_, cycle);
  case OpKind::VectorLoad:
    return takePorts(vectorLoadPorts_, memoryPorts_, cycle);
  case OpKind::VectorStore:
    return takePorts(vectorStorePorts_, memoryPorts_, cycle);
  case OpKind::FpAdd:
    return takePorts(fpAddPorts_, fpPorts_, cycle);
  case OpKind::FpMul:
    return takePorts(fpMulPorts_, fpPorts_, cycle);
  case OpKind::FpDiv:
    cycle = takePort(fpPorts_, std::max(cycle, fpDividerFree_));
    fpDividerFree_ = cycle + plan.interval;
    return cycle;
  case OpKind::FpMove:
    return takePort(fpPorts_, cycle);
  }
  return cycle;
}

__attribute__((always_inline)) inline bool OutOfOrderCore::accessLines(const TracedAccess &access) {
  uint64_t last = access.address + access.bytes - 1;
  for (uint64_t line = l1d_.lineOf(std::max(access.address, resumeAddress_)); line <= last; line += l1d_.lineBytes()) {
    resumeAddress_ = line;
    if (!reach(line, access.isStore))
      return false;
  }
  resumeAddress_ = 0;
  return true;
}

bool OutOfOrderCore::load(const OpPlan &plan) {
  const std::vector<TracedAccess> &accesses = functional_->accesses();
  for (; access_ < accessEnd_ && accesses[access_].index == index_; ++access_) {
    const TracedAccess &access = accesses[access_];
    // HM-4: what an older store still holds comes from the store queue.
    const Forward &forward = forwards_[(access.address >> 3) % forwards_.size()];
    uint64_t offset = access.address - forward.address;
    if (forward.commitAt > start_ && offset < forward.bytes && offset + access.bytes <= forward.bytes)
      lineAt_ = std::max(lineAt_, std::max(start_, forward.dataAt) + config_.forwardCycles);
    else if (!accessLines(access))
      return false;
  }
  done_ = std::max(done_, lineAt_ + plan.latency);
  return true;
}

bool OutOfOrderCore::store() {
  const std::vector<TracedAccess> &accesses = functional_->accesses();
  for (; access_ < accessEnd_ && accesses[access_].index == index_; ++access_) {
    const TracedAccess &access = accesses[access_];
    if (!accessLines(access))
      return false;
    forward_ = &forwards_[(access.address >> 3) % forwards_.size()];
    *forward_ = {access.address, access.bytes, done_, 0};
  }
  return true;
}

void OutOfOrderCore::branch(const OpPlan &plan) {
  bool isRight = true;
  uint64_t pc = block_->pcs[index_];
  switch (plan.kind) {
  case OpKind::Branch:
    isRight = predictor_.isRight(pc, nextPc_ != block_->endPc);
    break;
  case OpKind::Call:
    predictor_.call(block_->endPc);
    break;
  case OpKind::Return:
    isRight = nextPc_ == 0 || predictor_.isReturnRight(nextPc_);
    break;
  case OpKind::IndirectJump:
    isRight = nextPc_ == 0 || predictor_.isTargetRight(pc, nextPc_);
    if (isLinkRegister(plan.rd))
      predictor_.call(block_->endPc);
    break;
  default:
    break;
  }
  if (!isRight) {
    // HM-3: the right path enters the window mispredictCycles after the branch has been computed.
    ++stats_.mispredictions;
    frontend_ = std::max(frontend_, done_ + config_.mispredictCycles);
  }
}

__attribute__((always_inline)) inline void OutOfOrderCore::retire(const OpPlan &plan) {
  // HM-5: in order, retireWidth a cycle.
  int64_t cycle = std::max(retire_, done_);
  if (cycle == retire_ && retired_ >= config_.retireWidth)
    ++cycle;
  if (cycle > retire_) {
    if (hasMissed_ && cycle == done_)
      stats_.stallCycles += static_cast<uint64_t>(cycle - retire_);
    retire_ = cycle;
    retired_ = 0;
  }
  ++retired_;
  retireOf_[rob_] = retire_;
  rob_ = rob_ + 1 == retireOf_.size() ? 0 : rob_ + 1;
  if (plan.isLoad()) {
    loadFree_[loadEntry_] = retire_;
    loadEntry_ = loadEntry_ + 1 == loadFree_.size() ? 0 : loadEntry_ + 1;
  } else if (plan.isStore()) {
    // HM-4: stores leave the queue in order after they have retired, when their line is there.
    int64_t leaves = std::max({commit_, retire_, lineAt_});
    if (leaves == commit_ && committed_ >= config_.storePorts)
      ++leaves;
    if (leaves > commit_)
      commit_ = leaves, committed_ = 0;
    committed_ +=
        plan.kind == OpKind::VectorStore ? std::max<int64_t>(1, config_.storePorts / config_.vectorStorePorts) : 1;
    storeFree_[storeEntry_] = commit_;
    if (forward_ != nullptr)
      forward_->commitAt = commit_;
    forward_ = nullptr;
    storeEntry_ = storeEntry_ + 1 == storeFree_.size() ? 0 : storeEntry_ + 1;
  }
}

bool OutOfOrderCore::step(const OpPlan &plan) {
  if (phase_ == Phase::Place) {
    if (plan.part > VectorPart::Set) {
      placeVector(plan);
    } else {
      dispatch(plan, 0);
      // HM-2: sources and a port must be ready.
      int64_t cycle = std::max({dispatch_ + 1, ready_[plan.rs1], ready_[plan.rs2], ready_[plan.rs3]});
      start_ = startOf(plan, cycle);
      done_ = start_ + plan.latency;
    }
    lineAt_ = start_;
    hasMissed_ = false;
    phase_ = Phase::Access;
  }
  if (plan.isLoad() ? !load(plan) : plan.isStore() ? !store() : false)
    return false;
  phase_ = Phase::Place;
  if (plan.part > VectorPart::Set)
    return finishVector(plan), true;
  ready_[plan.rd] = done_;
  if (plan.isBranch())
    branch(plan);
  else if (plan.part == VectorPart::Set)
    takeShape();
  retire(plan);
  return true;
}

void OutOfOrderCore::setShape(uint32_t elements, uint32_t type) {
  shape_.elements = elements;
  shape_.type = type;
  int64_t bytes = int64_t{elements} << (type >> 3 & 7);
  auto piecesOf = [&](int64_t size) { return std::max<int64_t>(1, (size + laneBytes_ - 1) / laneBytes_); };
  shape_.pieces = piecesOf(bytes);
  shape_.widePieces = piecesOf(2 * bytes);
  shape_.registers = std::max<int64_t>(1, (bytes + vectorBytes_ - 1) / vectorBytes_);
}

void OutOfOrderCore::takeShape() {
  const std::vector<TracedAccess> &accesses = functional_->accesses();
  if (access_ < accessEnd_ && accesses[access_].index == index_) {
    setShape(static_cast<uint32_t>(accesses[access_].address), accesses[access_].bytes);
    ++access_;
  }
}

int64_t OutOfOrderCore::groupReady(uint8_t first) const {
  int64_t cycle = ready_[first];
  if (first >= firstVectorRegister)
    for (int64_t r = 1; r < shape_.registers; ++r)
      cycle = std::max(cycle, ready_[static_cast<size_t>(first + r)]);
  return cycle;
}

void OutOfOrderCore::placeVector(const OpPlan &plan) {
  // HM-10: a vector instruction is as many operations as it has pieces of the datapath's width.
  operations_ = plan.isWide ? shape_.widePieces : shape_.pieces;
  isElementwise_ = false;
  if (plan.part == VectorPart::Memory)
    operations_ = accessOperations();
  start_ = std::numeric_limits<int64_t>::max();
  done_ = 0;
  if (plan.part == VectorPart::Pieces)
    return placePieces(plan);
  int64_t ready = std::max({groupReady(plan.rs1), groupReady(plan.rs2), groupReady(plan.rs3)}), last = 0;
  bool isDivision = plan.part == VectorPart::Divide || plan.part == VectorPart::DivideInt;
  int64_t rounds = plan.part == VectorPart::Divide ? operations_ : shape_.elements; // of the divider
  if (isDivision)
    operations_ = 1;
  for (int64_t i = 0; i < operations_; ++i) {
    dispatch(plan, static_cast<size_t>(i));
    int64_t start = startOf(plan, std::max(dispatch_ + 1, ready));
    // Element by element, one port's worth keeps them all.
    if (isElementwise_)
      for (int64_t port = 1; port < (plan.isLoad() ? config_.vectorLoadPorts : config_.vectorStorePorts); ++port)
        (plan.isLoad() ? vectorLoadPorts_ : vectorStorePorts_).take(start);
    start_ = std::min(start_, start);
    last = std::max(last, start);
  }
  done_ = last + plan.latency;
  if (isDivision) {
    int64_t later = plan.interval * (std::max<int64_t>(1, rounds) - 1);
    fpDividerFree_ += later;
    done_ += later;
  } else if (plan.part == VectorPart::Reduce)
    done_ = last + plan.latency * std::bit_width(std::max<uint64_t>(2, shape_.elements) - 1);
  else if (plan.part == VectorPart::Memory)
    done_ = last + (plan.isLoad() ? l1Cycles_ : 0) + plan.latency;
}

void OutOfOrderCore::placePieces(const OpPlan &plan) {
  int64_t perRegister = vectorBytes_ / laneBytes_;
  auto readyAt = [&](uint8_t first, int64_t offset) {
    return ready_[first >= firstVectorRegister ? static_cast<size_t>(first + offset) : first];
  };
  int64_t registerDone = 0;
  for (int64_t i = 0; i < operations_; ++i) {
    dispatch(plan, static_cast<size_t>(i));
    // A mask (v0) and the narrow sources of a wide operation are shared by several pieces.
    int64_t number = i / perRegister, source = plan.isWide ? number / 2 : number;
    int64_t third = plan.rs3 == firstVectorRegister ? 0 : number;
    int64_t ready = std::max({readyAt(plan.rs1, source), readyAt(plan.rs2, source), readyAt(plan.rs3, third)});
    int64_t start = startOf(plan, std::max(dispatch_ + 1, ready)), done = start + plan.latency;
    start_ = std::min(start_, start);
    done_ = std::max(done_, done);
    registerDone = i % perRegister == 0 ? done : std::max(registerDone, done);
    if (plan.rd >= firstVectorRegister && !plan.isMask)
      ready_[static_cast<size_t>(plan.rd + number)] = registerDone;
  }
}

int64_t OutOfOrderCore::accessOperations() {
  const std::vector<TracedAccess> &accesses = functional_->accesses();
  int64_t count = 0, bytes = 0;
  for (size_t i = access_; i < accessEnd_ && accesses[i].index == index_; ++i)
    ++count, bytes += accesses[i].bytes;
  // Streams come in pieces of lines; what comes in more and smaller pieces goes element by element.
  int64_t pieces = (bytes + laneBytes_ - 1) / laneBytes_;
  isElementwise_ = count > bytes / static_cast<int64_t>(l1d_.lineBytes()) + 2;
  return std::max<int64_t>(1, isElementwise_ ? (count + elementsPerCycle_ - 1) / elementsPerCycle_ : pieces);
}

void OutOfOrderCore::finishVector(const OpPlan &plan) {
  bool isGroup = plan.rd >= firstVectorRegister && plan.rd < numTimedRegisters;
  if (plan.part != VectorPart::Pieces || !isGroup || plan.isMask) {
    int64_t registers = isGroup && !plan.isMask && plan.part != VectorPart::Reduce ? shape_.registers : 1;
    for (int64_t r = 0; r < registers; ++r)
      ready_[static_cast<size_t>(plan.rd + r)] = done_;
  }
  for (int64_t i = 0; i < operations_; ++i)
    retire(plan);
}

int64_t OutOfOrderCore::run(int64_t horizon) {
  horizon_ = horizon;
  for (;;) {
    if (phase_ == Phase::NextBlock) {
      if (!nextBlock())
        return ended;
      phase_ = Phase::Fetch;
    }
    if (phase_ == Phase::Fetch) {
      if (!fetch())
        return pausedAt_;
      phase_ = Phase::Place;
    }
    const std::vector<OpPlan> &plan = *plan_;
    for (size_t size = plan.size(); index_ < size; ++index_)
      if (!step(plan[index_]))
        return pausedAt_;
    phase_ = Phase::NextBlock;
  }
}

bool OutOfOrderCore::isGranted(int64_t cycle) {
  if (cycle <= horizon_ || hasTurn_) {
    hasTurn_ = false;
    return true;
  }
  pausedAt_ = cycle;
  hasTurn_ = true;
  return false;
}

bool OutOfOrderCore::reach(uint64_t address, bool isStore) {
  if (TimedCache::Line *line = l1d_.touch(address)) {
    if (isStore && !line->isDirty())
      line->markDirty(), ++stats_.dirtied;
    lineAt_ = std::max({lineAt_, start_ + l1Cycles_, line->readyAt});
    return true;
  }
  // HM-6: a miss needs a free miss buffer.
  auto buffer = std::min_element(missFree_.begin(), missFree_.end());
  int64_t cycle = std::max(start_, *buffer);
  if (!isGranted(cycle))
    return false;
  ++stats_.l1dMisses;
  hasMissed_ = true;
  int64_t there = readSecond(address, cycle, true);
  *buffer = there;
  TimedCache::Line victim;
  TimedCache::Line *line = l1d_.insert(address, victim);
  line->readyAt = there;
  if (isStore)
    line->markDirty(), ++stats_.dirtied;
  evictFirst(victim, cycle);
  lineAt_ = std::max(lineAt_, there);
  return true;
}

void OutOfOrderCore::evictFirst(const TimedCache::Line &victim, int64_t cycle) {
  if (!victim.isDirty())
    return;
  if (TimedCache::Line *line = l2_.touch(victim.address())) {
    line->markDirty();
    return;
  }
  insertSecond(victim.address(), cycle, 0);
  l2_.touch(victim.address())->markDirty();
}

void OutOfOrderCore::insertSecond(uint64_t address, int64_t cycle, int64_t readyAt) {
  TimedCache::Line victim;
  l2_.insert(address, victim)->readyAt = readyAt;
  if (victim.isDirty()) {
    ++stats_.writebacks;
    memory_.write(id_, victim.address(), toPs(cycle + l2Cycles_));
  }
}

int64_t OutOfOrderCore::pass(PortTimeline &path, int64_t cycles, int64_t arrival) {
  // The last part of the line arrives no earlier than without contention.
  int64_t next = arrival - cycles;
  for (int64_t i = 0; i < cycles; ++i)
    next = takePort(path, next) + 1;
  return std::max(arrival, next);
}

int64_t OutOfOrderCore::readSecond(uint64_t address, int64_t cycle, bool isData) {
  ++stats_.l2Accesses;
  int64_t there;
  if (TimedCache::Line *line = l2_.touch(address)) {
    there = std::max(cycle + l2Cycles_, line->readyAt);
  } else {
    ++stats_.l2Misses;
    there = pass(secondPath_, secondPathCycles_, toCycle(memory_.read(id_, address, toPs(cycle))));
    insertSecond(address, cycle, there);
  }
  there = pass(firstPath_, firstPathCycles_, there);
  if (isData && prefetcher_)
    for (uint64_t line : prefetcher_->observe(address)) {
      ++stats_.l2Accesses;
      if (l2_.touch(line) != nullptr)
        continue;
      ++stats_.l2Misses;
      int64_t arrival = toCycle(memory_.read(id_, line, toPs(cycle)));
      insertSecond(line, cycle, pass(secondPath_, secondPathCycles_, arrival));
    }
  return there;
}

} // namespace nearbank::sim
