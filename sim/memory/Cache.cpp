// SPDX-License-Identifier: Apache-2.0
// Set-associative LRU cache.
#include "sim/memory/Cache.h"

#include "runtime/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace nearbank::sim {
namespace {

[[noreturn]] void rejectConfig(const CacheConfig &config, const char *name) {
  throw UserError(
      {.code = "NB0110",
       .title = "cache cannot be built",
       .where = fmt::format("{} of the machine", name),
       .expected = "a line size of 32 B or more and a number of sets (size / ways / line) that are powers of two",
       .actual = fmt::format("{} B, {} ways, lines of {} B", config.sizeBytes, config.ways, config.lineBytes),
       .fix = "choose size, ways and line size so that size = sets x ways x line"});
}

} // namespace

void checkCacheConfig(const CacheConfig &config, const char *name) {
  bool isPositive = config.sizeBytes > 0 && config.ways > 0 && config.lineBytes >= 32 && config.lineBytes <= 4096;
  if (!isPositive || !std::has_single_bit(static_cast<uint64_t>(config.lineBytes)) ||
      config.sizeBytes % (config.ways * config.lineBytes) != 0 ||
      !std::has_single_bit(static_cast<uint64_t>(config.sizeBytes / (config.ways * config.lineBytes))))
    rejectConfig(config, name);
}

Cache::Cache(const CacheConfig &config, const char *name) : hitCycles_(config.hitCycles) {
  checkCacheConfig(config, name);
  ways_ = static_cast<uint64_t>(config.ways);
  numSets_ = static_cast<uint64_t>(config.sizeBytes / (config.ways * config.lineBytes));
  lineShift_ = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(config.lineBytes)));
  front_.resize(numSets_);
  frontWay_.resize(numSets_);
  isUsed_.resize(numSets_);
  addresses_.resize(numSets_ * ways_, CacheLine::invalid);
  lastUse_.resize(numSets_ * ways_);
  lines_.resize(numSets_ * ways_);
}

void Cache::bringToFront(uint64_t set, uint64_t way) {
  uint32_t &current = frontWay_[set];
  CacheLine *lines = &lines_[set * ways_];
  lastUse_[set * ways_ + way] = ++clock_;
  lines[current] = front_[set];
  front_[set] = lines[way];
  current = static_cast<uint32_t>(way);
}

CacheLine *Cache::touch(uint64_t address) {
  uint64_t wanted = lineOf(address), set = setOf(address);
  if (front_[set].address() == wanted)
    return &front_[set];
  const uint64_t *addresses = &addresses_[set * ways_];
  for (uint64_t way = 0; way < ways_; ++way) {
    if (addresses[way] != wanted)
      continue;
    bringToFront(set, way);
    return &front_[set];
  }
  return nullptr;
}

CacheLine *Cache::insert(uint64_t address, CacheLine &victim) {
  uint64_t set = setOf(address), oldest = 0;
  const uint64_t *lastUse = &lastUse_[set * ways_];
  if (isUsed_[set] == 0) {
    isUsed_[set] = 1;
    usedSets_.push_back(static_cast<uint32_t>(set));
  }
  for (uint64_t way = 1; way < ways_; ++way)
    oldest = lastUse[way] < lastUse[oldest] ? way : oldest;
  bringToFront(set, oldest);
  victim = front_[set];
  CacheLine fresh;
  fresh.state = addresses_[set * ways_ + oldest] = lineOf(address);
  front_[set] = fresh;
  return &front_[set];
}

void Cache::reset() {
  clock_ = 0;
  for (uint32_t set : usedSets_) {
    front_[set] = CacheLine{};
    frontWay_[set] = 0;
    isUsed_[set] = 0;
    for (uint64_t i = set * ways_; i < (set + 1) * ways_; ++i) {
      addresses_[i] = CacheLine::invalid;
      lastUse_[i] = 0;
      lines_[i] = CacheLine{};
    }
  }
  usedSets_.clear();
}

} // namespace nearbank::sim
