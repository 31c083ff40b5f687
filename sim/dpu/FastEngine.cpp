// SPDX-License-Identifier: Apache-2.0
// The engine `fast`: native code between events, events in the slots in which `exact` has them (docs/model.md, FAST-1
// to FAST-3).

#include "sim/dpu/Engine.h"
#include "sim/dpu/SlotSchedule.h"
#include "sim/dpu/Tasklets.h"

#include "runtime/Error.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <map>
#include <mutex>

namespace nearbank::dpu {
namespace {

/// Slots that a tasklet may run ahead of the others.
constexpr uint64_t BudgetSlots = 8192;
constexpr uint64_t FieldMask = (uint64_t{1} << CountBits) - 1;

class FastRun : public Tasklets {
public:
  FastRun(Dpu &dpu, const DpuConfig &config, const RunLimits &limits, NativeProgram &native)
      : Tasklets(dpu, config), native_(native), schedule_(config),
        limit_(limits.timeoutCycles ? limits.timeoutCycles : ~uint64_t{0}),
        dispatch_(static_cast<uint64_t>(config.dispatchCycles)) {
    if (native.hasSpinLoops)
      watched_.resize(WramBytes / 8);
  }

  void run() {
    for (unsigned id = 0; id < numTasklets; ++id)
      runOn(id);
    unsigned id;
    do {
      if (!schedule_.next(id)) {
        explainStop();
        break;
      }
    } while (act(id));
    finish();
  }

private:
  enum class Next : uint8_t { Event, Budget, Failed };
  /// What a tasklet does when its time has come, or the atomic bit it waits for.
  struct Plan {
    Next next = Next::Event;
    bool isWaiting = false;
    uint8_t bit = 0;
  };

  // No events are left: all tasklets have ended, or those that have not never will.
  void explainStop() {
    for (unsigned id = 0; id < numTasklets; ++id)
      if (plans_[id].isWaiting) {
        isTooLate_ = limit_ != ~uint64_t{0};
        if (isTooLate_)
          failTooLong(id);
        else
          fail(id,
               fmt::format("deadlock: {} tasklets wait for atomic bits that nobody releases", schedule_.numActive()));
        return;
      }
    if (numRunning > 0)
      fail(lastSleeper_, fmt::format("deadlock: {} tasklets sleep and nobody can resume them", numRunning));
  }
  void failTooLong(uint32_t id) {
    fail(id, fmt::format("endless loop: more than {} cycles (NEARBANK_TIMEOUT_CYCLES)", limit_));
  }

  // What tasklet `id` came to is due now.
  bool act(uint32_t id) {
    if (schedule_.cycle() > limit_) {
      failTooLong(id);
      return false;
    }
    switch (plans_[id].next) {
    case Next::Budget:
      runOn(id);
      return true;
    case Next::Failed:
      return false;
    case Next::Event:
      break;
    }
    Tasklet &tasklet = tasklets[id];
    if (tasklet.pc >= code.size()) {
      fail(id, "jump out of the program", tasklet.pc * 4 + TextBase);
      return false;
    }
    const Instruction &in = code[tasklet.pc];
    uint32_t address = tasklet.registers[in.rs1] + static_cast<uint32_t>(in.imm);
    if (native_.isSpinLoad[tasklet.pc] && address < WramBytes)
      watched_[address / 8] = 1;
    Effect effect;
    execute(id, tasklet, in, effect);
    ++stats.instructions;
    uint32_t slots = in.slots + effect.extraSlots;
    stats.slotsOf[static_cast<unsigned>(in.kind)] += slots;
    tasklet.pendingSlots = slots > 0 ? slots - 1 : 0;
    if (in.op == Op::Release)
      release(static_cast<uint8_t>(tasklet.registers[in.rs1]));
    return settle(id, in, effect);
  }

  bool settle(uint32_t id, const Instruction &in, const Effect &effect) {
    Tasklet &tasklet = tasklets[id];
    switch (effect.kind) {
    case Effect::Dma:
      runOn(id, startDma(effect));
      return true;
    case Effect::Stop:
      tasklet.isAsleep = true;
      tasklet.sleepStart = schedule_.cycle();
      lastSleeper_ = id;
      return true;
    case Effect::Resume:
      tasklets[effect.target].isAsleep = false;
      stats.sleepCycles += schedule_.cycle() - tasklets[effect.target].sleepStart;
      runOn(effect.target, schedule_.cycle() + dispatch_);
      break;
    case Effect::Halt:
      stats.taskletCycles += schedule_.cycle();
      --numRunning;
      return true;
    case Effect::Counter:
      readCounter(tasklet, effect);
      break;
    case Effect::Retry:
      plans_[id].isWaiting = in.op == Op::Acquire;
      plans_[id].bit = static_cast<uint8_t>(tasklet.registers[in.rs1]);
      schedule_.plan(id, plans_[id].isWaiting ? SlotSchedule::Never : 1);
      return true;
    case Effect::Faulted:
      return false;
    case Effect::None:
      break;
    }
    runOn(id);
    return true;
  }

  // Returns when the tasklet is ready again.
  uint64_t startDma(const Effect &effect) {
    uint64_t wake = schedule_.dma().start(schedule_.cycle(), effect.bytes, effect.isRead);
    if (effect.writesBack)
      wake = schedule_.dma().start(wake, effect.bytes, false);
    uint64_t soonest = schedule_.cycle() + dispatch_;
    wake = std::max(wake, soonest);
    stats.dmaStallCycles += wake - soonest;
    return wake;
  }

  void readCounter(Tasklet &tasklet, const Effect &effect) {
    auto events = [&] {
      return dpu.counterMode == 1 ? schedule_.cycle() : dpu.counterMode == 2 ? schedule_.issued() : counterBase_;
    };
    tasklet.registers[effect.target] = static_cast<uint32_t>((events() - counterBase_) >> 4);
    tasklet.registers[0] = 0;
    if (effect.bytes != 0) // New mode, COUNT_SAME excepted.
      dpu.counterMode = effect.bytes;
    if (effect.writesBack)
      counterBase_ = dpu.counterMode == 0 ? 0 : events();
  }

  void release(uint8_t bit) {
    for (unsigned id = 0; id < numTasklets; ++id) {
      Plan &plan = plans_[id];
      if (!plan.isWaiting || plan.bit != bit)
        continue;
      plan.isWaiting = false;
      uint64_t failed = schedule_.hurry(id);
      stats.instructions += failed;
      stats.slotsOf[static_cast<unsigned>(SlotKind::Synchronisation)] += failed;
    }
  }

  // Runs tasklet `id` up to what only the engine can do, or until it has used its budget; plans that for the slot in
  // which it comes. The tasklet goes on after this cycle's slot, or is ready in cycle `ready`.
  void runOn(uint32_t id, uint64_t ready = 0) {
    Tasklet &tasklet = tasklets[id];
    NativeCall call{.wram = wram,
                    .limit = BudgetSlots << 2 * CountBits,
                    .watched = watched_.data(),
                    .stackStart = dpu.program()->stackStart[id],
                    .pc = tasklet.pc};
    uint64_t accounted = 0; // Slots of `call` whose kind has been counted.
    Next next = Next::Budget;
    while (call.counts[0] < call.limit) {
      if (call.pc >= code.size()) {
        next = Next::Event;
        break;
      }
      const Instruction &in = code[call.pc];
      if (in.routineSlots && tasklet.registers[1] >= TextBase) {
        if (!callNative(id, call)) {
          next = Next::Failed;
          break;
        }
        take(call, in.kind, in.routineSlots - 1u, accounted);
        continue;
      }
      if (NativeFunction function = native_.at(call.pc)) {
        NativeStop stop = function(tasklet.registers, &call);
        if (stop == NativeStop::GoOn)
          continue;
        next = stop == NativeStop::Engine ? Next::Event : Next::Budget;
        break;
      }
      if (isForNow(tasklet, call.pc)) {
        next = Next::Event;
        break;
      }
      interpret(id, call, accounted);
    }
    Op last = call.pc < code.size() ? code[call.pc].op : Op::Illegal;
    if (next == Next::Event && (last == Op::DmaLoad || last == Op::DmaStore))
      take(call, SlotKind::Arithmetic, code[call.pc].slots - 1u, accounted);
    tasklet.pc = call.pc;
    uint64_t slots = tasklet.pendingSlots + count(call, accounted) + (next != Next::Budget);
    plans_[id].next = next;
    tasklet.pendingSlots = 0;
    if (ready > 0)
      schedule_.planFrom(id, ready, slots);
    else
      schedule_.plan(id, slots);
  }

  void take(NativeCall &call, SlotKind kind, uint64_t slots, uint64_t &accounted) {
    stats.slotsOf[static_cast<unsigned>(kind)] += slots;
    call.counts[0] += slots << 2 * CountBits;
    accounted += slots;
  }

  // Adds what native code counted; returns all slots.
  uint64_t count(const NativeCall &call, uint64_t accounted) {
    uint64_t slots = call.counts[0] >> 2 * CountBits, arithmetic = call.counts[0] >> CountBits & FieldMask,
             memory = call.counts[0] & FieldMask, control = call.counts[1] >> 2 * CountBits,
             multiply = call.counts[1] >> CountBits & FieldMask;
    auto add = [&](SlotKind kind, uint64_t number) { stats.slotsOf[static_cast<unsigned>(kind)] += number; };
    add(SlotKind::Arithmetic, arithmetic);
    add(SlotKind::Memory, memory);
    add(SlotKind::Control, control);
    add(SlotKind::Multiply, multiply);
    add(SlotKind::Divide, slots - accounted - arithmetic - memory - control - multiply);
    stats.instructions += call.counts[1] & FieldMask;
    return slots;
  }

  // Whether the instruction must wait for its place in virtual time.
  bool isForNow(const Tasklet &tasklet, uint32_t pc) const {
    const Instruction &in = code[pc];
    uint32_t address = tasklet.registers[in.rs1] + static_cast<uint32_t>(in.imm);
    if (isForEngine(in.op) || native_.isSpinLoad[pc])
      return true;
    if (in.op == Op::AddSp)
      return in.imm < 0 && address < dpu.program()->stackStart[tasklet.registers[IdRegister]];
    if (!isLoad(in.op) && !isStore(in.op))
      return false;
    return address >= WramBytes || address % 4 != 0 ||
           (isStore(in.op) && native_.hasSpinLoops && watched_[address / 8]);
  }

  void interpret(uint32_t id, NativeCall &call, uint64_t &accounted) {
    Tasklet &tasklet = tasklets[id];
    const Instruction &in = code[call.pc];
    tasklet.pc = call.pc;
    Effect effect;
    execute(id, tasklet, in, effect);
    ++stats.instructions;
    take(call, in.kind, in.slots + effect.extraSlots, accounted);
    call.pc = tasklet.pc;
  }

  // Runs a library routine to its end, outside time.
  bool callNative(uint32_t id, NativeCall &call) {
    Tasklet &tasklet = tasklets[id];
    NativeCall inner = call;
    inner.limit = ~uint64_t{0};
    inner.counts[0] = inner.counts[1] = 0;
    uint32_t back = (tasklet.registers[1] - TextBase) >> 2;
    while (inner.pc != back) {
      NativeFunction function = inner.pc < code.size() ? native_.at(inner.pc) : nullptr;
      if (function && function(tasklet.registers, &inner) != NativeStop::Engine)
        continue;
      tasklet.pc = inner.pc;
      if (inner.pc >= code.size()) {
        fail(id, "jump out of the program", inner.pc * 4 + TextBase);
        return false;
      }
      Effect effect;
      execute(id, tasklet, code[inner.pc], effect);
      ++stats.instructions;
      inner.pc = tasklet.pc;
      if (effect.kind == Effect::Faulted)
        return false;
    }
    stats.instructions += inner.counts[1] & FieldMask;
    call.pc = back;
    return true;
  }

  void finish() {
    stats.cycles = (isTooLate_ ? limit_ + 1 : schedule_.cycle()) + dispatch_;
    stats.slots = 0;
    for (uint64_t slots : stats.slotsOf)
      stats.slots += slots;
    stats.portCycles = schedule_.portCycles();
    stats.dmaBusyCycles = schedule_.dma().busyCycles();
    stats.tasklets = numTasklets;
    dpu.last = stats;
    dpu.total.add(stats);
  }

  NativeProgram &native_;
  SlotSchedule schedule_;
  uint64_t limit_, dispatch_;
  Plan plans_[SlotSchedule::MaxTasklets];
  std::vector<uint8_t> watched_;
  uint64_t counterBase_ = 0;
  uint32_t lastSleeper_ = 0;
  bool isTooLate_ = false; // Tasklets wait in vain until the limit.
};

class FastEngine : public Engine {
public:
  FastEngine(const DpuConfig &config, Translator &translator) : config_(config), translator_(translator) {}

  void run(Dpu &dpu, const RunLimits &limits) override {
    FastRun(dpu, config_, limits, *nativeOf(dpu.program())).run();
  }

private:
  std::shared_ptr<NativeProgram> nativeOf(const std::shared_ptr<const Program> &program) {
    std::lock_guard lock(mutex_);
    std::erase_if(programs_, [](const auto &entry) { return entry.first.expired(); });
    std::shared_ptr<NativeProgram> &native = programs_[program];
    if (!native)
      native = translator_.translate(*program, config_);
    return native;
  }

  const DpuConfig &config_;
  Translator &translator_;
  std::mutex mutex_;
  std::map<std::weak_ptr<const Program>, std::shared_ptr<NativeProgram>, std::owner_less<>> programs_;
};

} // namespace

std::unique_ptr<Engine> makeFastEngine(const DpuConfig &config, Translator &translator) {
  return std::make_unique<FastEngine>(config, translator);
}

std::unique_ptr<Engine> makeFastEngine(const DpuConfig &config, const std::string &translatorPath) {
  // Stays loaded: its code may run until the process ends.
  void *library = dlopen(translatorPath.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto *make = library ? reinterpret_cast<Translator *(*)()>(dlsym(library, TranslatorSymbol)) : nullptr;
  if (!make)
    throw DeviceError(
        {"NB0812", "the engine fast has no translator", translatorPath,
         "a library of this build that loads, and LLVM 22", dlerror(),
         "apt-get install llvm-22-dev and build with NEARBANK_BUILD_COMPILER=ON, or NEARBANK_UPMEM=exact"});
  return makeFastEngine(config, *make());
}

} // namespace nearbank::dpu
