// SPDX-License-Identifier: Apache-2.0

#include "compiler/profile/CacheHierarchy.h"

#include "runtime/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace nearbank::profile {

CacheCounts &CacheCounts::operator+=(const CacheCounts &other) {
  accesses += other.accesses;
  l1Misses += other.l1Misses;
  l2Misses += other.l2Misses;
  l3Misses += other.l3Misses;
  writeBacks += other.writeBacks;
  return *this;
}

CacheCounts CacheCounts::operator-(const CacheCounts &other) const {
  return {accesses - other.accesses, l1Misses - other.l1Misses, l2Misses - other.l2Misses, l3Misses - other.l3Misses,
          writeBacks - other.writeBacks};
}

CacheLevel::CacheLevel(const CacheConfig &config) : ways_(config.ways) {
  uint64_t sets = std::max<uint64_t>(1, uint64_t(config.sizeBytes / (config.ways * config.lineBytes)));
  setMask_ = std::bit_floor(sets) - 1;
  entries_.resize((setMask_ + 1) * uint64_t(ways_));
}

void CacheLevel::clear() { std::fill(entries_.begin(), entries_.end(), 0); }

CacheHierarchy::CacheHierarchy(const HostConfig &host)
    : l1_(host.l1d), l2_(host.l2), l3_(host.l3), lineShift_(std::countr_zero(uint64_t(host.l1d.lineBytes))) {
  if (host.l1d.lineBytes != host.l2.lineBytes || host.l1d.lineBytes != host.l3.lineBytes)
    throw UserError({"NB0105", "impossible value in a machine description", "host",
                     "one line size in host.l1d, host.l2 and host.l3",
                     fmt::format("{}, {} and {} B", host.l1d.lineBytes, host.l2.lineBytes, host.l3.lineBytes),
                     "make host.l2.lineBytes and host.l3.lineBytes equal to host.l1d.lineBytes"});
}

void CacheHierarchy::reset() {
  l1_.clear();
  l2_.clear();
  l3_.clear();
  resetCounts();
}

void CacheHierarchy::missL1(uint64_t line, bool isWrite) {
  ++counts_.l1Misses;
  if (!l2_.touch(line, false)) {
    ++counts_.l2Misses;
    if (!l3_.touch(line, false)) {
      ++counts_.l3Misses;
      CacheLevel::Victim victim = l3_.insert(line, false);
      if (victim.isDirty)
        ++counts_.writeBacks;
    }
    CacheLevel::Victim victim = l2_.insert(line, false);
    if (victim.isDirty)
      writeBackToL3(victim.line);
  }
  CacheLevel::Victim victim = l1_.insert(line, isWrite);
  if (victim.isDirty)
    writeBackToL2(victim.line);
}

void CacheHierarchy::writeBackToL2(uint64_t line) {
  if (l2_.touch(line, true))
    return;
  CacheLevel::Victim victim = l2_.insert(line, true);
  if (victim.isDirty)
    writeBackToL3(victim.line);
}

void CacheHierarchy::writeBackToL3(uint64_t line) {
  if (l3_.touch(line, true))
    return;
  CacheLevel::Victim victim = l3_.insert(line, true);
  if (victim.isDirty)
    ++counts_.writeBacks;
}

} // namespace nearbank::profile
