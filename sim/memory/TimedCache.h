// SPDX-License-Identifier: Apache-2.0
// Set-associative LRU cache of line addresses, each with the time at which its data is there.
#pragma once

#include "runtime/Machine.h"

#include <cstdint>
#include <vector>

namespace nearbank::sim {

class TimedCache {
public:
  /// One line of the cache.
  struct Line {
    static constexpr uint64_t invalid = ~uint64_t{0};
    uint64_t state = invalid; ///< Line address, plus 1 when dirty.
    int64_t readyAt = 0;      ///< In the unit of time of whoever uses the cache.

    bool isValid() const { return state != invalid; }
    bool isDirty() const { return isValid() && (state & 1) != 0; }
    uint64_t address() const { return state & ~uint64_t{1}; }
    void markDirty() { state |= 1; }
  };

  /// @throws UserError NB0110 unless line size and number of sets are powers of two
  TimedCache(const CacheConfig &config, const char *name);

  /// Makes the line of `address` the most recent of its set; null on a miss. The pointer holds until the next call.
  Line *touch(uint64_t address) {
    uint64_t wanted = address & lineMask_;
    Line *lines = &lines_[(address >> lineShift_ & setMask_) * ways_];
    if (lines->address() == wanted)
      return lines;
    return search(lines, wanted);
  }
  /// Puts the line of `address`, which must be absent, in front of its set, clean and ready at 0.
  /// @param[out] victim the line that had to leave; invalid when a way was free
  Line *insert(uint64_t address, Line &victim);
  /// Makes every line invalid.
  void reset();
  /// After reset(): takes each set, when it is first used, for one that holds lines of earlier work, which nobody will
  /// ask for again: `fullShare` of its ways, `dirtyShare` of them dirty. Those leave before any line that is put in.
  void age(double fullShare, double dirtyShare);

  uint64_t lineOf(uint64_t address) const { return address & lineMask_; }
  uint64_t lineBytes() const { return ~lineMask_ + 1; }
  uint64_t capacityBytes() const { return lines_.size() * lineBytes(); }

private:
  Line *search(Line *lines, uint64_t wanted);
  void fillWithAged(uint64_t set);

  uint64_t ways_ = 1, setMask_ = 0, lineMask_ = 0;
  unsigned lineShift_ = 6;
  std::vector<Line> lines_;        ///< By set, most recent first.
  std::vector<uint8_t> isUsed_;    ///< By set: stands in usedSets_.
  std::vector<uint32_t> usedSets_; ///< What reset has to clear.
  double fullShare_ = 0, dirtyShare_ = 0;
};

} // namespace nearbank::sim
