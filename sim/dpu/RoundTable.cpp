// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/RoundTable.h"

#include <bit>
#include <map>
#include <memory>
#include <mutex>

namespace nearbank::dpu {

const RoundTable *RoundTable::of(unsigned length, unsigned gap) {
  // The port is faster than two cycles, or does not come in every round: for others each slot is taken by itself.
  if (length < 2 || length > MaxLength || gap < 2 || gap + 1 >= length)
    return nullptr;
  static std::mutex mutex;
  static std::map<std::pair<unsigned, unsigned>, std::unique_ptr<RoundTable>> tables;
  std::lock_guard lock(mutex);
  std::unique_ptr<RoundTable> &table = tables[{length, gap}];
  if (!table)
    table.reset(new RoundTable(length, gap));
  return table.get();
}

RoundTable::RoundTable(unsigned length, unsigned gap)
    : length_(length), gap_(gap), counts_(1u << length), steps_(2u << length) {
  for (unsigned round = 0; round < counts_.size(); ++round)
    counts_[round] = static_cast<uint8_t>(std::popcount(round));
  for (unsigned i = 0; i < steps_.size(); ++i) {
    unsigned round = i & ((1u << length) - 1), cycles = gap + (i >> length), later = delayed(round);
    uint32_t slots = counts_[later & ~(~0u << cycles)];
    steps_[i] = {static_cast<uint16_t>(rotated(later, cycles)), (later & rotated(later, 1)) != 0,
                 slots | uint32_t{later != round} << 16};
  }
}

unsigned RoundTable::delayed(unsigned round) const {
  bool isDelay = (round & 1) && round >> (length_ - 1) && std::popcount(round) < static_cast<int>(length_);
  return isDelay ? round ^ (1u | 1u << std::countr_one(round)) : round;
}

} // namespace nearbank::dpu
