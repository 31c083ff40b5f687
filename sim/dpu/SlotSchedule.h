// SPDX-License-Identifier: Apache-2.0
// Which tasklet takes which issue slot, as the pipeline gives them out, many slots at once: FAST-1 and
// FAST-2 (docs/model.md).
#pragma once

#include "sim/dpu/DmaEngine.h"
#include "sim/dpu/RoundTable.h"

#include <cstdint>

namespace nearbank::dpu {

/// The tasklet that has been ready longest takes a slot, and is ready again `dispatchCycles` later (DPU-1). Between
/// events, slots are only counted: many rounds of all tasklets at once where each round is like the one before.
class SlotSchedule {
public:
  static constexpr unsigned MaxTasklets = 24;
  /// Slots until the event of a tasklet that has none of its own.
  static constexpr uint64_t Never = uint64_t{1} << 62;

  explicit SlotSchedule(const DpuConfig &config)
      : dma_(config), dispatch_(static_cast<uint64_t>(config.dispatchCycles)),
        table_(RoundTable::of(static_cast<unsigned>(dispatch_), dma_.portGap())) {}

  /// Cycle of the slot of the event that next() returned last.
  uint64_t cycle() const { return cycle_; }
  /// Slots that all tasklets have taken.
  uint64_t issued() const { return issued_; }
  /// Cycles in which DMA kept a slot from being taken (DPU-4).
  uint64_t portCycles() const { return portCycles_; }
  unsigned numActive() const { return count_ - hasCurrent_; }
  DmaEngine &dma() { return dma_; }

  /// Tasklet `id`, which took the slot of this cycle or is ready in `id` when none has been taken yet, has its event in
  /// the `slots`-th of its slots from now on, not counting this one.
  void plan(unsigned id, uint64_t slots);
  /// The same of a tasklet that is ready in `cycle`; of tasklets that are ready at the same time it comes last.
  void planFrom(unsigned id, uint64_t cycle, uint64_t slots);
  /// Lets the event of tasklet `id`, planned as Never, be in its next slot; returns how many slots it has taken since.
  uint64_t hurry(unsigned id);

  /// Goes on to the next event, that of tasklet `id`, which is planned no more; false when there is none.
  bool next(unsigned &id);

private:
  unsigned after(unsigned place) const { return place + 1 == count_ ? 0 : place + 1; }
  uint64_t readyLast() const { return ready_[(first_ == 0 ? count_ : first_) - 1]; }
  uint64_t readyLate() const { return numLate_ ? late_[firstLate_ % MaxLate].ready : Never; }
  /// Takes the slot that could be taken in `wanted` if the WRAM port were free.
  void takeSlot(uint64_t wanted);
  void removeCurrent();
  /// The tasklet that is late takes a slot; true when it is that of an event.
  bool join(unsigned &id);
  // Take many slots at once, if there are many before an event and before one that is ready after `lastReady`.
  void takeBusyRounds(uint64_t lastReady);
  void takeIdleRounds(uint64_t lastReady);

  DmaEngine dma_;
  uint64_t dispatch_, cycle_ = 0, issued_ = 0, portCycles_ = 0;
  const RoundTable *table_;
  // Tasklets in the order in which they take slots, the next one at `first_`, before which the last one is; each with
  // the first cycle in which it may and the slots until its event. The last one is the current event's until it is
  // planned.
  unsigned first_ = 0, count_ = 0;
  bool hasCurrent_ = false;
  uint64_t ready_[MaxTasklets] = {}, slots_[MaxTasklets] = {};
  unsigned ids_[MaxTasklets] = {};
  // Those that are not ready before others will be again.
  static constexpr unsigned MaxLate = 32;
  struct Late {
    uint64_t ready, slots;
    unsigned id;
  };
  unsigned firstLate_ = 0, numLate_ = 0;
  Late late_[MaxLate] = {};
};

} // namespace nearbank::dpu
