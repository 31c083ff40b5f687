// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/SlotSchedule.h"

#include <algorithm>
#include <bit>

namespace nearbank::dpu {

void SlotSchedule::plan(unsigned id, uint64_t slots) {
  unsigned place = hasCurrent_ ? (first_ == 0 ? count_ : first_) - 1 : count_++;
  hasCurrent_ = false;
  ready_[place] = issued_ ? cycle_ + dispatch_ : id;
  slots_[place] = slots;
  ids_[place] = id;
}

void SlotSchedule::planFrom(unsigned id, uint64_t cycle, uint64_t slots) {
  unsigned place = firstLate_ + numLate_++;
  for (; place != firstLate_ && late_[(place - 1) % MaxLate].ready > cycle; --place)
    late_[place % MaxLate] = late_[(place - 1) % MaxLate];
  late_[place % MaxLate] = {cycle, slots, id};
}

uint64_t SlotSchedule::hurry(unsigned id) {
  auto place = static_cast<unsigned>(std::find(ids_, ids_ + count_, id) - ids_);
  uint64_t taken = Never - slots_[place];
  slots_[place] = 1;
  return taken;
}

bool SlotSchedule::next(unsigned &id) {
  if (hasCurrent_)
    removeCurrent();
  for (;;) {
    uint64_t lastReady = readyLate();
    if (numLate_ == 0 && std::all_of(slots_, slots_ + count_, [](uint64_t slots) { return slots >= Never / 2; }))
      return false; // None is left, or all wait for each other.
    if (count_ >= dispatch_)
      takeBusyRounds(lastReady);
    else if (count_ > 0)
      takeIdleRounds(lastReady);
    // Slot by slot, until it may be worth while to look for rounds again.
    unsigned place = first_;
    for (unsigned left = count_; left > 0 && ready_[place] <= lastReady; --left) {
      takeSlot(std::max(cycle_ + 1, ready_[place]));
      ready_[place] = cycle_ + dispatch_;
      unsigned next = after(place);
      if (--slots_[place] == 0) {
        id = ids_[place];
        first_ = next;
        return hasCurrent_ = true;
      }
      place = next;
    }
    first_ = place;
    if ((count_ == 0 || lastReady < ready_[place]) && join(id))
      return true;
  }
}

inline void SlotSchedule::takeSlot(uint64_t wanted) {
  if (dma_.nextPort() <= wanted) {
    uint64_t idle = wanted - cycle_ - 1;
    do {
      if (idle > 0)
        --idle;
      else
        ++wanted, ++portCycles_;
      dma_.advancePort();
    } while (dma_.nextPort() <= wanted);
  }
  cycle_ = wanted;
  ++issued_;
}

void SlotSchedule::removeCurrent() {
  unsigned place = (first_ == 0 ? count_ : first_) - 1;
  --count_;
  for (unsigned k = place; k < count_; ++k)
    ready_[k] = ready_[k + 1], slots_[k] = slots_[k + 1], ids_[k] = ids_[k + 1];
  first_ = place == count_ ? 0 : place;
  hasCurrent_ = false;
}

bool SlotSchedule::join(unsigned &id) {
  const Late &late = late_[firstLate_++ % MaxLate];
  --numLate_;
  takeSlot(std::max(cycle_ + 1, late.ready));
  // Comes last: before the first one, or at the end.
  unsigned place = first_ == 0 ? count_ : first_++;
  for (unsigned k = count_++; k > place; --k)
    ready_[k] = ready_[k - 1], slots_[k] = slots_[k - 1], ids_[k] = ids_[k - 1];
  ready_[place] = cycle_ + dispatch_;
  slots_[place] = late.slots - 1;
  id = ids_[place] = late.id;
  return hasCurrent_ = late.slots == 1;
}

// With so many tasklets each of them waits for its slot: a round takes as many cycles as there are tasklets, and one
// for each double word at the WRAM port.
void SlotSchedule::takeBusyRounds(uint64_t lastReady) {
  uint64_t rounds = std::min(*std::min_element(slots_, slots_ + count_) - 1, Never / 64), cycle = cycle_ + 1;
  if (rounds < 2 || lastReady < readyLast() + 2 * dispatch_ || dma_.portGap() < 2)
    return;
  for (unsigned k = first_; k < count_; ++k)
    if (ready_[k] > cycle++)
      return;
  for (unsigned k = 0; k < first_; ++k)
    if (ready_[k] > cycle++)
      return;
  // The last round is taken slot by slot, for its cycles; those before it at once.
  uint64_t before = rounds - 1;
  if (lastReady != Never) {
    uint64_t cycles = lastReady - cycle_ - dispatch_;
    before = std::min(before, (cycles - std::min(cycles, dma_.portsUntil(cycle_ + cycles))) / count_);
  }
  uint64_t slots = before * count_, ports = dma_.takePorts(cycle_, slots);
  cycle_ += slots + ports;
  portCycles_ += ports;
  issued_ += slots;
  for (unsigned k = 0; k < count_; ++k) {
    takeSlot(cycle_ + 1);
    ready_[first_] = cycle_ + dispatch_;
    slots_[first_] -= before + 1;
    first_ = after(first_);
  }
}

// With fewer, each keeps its place within `dispatch_` cycles, but when the WRAM port takes the cycle of a slot that
// comes right after another one.
void SlotSchedule::takeIdleRounds(uint64_t lastReady) {
  uint64_t begin = ready_[first_], last = readyLast();
  if (!table_ || begin <= cycle_ || last - begin >= dispatch_ || lastReady < last + 2 * dispatch_)
    return;
  // Before the first event, and so early that what the last ports do happens to slots that are taken one by one.
  constexpr uint64_t most = 1u << 15;
  uint64_t end = std::min(lastReady - dispatch_ + 1, begin + most);
  unsigned round = 0, sum = 0;
  for (unsigned k = 0; k < count_; ++k) {
    unsigned bit = 1u << (ready_[k] - begin);
    round |= bit, sum += bit;
    end = std::min(end, ready_[k] + (std::min(slots_[k], most) - 1) * dispatch_);
  }
  if (sum != round || end < begin + dispatch_)
    return;
  while (dma_.nextPort() < begin) // Nobody minds.
    dma_.advancePort();
  if (dma_.nextPort() == cycle_ + 1)
    return;
  const auto length = static_cast<unsigned>(dispatch_);
  uint64_t from = begin;
  unsigned slots = 0;
  auto goTo = [&](uint64_t to) {
    auto cycles = static_cast<unsigned>(to - from);
    if (cycles >= length) {
      slots += cycles / length * count_;
      cycles %= length;
    }
    slots += table_->count(round & ~(~0u << cycles));
    round = table_->rotated(round, cycles);
    from = to;
  };
  while (dma_.nextPort() < end) {
    goTo(dma_.nextPort());
    uint32_t slotsAndDelays = 0;
    dma_.walkPorts(end - 1, [&](uint64_t gap) {
      RoundTable::Step step = table_->step(round, gap);
      round = step.round;
      slotsAndDelays += step.slotsAndDelays;
      return step.hasNeighbours;
    });
    slots += slotsAndDelays & 0xffff;
    portCycles_ += slotsAndDelays >> 16;
    from = dma_.nextPort();
    unsigned later = table_->delayed(round);
    portCycles_ += later != round;
    round = later;
    bool isFree = !(round & table_->rotated(round, 1));
    dma_.advancePort();
    if (isFree) // Every port finds an idle cycle.
      dma_.skipPorts(end - 1);
  }
  goTo(end);
  unsigned each = slots / count_, rest = slots % count_, place = first_;
  for (unsigned k = 0; k < count_; ++k)
    slots_[k] -= each;
  for (; rest > 0; --rest, place = after(place))
    --slots_[place];
  first_ = place;
  for (unsigned bits = round; bits; bits &= bits - 1, place = after(place))
    ready_[place] = end + static_cast<unsigned>(std::countr_zero(bits));
  cycle_ = end - (round >> (length - 1) ? 1 : 2); // Of the last slot, or no later than an idle cycle before `end`.
  issued_ += slots;
}

} // namespace nearbank::dpu
