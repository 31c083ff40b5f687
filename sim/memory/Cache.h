// SPDX-License-Identifier: Apache-2.0
// Set-associative LRU cache. Lines are kept in recency order, so that a hit on the most recent one needs one compare.
#pragma once

#include "runtime/Machine.h"

#include <cstdint>
#include <vector>

namespace nearbank::sim {

/// Most recent line of a set, as the interpreter reads it.
struct alignas(32) CacheLine {
  static constexpr uint64_t invalid = ~uint64_t{0};
  /// Set in a tag to keep the interpreter's fast path away from the line; no guest address has it.
  static constexpr uint64_t slowBit = uint64_t{1} << 63;

  uint64_t loadTag = invalid;  ///< Line address when a load may go straight to host memory.
  uint64_t storeTag = invalid; ///< Line address when the line is dirty and a store may go straight to host memory.
  int64_t hostDelta = 0;       ///< Host address minus guest address; meaningful when the tags match.
  uint64_t state = invalid;    ///< Line address, plus 1 when dirty.

  uint64_t address() const { return state & ~uint64_t{1}; }
  bool isValid() const { return state != invalid; }
  bool isDirty() const { return isValid() && (state & 1) != 0; }
  void markDirty() { state |= 1; }
};

/// @throws UserError NB0110 unless line size and number of sets are powers of two
void checkCacheConfig(const CacheConfig &config, const char *name);

class Cache {
public:
  /// @throws UserError NB0110 unless line size and number of sets are powers of two
  Cache(const CacheConfig &config, const char *name);

  /// Makes the line of `address` the most recent of its set and returns it; null on a miss.
  /// The pointer holds until the next call.
  CacheLine *touch(uint64_t address);
  /// Puts the line of `address`, which must be absent, in front of its set and returns it, clean.
  /// @param[out] victim the line that had to leave; invalid when a way was free
  CacheLine *insert(uint64_t address, CacheLine &victim);
  /// Makes every line invalid.
  void reset();

  uint64_t lineBytes() const { return uint64_t{1} << lineShift_; }
  uint64_t lineOf(uint64_t address) const { return address >> lineShift_ << lineShift_; }
  uint64_t capacityBytes() const { return (numSets_ * ways_) << lineShift_; }
  int64_t hitCycles() const { return hitCycles_; }

  /// Most recent lines, one per set: (address >> frontShift()) & frontMask() is the byte offset into them.
  CacheLine *front() { return front_.data(); }
  unsigned frontShift() const { return lineShift_ - 5; }
  uint64_t frontMask() const { return (numSets_ - 1) << 5; }

  /// Calls visit(lineAddress) for every dirty line, by the order in which sets were first used, then by way.
  template <typename Visit> void forEachDirty(Visit visit) const {
    for (uint32_t set : usedSets_)
      for (uint64_t way = 0; way < ways_; ++way) {
        const CacheLine &line = way == frontWay_[set] ? front_[set] : lines_[set * ways_ + way];
        if (line.isDirty())
          visit(line.address());
      }
  }

private:
  uint64_t setOf(uint64_t address) const { return (address >> lineShift_) & (numSets_ - 1); }
  /// Saves the front line of `set` to its way and puts the line of `way` there.
  void bringToFront(uint64_t set, uint64_t way);

  uint64_t numSets_ = 1, ways_ = 1;
  unsigned lineShift_ = 6;
  int64_t hitCycles_ = 1;
  uint64_t clock_ = 0;
  std::vector<CacheLine> front_;    ///< By set; the truth about its most recent line.
  std::vector<uint32_t> frontWay_;  ///< By set: the way that front_ stands for.
  std::vector<uint64_t> addresses_; ///< Line addresses, [set * ways + way]: what a search reads.
  std::vector<uint64_t> lastUse_;   ///< clock_ when the line last came to the front; 0 never.
  std::vector<uint8_t> isUsed_;     ///< By set: holds lines, and stands in usedSets_.
  std::vector<uint32_t> usedSets_;  ///< What reset has to clear.
  std::vector<CacheLine> lines_;    ///< All lines; stale for the way in front.
};

} // namespace nearbank::sim
