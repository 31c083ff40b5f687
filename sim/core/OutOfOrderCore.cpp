// SPDX-License-Identifier: Apache-2.0
// Window model of an out-of-order core. The ids cite docs/model.md, "Modelled host".
#include "sim/core/OutOfOrderCore.h"

#include <algorithm>

namespace nearbank::sim {
namespace {

/// Blocks that the functional core runs ahead.
constexpr size_t traceBlocks = 1024;

bool isFpRegister(uint8_t number) { return number >= firstFloatRegister && number < discardRegister; }
bool isLinkRegister(uint8_t number) { return number == 1 || number == 5; } // RISC-V ISA, return-address stack hints

} // namespace

OpPlan PlanTable::planOf(const Instruction &i) const {
  const CoreConfig &core = config_.core;
  const OutOfOrderConfig &window = config_.outOfOrder;
  const OpcodeInfo &info = infoOf(i.opcode);
  OpPlan plan{.rd = i.rd, .rs1 = i.rs1, .rs2 = i.rs2, .rs3 = i.rs3};
  if (info.format == Format::CsrImm)
    plan.rs2 = 0; // an immediate
  auto set = [&](OpKind kind, int64_t latency, int64_t interval = 1) {
    plan.kind = kind;
    plan.latency = static_cast<uint16_t>(std::clamp<int64_t>(latency, 1, 60000));
    plan.interval = static_cast<uint16_t>(std::clamp<int64_t>(interval, 1, 60000));
  };
  switch (info.unit) {
  case Unit::Mul:
    set(OpKind::IntMul, core.intMulCycles);
    break;
  case Unit::Div:
    set(OpKind::IntDiv, core.intDivCycles, core.intDivCycles);
    break;
  case Unit::Branch:
    set(OpKind::Branch, core.intAluCycles);
    if (i.opcode == Opcode::Jal)
      plan.kind = isLinkRegister(i.rd) ? OpKind::Call : OpKind::Jump;
    else if (i.opcode == Opcode::Jalr)
      plan.kind = i.rd == discardRegister && isLinkRegister(i.rs1) ? OpKind::Return : OpKind::IndirectJump;
    break;
  case Unit::Load:
    set(isFpRegister(i.rd) ? OpKind::FpLoad : OpKind::Load, isFpRegister(i.rd) ? window.fpLoadExtraCycles : 0);
    plan.latency = static_cast<uint16_t>(isFpRegister(i.rd) ? window.fpLoadExtraCycles : 0);
    break;
  case Unit::Store:
    set(isFpRegister(i.rs2) ? OpKind::FpStore : OpKind::Store, 1);
    break;
  case Unit::FAdd:
    set(OpKind::FpAdd, core.fpAddCycles);
    break;
  case Unit::FMul:
    set(OpKind::FpMul, core.fpMulCycles);
    break;
  case Unit::FFma:
    set(OpKind::FpMul, core.fpFmaCycles);
    break;
  case Unit::FDiv:
    set(OpKind::FpDiv, core.fpDivCycles, window.fpDivIntervalCycles);
    break;
  case Unit::FSqrt:
    set(OpKind::FpDiv, core.fpSqrtCycles, window.fpSqrtIntervalCycles);
    break;
  case Unit::FOther:
    set(OpKind::FpMove, core.fpMoveCycles);
    break;
  default:
    set(OpKind::Int, core.intAluCycles);
    break;
  }
  return plan;
}

const std::vector<OpPlan> &PlanTable::planOf(const Block &block) {
  if (plans_.size() <= block.id)
    plans_.resize(block.id + 64);
  std::vector<OpPlan> &plan = plans_[block.id];
  if (!plan.empty())
    return plan;
  VectorShape shape;
  for (const Instruction &instruction : block.instructions) {
    plan.push_back(planOf(instruction));
    shape.follow(instruction);
    if (instruction.opcode != Opcode::VSet && infoOf(instruction.opcode).format == Format::Vector)
      planVector(instruction, shape, plan.back());
  }
  return plan;
}

void PlanTable::planVector(const Instruction &i, const VectorShape &shape, OpPlan &plan) const {
  const CoreConfig &core = config_.core;
  const OutOfOrderConfig &window = config_.outOfOrder;
  int64_t pieces = shape.pieces(core.vectorBits, core.vectorLanesBits), elements = shape.elements(core.vectorBits);
  auto set = [&](OpKind kind, int64_t latency, int64_t steps, int64_t interval = 1) {
    plan.kind = kind;
    plan.latency = static_cast<uint16_t>(std::clamp<int64_t>(latency, 0, 60000));
    plan.steps = static_cast<uint16_t>(std::clamp<int64_t>(steps, 1, 60000));
    plan.interval = static_cast<uint16_t>(std::clamp<int64_t>(interval, 1, 60000));
  };
  int64_t accesses = isElementwise(i) ? elements / std::max<int64_t>(1, core.vectorElementsPerCycle) : pieces;
  switch (infoOf(i.opcode).unit) {
  case Unit::VLoad:
    return set(OpKind::FpLoad, window.fpLoadExtraCycles, accesses);
  case Unit::VStore:
    return set(OpKind::FpStore, 1, accesses);
  case Unit::VIntMul:
    return set(OpKind::FpMul, core.vectorIntMulCycles, pieces);
  case Unit::VIntDiv:
    return set(OpKind::FpDiv, core.intDivCycles, 1, core.intDivCycles * elements);
  case Unit::VFAdd:
    return set(OpKind::FpAdd, core.vectorFpAddCycles, pieces);
  case Unit::VFMul:
    return set(OpKind::FpMul, core.vectorFpMulCycles, pieces);
  case Unit::VFFma:
    return set(OpKind::FpMul, core.vectorFpFmaCycles, pieces);
  case Unit::VFDiv:
    return set(OpKind::FpDiv, core.vectorFpDivCycles, 1, window.fpDivIntervalCycles * pieces);
  case Unit::VFSqrt:
    return set(OpKind::FpDiv, core.vectorFpSqrtCycles, 1, window.fpSqrtIntervalCycles * pieces);
  case Unit::VPermute:
    return set(OpKind::FpMove, core.vectorPermuteCycles, pieces);
  case Unit::VReduce: {
    int64_t folds = shape.folds(core.vectorBits);
    return set(OpKind::FpAdd, folds * (core.vectorFpAddCycles + core.vectorPermuteCycles), folds);
  }
  case Unit::VInt:
    return set(OpKind::FpMove, core.vectorIntCycles, pieces);
  default:
    return set(OpKind::FpMove, core.vectorMoveCycles, pieces);
  }
}

OutOfOrderCore::OutOfOrderCore(const MachineConfig &c, int64_t id, HostMemory &memory)
    : config_(c.outOfOrder), id_(id), l1Cycles_(c.l1d.hitCycles), l2Cycles_(c.l2->hitCycles),
      periodPs_(1000 / c.core.clockGHz), cyclesPerPs_(c.core.clockGHz / 1000), memory_(memory), l1i_(c.l1i, "l1i"),
      l1d_(c.l1d, "l1d"), l2_(*c.l2, "l2"), intPorts_(config_.intPorts), mulPorts_(config_.intMulPorts),
      branchPorts_(config_.branchPorts), fpPorts_(config_.fpPorts), fpAddPorts_(config_.fpAddPorts),
      fpMulPorts_(config_.fpMulPorts), memoryPorts_(config_.memoryPorts), loadPorts_(config_.loadPorts),
      storePorts_(config_.storePorts) {
  if (c.prefetch)
    prefetcher_.emplace(*c.prefetch, c.l1d.lineBytes);
  retireOf_.resize(static_cast<size_t>(config_.robEntries));
  loadFree_.resize(static_cast<size_t>(config_.loadQueueEntries));
  storeFree_.resize(static_cast<size_t>(config_.storeQueueEntries));
  missFree_.resize(static_cast<size_t>(config_.outstandingMisses));
}

void OutOfOrderCore::start(TracingCore &functional, PlanTable &plans, uint64_t textBytes, int64_t startCycle) {
  functional_ = &functional;
  plans_ = &plans;
  l1i_.reset(), l1d_.reset(), l2_.reset();
  if (prefetcher_)
    prefetcher_->reset();
  predictor_.reset();
  for (PortTimeline *ports : {&intPorts_, &mulPorts_, &branchPorts_, &fpPorts_, &fpAddPorts_, &fpMulPorts_,
                              &memoryPorts_, &loadPorts_, &storePorts_})
    ports->reset();
  textFits_ = textBytes + 2 * l1i_.lineBytes() <= l1i_.capacityBytes();
  fetched_.clear();
  stats_ = {};
  phase_ = Phase::NextBlock;
  nextBlock_ = access_ = accessEnd_ = 0;
  hasTurn_ = false;
  ready_.fill(0);
  for (auto *ring : {&retireOf_, &loadFree_, &storeFree_, &missFree_})
    std::fill(ring->begin(), ring->end(), 0);
  rob_ = loadEntry_ = storeEntry_ = 0;
  dispatch_ = frontend_ = retire_ = commit_ = startCycle;
  lastTaken_ = -1;
  dispatched_ = retired_ = committed_ = 0;
  intDividerFree_ = fpDividerFree_ = 0;
  forwards_.fill({});
}

void OutOfOrderCore::advancePorts(int64_t cycle) {
  for (PortTimeline *ports : {&intPorts_, &mulPorts_, &branchPorts_, &fpPorts_, &fpAddPorts_, &fpMulPorts_,
                              &memoryPorts_, &loadPorts_, &storePorts_})
    ports->advance(cycle);
}

bool OutOfOrderCore::nextBlock() {
  if (nextBlock_ >= functional_->blocks().size()) {
    functional_->run(traceBlocks);
    nextBlock_ = 0;
    if (functional_->blocks().empty() || functional_->state == CoreState::Trapped)
      return false;
  }
  const std::vector<TracedBlock> &blocks = functional_->blocks();
  const TracedBlock &traced = blocks[nextBlock_++];
  bool isLast = nextBlock_ == blocks.size();
  access_ = traced.firstAccess;
  accessEnd_ = isLast ? functional_->accesses().size() : blocks[nextBlock_].firstAccess;
  nextPc_ = isLast ? functional_->nextPc() : blocks[nextBlock_].block->pc;
  block_ = traced.block;
  plan_ = &plans_->planOf(*block_);
  index_ = 0;
  resumeAddress_ = 0;
  return true;
}

bool OutOfOrderCore::fetch() {
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

__attribute__((always_inline)) inline void OutOfOrderCore::dispatch(const OpPlan &plan) {
  // HM-1: the window has room when the instruction robEntries ago has retired; the queues likewise.
  int64_t cycle = std::max({dispatch_, frontend_, retireOf_[rob_]});
  if (plan.kind == OpKind::Load || plan.kind == OpKind::FpLoad)
    cycle = std::max(cycle, loadFree_[loadEntry_]);
  else if (plan.kind == OpKind::Store || plan.kind == OpKind::FpStore)
    cycle = std::max(cycle, storeFree_[storeEntry_]);
  if (cycle == dispatch_ && dispatched_ >= config_.dispatchWidth)
    ++cycle;
  // The front end follows one taken branch a cycle.
  bool isBranch = plan.kind >= OpKind::Branch && plan.kind <= OpKind::IndirectJump;
  bool isTaken = isBranch && (plan.kind != OpKind::Branch || nextPc_ != block_->endPc);
  if (isTaken) {
    cycle = std::max(cycle, lastTaken_ + 1);
    lastTaken_ = cycle;
  }
  if (cycle > dispatch_) {
    if (cycle >> 6 != dispatch_ >> 6)
      advancePorts(cycle);
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

__attribute__((always_inline)) inline int64_t OutOfOrderCore::placeOf(const OpPlan &plan, int64_t cycle) {
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

__attribute__((always_inline)) inline int64_t OutOfOrderCore::startOf(const OpPlan &plan, int64_t cycle) {
  int64_t last = placeOf(plan, cycle);
  for (uint16_t step = 1; step < plan.steps; ++step)
    last = std::max(last, placeOf(plan, cycle));
  return last;
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
  if (plan.kind == OpKind::Load || plan.kind == OpKind::FpLoad) {
    loadFree_[loadEntry_] = retire_;
    loadEntry_ = loadEntry_ + 1 == loadFree_.size() ? 0 : loadEntry_ + 1;
  } else if (plan.kind == OpKind::Store || plan.kind == OpKind::FpStore) {
    // HM-4: stores leave the queue in order after they have retired, when their line is there.
    int64_t leaves = std::max({commit_, retire_, lineAt_});
    if (leaves == commit_ && committed_ >= config_.storePorts)
      ++leaves;
    if (leaves > commit_)
      commit_ = leaves, committed_ = 0;
    ++committed_;
    storeFree_[storeEntry_] = commit_;
    if (forward_ != nullptr)
      forward_->commitAt = commit_;
    forward_ = nullptr;
    storeEntry_ = storeEntry_ + 1 == storeFree_.size() ? 0 : storeEntry_ + 1;
  }
}

bool OutOfOrderCore::step(const OpPlan &plan) {
  bool isLoad = plan.kind == OpKind::Load || plan.kind == OpKind::FpLoad;
  bool isStore = plan.kind == OpKind::Store || plan.kind == OpKind::FpStore;
  if (phase_ == Phase::Place) {
    dispatch(plan);
    // HM-2: sources and a port must be ready.
    int64_t cycle = std::max({dispatch_ + 1, ready_[plan.rs1], ready_[plan.rs2], ready_[plan.rs3]});
    start_ = startOf(plan, cycle);
    done_ = start_ + plan.latency;
    lineAt_ = start_;
    hasMissed_ = false;
    phase_ = Phase::Access;
  }
  if (isLoad ? !load(plan) : isStore ? !store() : false)
    return false;
  phase_ = Phase::Place;
  ready_[plan.rd] = done_;
  if (plan.kind >= OpKind::Branch && plan.kind <= OpKind::IndirectJump)
    branch(plan);
  retire(plan);
  return true;
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

int64_t OutOfOrderCore::readSecond(uint64_t address, int64_t cycle, bool isData) {
  ++stats_.l2Accesses;
  int64_t there;
  if (TimedCache::Line *line = l2_.touch(address)) {
    there = std::max(cycle + l2Cycles_, line->readyAt);
  } else {
    ++stats_.l2Misses;
    there = toCycle(memory_.read(id_, address, toPs(cycle)));
    insertSecond(address, cycle, there);
  }
  if (isData && prefetcher_)
    for (uint64_t line : prefetcher_->observe(address)) {
      ++stats_.l2Accesses;
      if (l2_.touch(line) != nullptr)
        continue;
      ++stats_.l2Misses;
      insertSecond(line, cycle, toCycle(memory_.read(id_, line, toPs(cycle))));
    }
  return there;
}

} // namespace nearbank::sim
