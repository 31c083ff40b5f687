// SPDX-License-Identifier: Apache-2.0
// What DMA does to rounds of slots that leave cycles idle, looked up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace nearbank::dpu {

/// Rounds are sets of bits: bit i for a slot in the i-th cycle after some cycle, modulo the length of a round. When the
/// WRAM port takes a cycle (DPU-4), a slot that comes there, right after another one, comes a cycle later, and so do
/// those that follow it up to the next free cycle.
class RoundTable {
public:
  static constexpr unsigned MaxLength = 12;

  /// From one cycle that the port takes to the next one.
  struct Step {
    uint16_t round;     ///< As it is seen from the next one.
    bool hasNeighbours; ///< Whether a slot comes right after another one.
    /// Slots in between, and in the upper half whether one was delayed.
    uint32_t slotsAndDelays;
  };

  /// The table for rounds of `length` cycles and ports that come `gap` or one more cycles one after the other; null
  /// when there is none.
  static const RoundTable *of(unsigned length, unsigned gap);

  Step step(unsigned round, uint64_t gap) const { return steps_[(gap - gap_) << length_ | round]; }
  unsigned count(unsigned round) const { return counts_[round]; }
  /// The round as it is seen `cycles` later, less than a round.
  unsigned rotated(unsigned round, unsigned cycles) const {
    return (round >> cycles | round << (length_ - cycles)) & ~(~0u << length_);
  }
  /// What becomes of it when the port takes the first cycle.
  unsigned delayed(unsigned round) const;

private:
  RoundTable(unsigned length, unsigned gap);

  unsigned length_, gap_;
  std::vector<uint8_t> counts_;
  std::vector<Step> steps_; // For `gap_`, and for one more.
};

} // namespace nearbank::dpu
