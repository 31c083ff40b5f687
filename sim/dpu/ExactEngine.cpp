// SPDX-License-Identifier: Apache-2.0
// The engine `exact`: tasklets interleaved as the pipeline interleaves them, one issue slot at a time.

#include "sim/dpu/Checker.h"
#include "sim/dpu/DmaEngine.h"
#include "sim/dpu/Engine.h"
#include "sim/dpu/Tasklets.h"

#include <fmt/format.h>

namespace nearbank::dpu {
namespace {

class ExactRun : public Tasklets {
public:
  ExactRun(Dpu &dpu, const DpuConfig &config, const RunLimits &limits)
      : Tasklets(dpu, config), dma_(config), limit_(limits.timeoutCycles ? limits.timeoutCycles : ~uint64_t{0}),
        dispatch_(static_cast<uint64_t>(config.dispatchCycles)), checker_(limits.checker) {}

  void run() {
    for (unsigned id = 0; id < numTasklets; ++id)
      ring_[ringEnd_++ & 31] = {id, id};
    while (runTurns() && step()) {
    }
    finish();
  }

private:
  struct Entry {
    uint64_t readyAt;
    uint32_t id;
  };

  // The tasklet that has waited longest; false when none can ever go on.
  bool pick(Entry &entry) {
    bool fromRing = ringBegin_ != ringEnd_;
    if (numLate_ && (!fromRing || late_[numLate_ - 1].readyAt < ring_[ringBegin_ & 31].readyAt)) {
      entry = late_[--numLate_];
      return true;
    }
    if (!fromRing)
      return false;
    entry = ring_[ringBegin_++ & 31];
    return true;
  }
  void requeue(uint32_t id) { ring_[ringEnd_++ & 31] = {cycle_ + dispatch_, id}; }
  // Latest first, so that the next one is at the end.
  void wakeAt(uint32_t id, uint64_t time) {
    unsigned at = numLate_++;
    for (; at > 0 && late_[at - 1].readyAt <= time; --at)
      late_[at] = late_[at - 1];
    late_[at] = {time, id};
  }

  void takePort(uint64_t previous) {
    uint64_t idle = cycle_ - previous - 1;
    while (dma_.nextPort() <= cycle_) {
      if (idle > 0)
        --idle;
      else
        ++cycle_, ++stats.portCycles;
      dma_.advancePort();
    }
  }

  bool step() {
    Entry entry;
    if (!pick(entry)) {
      if (numRunning > 0)
        fail(lastSleeper_, fmt::format("deadlock: {} tasklets sleep and nobody can resume them", numRunning));
      return false;
    }
    uint64_t previous = cycle_;
    cycle_ = std::max(cycle_ + 1, entry.readyAt);
    takePort(previous);
    ++stats.slots;
    Tasklet &tasklet = tasklets[entry.id];
    if (tasklet.pendingSlots > 0) {
      --tasklet.pendingSlots;
      requeue(entry.id);
      return true;
    }
    if (cycle_ > limit_) {
      fail(entry.id, fmt::format("endless loop: more than {} cycles (NEARBANK_TIMEOUT_CYCLES)", limit_));
      return false;
    }
    return issue(entry.id, tasklet);
  }

  // Tasklets of the ring as turns of equal length: each has its place, and a slot in every turn.
  struct Turns {
    static constexpr unsigned Ahead = 64; // Turns that are planned.
    uint64_t start, length;               // First cycle of turn 0; cycles of a turn.
    unsigned count, turn = 0;
    uint32_t ids[24];
    uint64_t offsets[24], readyAt[24]; // Within a turn; before turn 0.
    uint32_t due[Ahead] = {};          // By turn modulo Ahead: bit p for the tasklet at place p.

    // The tasklet at `place` executes when its pending slots, from turn `from` on, are over.
    void plan(unsigned place, Tasklet &tasklet, unsigned from) {
      unsigned wait = std::min(tasklet.pendingSlots, Ahead - 2);
      tasklet.pendingSlots -= wait;
      due[(from + wait) % Ahead] |= 1u << place;
    }
    uint64_t cycleOf(unsigned inTurn, unsigned place) const { return start + inTurn * length + offsets[place]; }
  };

  // Whether, without DMA, locks and the like, the tasklets of the ring keep their places.
  bool makeTurns(Turns &turns) const {
    turns.count = ringEnd_ - ringBegin_;
    auto at = [&](unsigned place) -> const Entry & { return ring_[(ringBegin_ + place) & 31]; };
    bool isFull = turns.count >= dispatch_;
    turns.length = isFull ? turns.count : dispatch_;
    turns.start = std::max(cycle_ + 1, at(0).readyAt);
    for (unsigned place = 0; place < turns.count; ++place) {
      uint64_t ready = at(place).readyAt;
      turns.offsets[place] = isFull ? place : ready - turns.start;
      if (isFull ? ready > turns.start + place
                 : (ready < turns.start || turns.offsets[place] >= dispatch_ ||
                    (place > 0 && turns.offsets[place] <= turns.offsets[place - 1])))
        return false;
      turns.ids[place] = at(place).id;
      turns.readyAt[place] = ready;
    }
    return true;
  }

  // Runs whole turns, as many step()s at once, up to what concerns more than one tasklet; false after a fault.
  bool runTurns() {
    // Trying costs as much as some tens of instructions: after a failure it rests for ever more slots.
    constexpr unsigned longestRest = 512, worthwhile = 64;
    if (restBeforeTurns_ > 0 || checker_ || ringBegin_ == ringEnd_) {
      restBeforeTurns_ -= restBeforeTurns_ > 0;
      return true;
    }
    restBeforeTurns_ = restLength_ = std::min(2 * restLength_, longestRest);
    uint64_t last = std::min(dma_.nextPort() - 1, limit_);
    if (numLate_)
      last = std::min(last, late_[numLate_ - 1].readyAt - 1);
    Turns turns;
    if (last < cycle_ + 63 || !makeTurns(turns))
      return true;
    for (unsigned place = 0; place < turns.count; ++place)
      turns.plan(place, tasklets[turns.ids[place]], 0);
    uint64_t before = stats.instructions;
    bool isGood = true;
    unsigned place = 0;
    for (bool isEnd = false; !isEnd; turns.turn += !isEnd)
      isEnd = !runTurn(turns, last, place, isGood);
    leaveTurns(turns, place);
    if (!isGood) {
      cycle_ = turns.cycleOf(turns.turn, place);
      ++stats.slots;
    }
    if (stats.instructions - before >= worthwhile) {
      restBeforeTurns_ = 0;
      restLength_ = 8;
    }
    return isGood;
  }

  // False when the turn could not be ended: `place` is the first one that has not had its slot.
  bool runTurn(Turns &turns, uint64_t last, unsigned &place, bool &isGood) {
    uint32_t &due = turns.due[turns.turn % Turns::Ahead];
    unsigned numPlaces = turns.count; // Those whose slot comes before the end.
    while (numPlaces > 0 && turns.cycleOf(turns.turn, numPlaces - 1) > last)
      --numPlaces;
    for (uint32_t mask = due & ((1u << numPlaces) - 1); mask; mask &= mask - 1) {
      place = static_cast<unsigned>(std::countr_zero(mask));
      uint32_t id = turns.ids[place];
      Tasklet &tasklet = tasklets[id];
      if (tasklet.pendingSlots > 0)
        --tasklet.pendingSlots;
      else if (!issueAlone(id, tasklet, isGood))
        return false;
      due &= ~(1u << place);
      turns.plan(place, tasklet, turns.turn + 1);
    }
    place = numPlaces % turns.count;
    return numPlaces == turns.count;
  }

  // Puts tasklets back into the ring; those before `place` have had their slot of this turn.
  void leaveTurns(const Turns &turns, unsigned place) {
    ringBegin_ = ringEnd_ = 0;
    stats.slots += uint64_t{turns.turn} * turns.count + place;
    for (unsigned i = 0; i < turns.count; ++i) {
      unsigned at = (place + i) % turns.count, next = turns.turn + (at < place);
      uint32_t id = turns.ids[at];
      unsigned wait = 0;
      while (!(turns.due[(next + wait) % Turns::Ahead] >> at & 1))
        ++wait;
      tasklets[id].pendingSlots += wait;
      uint64_t ready = turns.readyAt[at];
      if (next > 0) {
        cycle_ = turns.cycleOf(next - 1, at); // In the end of the last one, which had the latest slot.
        ready = cycle_ + dispatch_;
      }
      ring_[ringEnd_++] = {ready, id};
    }
  }

  // Executes up to and with the next instruction that takes a slot; false before one that concerns others.
  bool issueAlone(uint32_t id, Tasklet &tasklet, bool &isGood) {
    for (;;) {
      if (tasklet.pc >= numInstructions_)
        return false;
      const Instruction &in = instructions_[tasklet.pc];
      if (isForEngine(in.op) || in.routineSlots)
        return false;
      Effect effect;
      execute(id, tasklet, in, effect);
      ++stats.instructions;
      uint32_t slots = in.slots + effect.extraSlots;
      stats.slotsOf[static_cast<unsigned>(in.kind)] += slots;
      if (__builtin_expect(effect.kind != Effect::None, 0)) {
        isGood = false;
        return false;
      }
      if (slots > 0) {
        tasklet.pendingSlots = slots - 1;
        return true;
      }
    }
  }

  // Executes up to and with the next instruction that takes a slot.
  bool issue(uint32_t id, Tasklet &tasklet) {
    for (;;) {
      if (tasklet.pc >= numInstructions_) {
        fail(id, "jump out of the program", tasklet.pc * 4 + TextBase);
        return false;
      }
      const Instruction &in = instructions_[tasklet.pc];
      if (in.op == Op::DmaLoad || in.op == Op::DmaStore) {
        if (in.slots > 1 && !tasklet.isPrepared) {
          tasklet.isPrepared = true;
          tasklet.pendingSlots = in.slots - 2u;
          stats.slotsOf[static_cast<unsigned>(SlotKind::Arithmetic)] += in.slots - 1u;
          requeue(id);
          return true;
        }
        tasklet.isPrepared = false;
      }
      if (in.routineSlots && tasklet.registers[1] >= TextBase) {
        if (!callRoutine(id, tasklet))
          return false;
        uint32_t slots = in.routineSlots - 1u;
        tasklet.pendingSlots = slots - 1;
        stats.slotsOf[static_cast<unsigned>(in.kind)] += slots;
        requeue(id);
        return true;
      }
      if (__builtin_expect(checker_ != nullptr, 0))
        checker_->observe(id, tasklet, in, tasklets[tasklet.registers[in.rs1] % 24].isAsleep);
      Effect effect;
      execute(id, tasklet, in, effect);
      ++stats.instructions;
      uint32_t slots = in.slots + effect.extraSlots;
      stats.slotsOf[static_cast<unsigned>(in.kind)] += slots;
      if (__builtin_expect(effect.kind != Effect::None, 0))
        return special(id, tasklet, effect, slots);
      if (slots > 0) {
        tasklet.pendingSlots = slots - 1;
        requeue(id);
        return true;
      }
    }
  }

  bool special(uint32_t id, Tasklet &tasklet, const Effect &effect, uint32_t slots) {
    tasklet.pendingSlots = slots > 0 ? slots - 1 : 0;
    switch (effect.kind) {
    case Effect::Dma: {
      uint64_t wake = dma_.start(cycle_, effect.bytes, effect.isRead);
      if (effect.writesBack)
        wake = dma_.start(wake, effect.bytes, false);
      wake = std::max(wake, cycle_ + dispatch_);
      stats.dmaStallCycles += wake - (cycle_ + dispatch_);
      wakeAt(id, wake);
      return true;
    }
    case Effect::Stop:
      tasklet.isAsleep = true;
      tasklet.sleepStart = cycle_;
      lastSleeper_ = id;
      return true;
    case Effect::Resume:
      tasklets[effect.target].isAsleep = false;
      stats.sleepCycles += cycle_ - tasklets[effect.target].sleepStart;
      wakeAt(effect.target, cycle_ + dispatch_);
      requeue(id);
      return true;
    case Effect::Halt:
      stats.taskletCycles += cycle_;
      --numRunning;
      return true;
    case Effect::Counter: {
      uint64_t events = dpu.counterMode == 1 ? cycle_ : dpu.counterMode == 2 ? stats.slots : counterBase_;
      tasklet.registers[effect.target] = static_cast<uint32_t>((events - counterBase_) >> 4);
      tasklet.registers[0] = 0;
      if (effect.bytes != 0) // New mode, COUNT_SAME excepted.
        dpu.counterMode = effect.bytes;
      if (effect.writesBack)
        counterBase_ = dpu.counterMode == 1 ? cycle_ : dpu.counterMode == 2 ? stats.slots : 0;
      requeue(id);
      return true;
    }
    case Effect::Retry:
      requeue(id);
      return true;
    case Effect::Faulted:
      return false;
    case Effect::None:
      break;
    }
    requeue(id);
    return true;
  }

  void finish() {
    stats.cycles = cycle_ + dispatch_;
    stats.dmaBusyCycles = dma_.busyCycles();
    stats.tasklets = numTasklets;
    dpu.last = stats;
    dpu.total.add(stats);
  }

  const Instruction *instructions_ = code.data();
  size_t numInstructions_ = code.size();
  DmaEngine dma_;
  uint64_t limit_, dispatch_;
  Checker *checker_;
  uint64_t cycle_ = 0, counterBase_ = 0;
  Entry ring_[32] = {}, late_[32] = {};
  unsigned ringBegin_ = 0, ringEnd_ = 0, numLate_ = 0, restBeforeTurns_ = 0, restLength_ = 8;
  uint32_t lastSleeper_ = 0;
};

class ExactEngine : public Engine {
public:
  explicit ExactEngine(const DpuConfig &config) : config_(config) {}
  void run(Dpu &dpu, const RunLimits &limits) override { ExactRun(dpu, config_, limits).run(); }

private:
  const DpuConfig &config_;
};

} // namespace

std::unique_ptr<Engine> makeExactEngine(const DpuConfig &config) { return std::make_unique<ExactEngine>(config); }

} // namespace nearbank::dpu
