// SPDX-License-Identifier: Apache-2.0
// When the events of tasklets happen that share the pipeline in turns: FAST-1 to FAST-3 (docs/model.md).
#pragma once

#include "sim/dpu/DmaEngine.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace nearbank::dpu {

class TurnSchedule {
public:
  static constexpr unsigned MaxTasklets = 24;
  /// Begins in cycle 0 with `numActive` tasklets that want slots.
  TurnSchedule(const DpuConfig &config, unsigned numActive);

  /// Cycle, not whole, of the event that next() returned last.
  double now() const { return now_; }
  /// The same counted in turns: every active tasklet gets one slot while it grows by one.
  double turn() const { return turn_; }
  uint64_t cycle() const { return static_cast<uint64_t>(now_ + 0.5); }
  /// The turn of tasklet `id` in which it would have had its last slot before its first one.
  double firstTurn(unsigned id) const { return (id + 1) / cyclesPerTurn_ - 1; }
  /// Slots that all tasklets have taken.
  double issued() const { return issued_; }
  double portCycles() const { return portCycles_; }
  unsigned numActive() const { return numActive_; }
  DmaEngine &dma() { return dma_; }

  /// Active tasklet `id` has an event at `turn`.
  void plan(unsigned id, double turn) { insert(due_, numDue_, {turn, id}); }
  /// Tasklet `id` does not want slots until `cycle`.
  void leaveUntil(unsigned id, double cycle) {
    insert(joins_, numJoins_, {cycle, id});
    leave();
  }
  void leave() { setActive(numActive_ - 1); }
  /// One more active tasklet; returns its turn, right behind the present one, where the others make room for it.
  double joinBehind();
  /// Active tasklet `id` tries an atomic bit in every turn from this one on.
  void wait(unsigned id) { waits_[id] = turn_; }
  /// Plans the next try of tasklet `id`; returns how many have failed in between.
  uint64_t endWait(unsigned id);

  struct Event {
    unsigned id;
    bool isJoin; ///< The tasklet wants slots again; else what was planned is due.
  };
  /// Goes on to the next event; false when there is none.
  bool next(Event &event);

private:
  struct Entry {
    double time;
    unsigned id;
  };
  using Queue = std::array<Entry, MaxTasklets>;
  static constexpr double Never = std::numeric_limits<double>::infinity();

  // Latest first; of equal ones, the one that came first is the earlier.
  static void insert(Queue &queue, unsigned &count, Entry entry) {
    unsigned at = count++;
    for (; at > 0 && queue[at - 1].time <= entry.time; --at)
      queue[at] = queue[at - 1];
    queue[at] = entry;
  }
  void setActive(unsigned count) {
    numActive_ = count;
    updateRate();
  }
  void updateRate();
  void advance(double cycle) {
    double passed = cycle - now_, turns = passed / cyclesPerTurn_;
    turn_ += turns;
    issued_ += turns * numActive_;
    if (isPortBusy_)
      portCycles_ += std::max(0.0, passed * std::min(1.0, numActive_ / dispatch_) - turns * numActive_);
    now_ = cycle;
  }

  DmaEngine dma_;
  double dispatch_, portInterval_;
  double now_ = 0, turn_ = 0, cyclesPerTurn_ = 1, issued_ = 0, portCycles_ = 0;
  unsigned numActive_, numDue_ = 0, numJoins_ = 0;
  bool isPortBusy_ = false, isPortFelt_ = false;
  Queue due_, joins_;
  std::array<double, MaxTasklets> waits_;
};

} // namespace nearbank::dpu
