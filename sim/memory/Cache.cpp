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
  throw UserError({.code = "NB0110",
                   .title = "cache cannot be built",
                   .where = fmt::format("{} of the machine", name),
                   .expected = "a line size of 32 B or more and a number of sets (size / ways / line) that are powers of two",
                   .actual = fmt::format("{} B, {} ways, lines of {} B", config.sizeBytes, config.ways, config.lineBytes),
                   .fix = "choose size, ways and line size so that size = sets x ways x line"});
}

} // namespace

Cache::Cache(const CacheConfig &config, const char *name) : hitCycles_(config.hitCycles) {
  bool isPositive = config.sizeBytes > 0 && config.ways > 0 && config.lineBytes >= 32 && config.lineBytes <= 4096;
  if (!isPositive || !std::has_single_bit(static_cast<uint64_t>(config.lineBytes)) ||
      config.sizeBytes % (config.ways * config.lineBytes) != 0)
    rejectConfig(config, name);
  ways_ = static_cast<uint64_t>(config.ways);
  sets_ = static_cast<uint64_t>(config.sizeBytes / (config.ways * config.lineBytes));
  if (!std::has_single_bit(sets_)) rejectConfig(config, name);
  lineShift_ = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(config.lineBytes)));
  lines_.resize(sets_ * ways_);
}

CacheLine *Cache::touch(uint64_t address) {
  uint64_t wanted = lineOf(address), set = (address >> lineShift_) & (sets_ - 1);
  for (uint64_t way = 0; way < ways_; ++way) {
    if (line(set, way)->address() != wanted) continue;
    if (way != 0) {
      CacheLine found = *line(set, way);
      for (uint64_t w = way; w > 0; --w) *line(set, w) = *line(set, w - 1);
      *line(set, 0) = found;
    }
    return line(set, 0);
  }
  return nullptr;
}

CacheLine *Cache::insert(uint64_t address, CacheLine &victim) {
  uint64_t set = (address >> lineShift_) & (sets_ - 1);
  victim = *line(set, ways_ - 1);
  for (uint64_t w = ways_ - 1; w > 0; --w) *line(set, w) = *line(set, w - 1);
  *line(set, 0) = CacheLine{};
  line(set, 0)->state = lineOf(address);
  return line(set, 0);
}

void Cache::reset() { std::fill(lines_.begin(), lines_.end(), CacheLine{}); }

} // namespace nearbank::sim
