// SPDX-License-Identifier: Apache-2.0
// Slots of a group of execution ports in the cycles ahead. Instructions are placed in program order but start out of
// order, so a later one may take an earlier cycle that still has a free port.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace nearbank::sim {

class PortTimeline {
public:
  explicit PortTimeline(int64_t ports = 1) : ports_(static_cast<uint8_t>(ports)) {}

  /// First cycle at or after `cycle` with a free port. Beyond the window every cycle has one.
  int64_t firstFree(int64_t cycle) const {
    for (int64_t word = cycle >> 6;; ++word, cycle = word << 6) {
      if (word >= firstWord_ + numWords)
        return cycle;
      uint64_t free = ~full_[static_cast<size_t>(word & (numWords - 1))] >> (cycle & 63);
      if (free != 0)
        return cycle + std::countr_zero(free);
    }
  }
  /// Takes a port in a cycle that has one.
  void take(int64_t cycle) {
    if (cycle >= (firstWord_ + numWords) << 6)
      return;
    auto slot = static_cast<size_t>(cycle & (numWords * 64 - 1));
    if (++used_[slot] >= ports_)
      full_[slot >> 6] |= uint64_t{1} << (slot & 63);
  }
  /// Forgets what lies before `cycle`; nothing is placed there any more.
  void advance(int64_t cycle) {
    int64_t word = cycle >> 6;
    for (int64_t w = std::max(firstWord_, word - numWords); w < word; ++w) {
      auto slot = static_cast<size_t>(w & (numWords - 1));
      full_[slot] = 0;
      std::fill_n(&used_[slot * 64], 64, uint8_t{0});
    }
    firstWord_ = std::max(firstWord_, word);
  }
  void reset() {
    used_.fill(0), full_.fill(0);
    firstWord_ = 0;
  }

private:
  static constexpr int64_t numWords = 64; ///< A window of 4096 cycles.
  uint8_t ports_;
  std::array<uint8_t, numWords * 64> used_{};
  std::array<uint64_t, numWords> full_{};
  int64_t firstWord_ = 0;
};

} // namespace nearbank::sim
