// SPDX-License-Identifier: Apache-2.0
// Models a three-level data-cache hierarchy fed with an address stream; counts misses, knows no time.
#pragma once

#include "runtime/Machine.h"

#include <cstdint>
#include <vector>

namespace nearbank::profile {

/// Line counts since the last reset; `accesses` counts element accesses.
struct CacheCounts {
  uint64_t accesses = 0;
  uint64_t l1Misses = 0;
  uint64_t l2Misses = 0;
  uint64_t l3Misses = 0;
  uint64_t writeBacks = 0; ///< Dirty lines that left the last level for DRAM.

  CacheCounts &operator+=(const CacheCounts &other);
  CacheCounts operator-(const CacheCounts &other) const;
};

/// One set-associative level with least-recently-used replacement. Addresses are line numbers.
class CacheLevel {
public:
  explicit CacheLevel(const CacheConfig &config);

  /// Looks a line up and makes it the most recent of its set; marks it dirty on a write.
  bool touch(uint64_t line, bool isWrite) {
    uint64_t *set = &entries_[(line & setMask_) * ways_];
    uint64_t wanted = line + 1; // 0 is the empty entry.
    for (int64_t way = 0; way < ways_; ++way) {
      uint64_t entry = set[way];
      if ((entry >> 1) != wanted)
        continue;
      for (int64_t i = way; i > 0; --i)
        set[i] = set[i - 1];
      set[0] = entry | uint64_t(isWrite);
      return true;
    }
    return false;
  }

  /// A line that left the level.
  struct Victim {
    uint64_t line = 0;
    bool isValid = false, isDirty = false;
  };

  /// Puts an absent line in front of its set and returns what it displaced.
  Victim insert(uint64_t line, bool isDirty) {
    uint64_t *set = &entries_[(line & setMask_) * ways_];
    uint64_t last = set[ways_ - 1];
    for (int64_t i = ways_ - 1; i > 0; --i)
      set[i] = set[i - 1];
    set[0] = ((line + 1) << 1) | uint64_t(isDirty);
    if (last == 0)
      return {};
    return {(last >> 1) - 1, true, (last & 1) != 0};
  }

  void clear();

private:
  int64_t ways_;
  uint64_t setMask_;
  std::vector<uint64_t> entries_; ///< Per set, most recent first: (line + 1) << 1 | dirty.
};

/// CM-1 (docs/model.md): write-back, write-allocate, LRU, non-inclusive (a line leaves L2 or L3 without leaving the
/// levels above). Physical addresses are taken to equal the addresses given. One core; not thread-safe.
class CacheHierarchy {
public:
  /// @param host its three cache levels; all must have one line size
  /// @throws UserError NB0105 when the line sizes differ
  explicit CacheHierarchy(const HostConfig &host);

  /// Accesses `bytes` bytes at `address`; counts one access even when it straddles lines.
  void access(uint64_t address, uint32_t bytes, bool isWrite) {
    ++counts_.accesses;
    uint64_t first = address >> lineShift_;
    uint64_t last = (address + (bytes ? bytes - 1 : 0)) >> lineShift_;
    for (uint64_t line = first; line <= last; ++line)
      if (!l1_.touch(line, isWrite))
        missL1(line, isWrite);
  }

  const CacheCounts &counts() const { return counts_; }
  /// Sets the counts to zero and keeps the contents.
  void resetCounts() { counts_ = {}; }
  /// Empties every level and sets the counts to zero.
  void reset();
  int64_t lineBytes() const { return int64_t(1) << lineShift_; }

private:
  void missL1(uint64_t line, bool isWrite);
  void writeBackToL2(uint64_t line);
  void writeBackToL3(uint64_t line);

  CacheLevel l1_, l2_, l3_;
  int lineShift_;
  CacheCounts counts_;
};

} // namespace nearbank::profile
