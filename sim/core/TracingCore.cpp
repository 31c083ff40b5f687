// SPDX-License-Identifier: Apache-2.0
// Slow paths of a tracing core.
#include "sim/core/TracingCore.h"

#include "sim/core/Interpreter.h"
#include "sim/isa/HostFeatures.h"

#include <algorithm>

namespace nearbank::sim {
namespace {

using Run = void (*)(TracingCore *, const void *const **);

const Run chosenRun = runsFmaBuilds() ? tracingFma::run : tracingBaseline::run;

} // namespace

const void *const *tracingHandlers() {
  static const void *const *const handlers = [] {
    const void *const *table = nullptr;
    chosenRun(nullptr, &table);
    return table;
  }();
  return handlers;
}

void interpret(TracingCore &core) { chosenRun(&core, nullptr); }

void TracingCore::start(Translation &translation, const GuestMemory &memory, uint64_t pc, uint64_t haltPc) {
  Core::start(translation, memory, pc, haltPc);
  for (auto &windows : windows_)
    windows.fill({});
  blocks_.clear();
  accesses_.clear();
}

void TracingCore::run(size_t blockLimit) {
  blocks_.clear();
  accesses_.clear();
  if (state != CoreState::Ready)
    return;
  blockLimit_ = blockLimit;
  ++timed->executions;
  enter(timed);
  op = timed->ops;
  // What the host computed since the last run is none of the guest's business, and the other way round.
  uint32_t ignored = 0;
  takeHostFlags(ignored);
  setHostRounding(roundingMode);
  interpret(*this);
  takeHostFlags(softFlags);
  setHostRounding(0);
}

char *TracingCore::access(uint64_t address, unsigned bytes, bool isStore, unsigned index) {
  const MemoryRange *range = memory_->find(address);
  if (range == nullptr || range->end - address < bytes)
    return trap(TrapKind::AccessOutside, address, bytes), nullptr;
  if (isStore && !range->isWritable)
    return trap(TrapKind::WriteToReadOnly, address, bytes), nullptr;
  windows_[isStore][index % numWindows] = {range->begin, range->end - range->begin, range->hostDelta};
  return trace(address, bytes, isStore, index);
}

TimedBlock *TracingCore::follow(unsigned edge, uint64_t targetPc) {
  if (targetPc == haltPc_) {
    state = CoreState::Halted;
    return nullptr;
  }
  TimedBlock *next = translation_->enter(targetPc, 0);
  if (next == nullptr)
    return trap(TrapKind::JumpOutside, targetPc, 0), nullptr;
  return timed->edges[edge].next = next;
}

} // namespace nearbank::sim
