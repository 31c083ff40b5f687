// SPDX-License-Identifier: Apache-2.0
// Set-associative LRU cache of line addresses.
#include "sim/memory/TimedCache.h"

#include "sim/memory/Cache.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace nearbank::sim {

TimedCache::TimedCache(const CacheConfig &config, const char *name) {
  checkCacheConfig(config, name);
  ways_ = static_cast<uint64_t>(config.ways);
  uint64_t sets = static_cast<uint64_t>(config.sizeBytes / (config.ways * config.lineBytes));
  setMask_ = sets - 1;
  lineMask_ = ~(static_cast<uint64_t>(config.lineBytes) - 1);
  lineShift_ = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(config.lineBytes)));
  lines_.resize(sets * ways_);
  isUsed_.resize(sets);
}

TimedCache::Line *TimedCache::search(Line *lines, uint64_t wanted) {
  for (uint64_t way = 1; way < ways_; ++way) {
    if (lines[way].address() != wanted)
      continue;
    std::rotate(lines, lines + way, lines + way + 1);
    return lines;
  }
  return nullptr;
}

TimedCache::Line *TimedCache::insert(uint64_t address, Line &victim) {
  uint64_t set = address >> lineShift_ & setMask_;
  if (isUsed_[set] == 0) {
    isUsed_[set] = 1;
    usedSets_.push_back(static_cast<uint32_t>(set));
    if (fullShare_ > 0)
      fillWithAged(set);
  }
  Line *lines = &lines_[set * ways_];
  victim = lines[ways_ - 1];
  std::copy_backward(lines, lines + ways_ - 1, lines + ways_);
  lines[0] = {.state = address & lineMask_, .readyAt = 0};
  return lines;
}

void TimedCache::fillWithAged(uint64_t set) {
  // Shares come out right over the sets: each rounds at another place.
  constexpr uint64_t agedBase = uint64_t{1} << 44; // beyond every guest address
  auto sharedOut = [](double share, uint64_t index) {
    return std::floor(share * static_cast<double>(index + 1)) > std::floor(share * static_cast<double>(index));
  };
  uint64_t next = 0;
  for (uint64_t way = 0; way < ways_; ++way) {
    uint64_t index = set * ways_ + way;
    if (!sharedOut(fullShare_, index))
      continue;
    Line &line = lines_[set * ways_ + next++];
    line = {.state = agedBase + (way * (setMask_ + 1) + set) * lineBytes(), .readyAt = 0};
    if (sharedOut(dirtyShare_, index))
      line.markDirty();
  }
}

void TimedCache::age(double fullShare, double dirtyShare) {
  fullShare_ = std::clamp(fullShare, 0.0, 1.0);
  dirtyShare_ = std::clamp(dirtyShare, 0.0, 1.0);
}

void TimedCache::reset() {
  fullShare_ = dirtyShare_ = 0;
  for (uint32_t set : usedSets_) {
    isUsed_[set] = 0;
    std::fill_n(&lines_[set * ways_], ways_, Line{});
  }
  usedSets_.clear();
}

} // namespace nearbank::sim
