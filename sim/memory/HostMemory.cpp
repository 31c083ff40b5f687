// SPDX-License-Identifier: Apache-2.0
// Shared memory system of a modelled host.
#include "sim/memory/HostMemory.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace nearbank::sim {

TransferMeter::TransferMeter(double bandwidthGBs)
    : slotBytes_(std::max<int64_t>(1, std::llround(bandwidthGBs * slotPs / 1000))), psPerByte_(1000 / bandwidthGBs),
      used_(numSlots) {}

int64_t TransferMeter::pass(int64_t ps, int64_t bytes) {
  int64_t slot = std::max(ps / slotPs, first_);
  for (; slot < first_ + numSlots && used_[static_cast<size_t>(slot % numSlots)] + bytes > slotBytes_; ++slot) {
  }
  // The window follows the latest transfer.
  for (; first_ + numSlots <= slot; ++first_)
    used_[static_cast<size_t>(first_ % numSlots)] = 0;
  int64_t &used = used_[static_cast<size_t>(slot % numSlots)];
  used += bytes;
  auto passed = static_cast<int64_t>(static_cast<double>(used) * psPerByte_);
  auto alone = static_cast<int64_t>(static_cast<double>(bytes) * psPerByte_);
  return std::max(ps + alone, slot * slotPs + passed);
}

void TransferMeter::reset() {
  std::fill(used_.begin(), used_.end(), 0);
  first_ = 0;
}

HostMemory::HostMemory(const MachineConfig &c)
    : sharedBy_(std::max<int64_t>(1, c.l3SharedBy)),
      l3Ps_(std::llround(static_cast<double>(c.l3.hitCycles) * 1000 / c.core.clockGHz)),
      controllerPs_(std::llround(c.dram.controllerNs * 1000)), lineBytes_(c.l1d.lineBytes),
      interleaveLines_(static_cast<uint64_t>(c.dram.interleaveBytes / c.l1d.lineBytes)), tCkPs_(c.dram.tCkNs * 1000) {
  for (int64_t i = 0; i < std::max<int64_t>(1, c.core.count / sharedBy_); ++i)
    caches_.emplace_back(c.l3, "l3");
  for (int64_t i = 0; i < c.dram.vaults; ++i)
    channels_.emplace_back(c.dram, lineBytes_);
  lineShift_ = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(lineBytes_)));
  interleaveShift_ = static_cast<unsigned>(std::countr_zero(interleaveLines_));
  channelShift_ = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(c.dram.vaults)));
  if (c.memoryLink) {
    toMemory_.emplace(c.memoryLink->bandwidthGBs);
    fromMemory_.emplace(c.memoryLink->bandwidthGBs);
    linkPs_ = std::llround(c.memoryLink->latencyNs * 1000);
  }
}

std::pair<Channel *, uint64_t> HostMemory::locate(uint64_t address) {
  uint64_t line = address >> lineShift_, block = line >> interleaveShift_;
  uint64_t above = block >> channelShift_, mask = channels_.size() - 1;
  uint64_t channel = block;
  if (mask != 0)
    for (uint64_t bits = above; bits != 0; bits >>= channelShift_)
      channel ^= bits;
  return {&channels_[channel & mask], above << interleaveShift_ | (line & (interleaveLines_ - 1))};
}

int64_t HostMemory::read(int64_t core, uint64_t address, int64_t ps) {
  TimedCache &cache = cacheOf(core);
  ++l3Accesses_;
  int64_t atHit = ps + l3Ps_;
  if (TimedCache::Line *line = cache.touch(address))
    return std::max(atHit, line->readyAt);
  ++l3Misses_;
  int64_t leaves = atHit + controllerPs_ / 2 + linkPs_;
  auto [channel, index] = locate(address);
  int64_t there = channel->read(leaves, index);
  if (fromMemory_)
    there = fromMemory_->pass(there, lineBytes_) + linkPs_;
  there += controllerPs_ - controllerPs_ / 2;
  TimedCache::Line victim;
  cache.insert(address, victim)->readyAt = there;
  if (victim.isDirty())
    writeBack(victim.address(), atHit);
  return there;
}

void HostMemory::writeBack(uint64_t address, int64_t ps) {
  auto [channel, index] = locate(address);
  if (toMemory_)
    ps = toMemory_->pass(ps, lineBytes_) + linkPs_;
  channel->write(ps, index);
}

void HostMemory::write(int64_t core, uint64_t address, int64_t ps) {
  TimedCache &cache = cacheOf(core);
  ++l3Accesses_;
  if (TimedCache::Line *line = cache.touch(address)) {
    line->markDirty();
    return;
  }
  TimedCache::Line victim;
  cache.insert(address, victim)->markDirty();
  if (victim.isDirty())
    writeBack(victim.address(), ps + l3Ps_);
}

void HostMemory::warm(int64_t core, uint64_t address) {
  TimedCache::Line victim;
  if (TimedCache &cache = cacheOf(core); cache.touch(address) == nullptr)
    cache.insert(address, victim);
}

void HostMemory::age(int64_t linesPerCore, double dirtyShare, int64_t cores) {
  for (size_t i = 0; i < caches_.size(); ++i) {
    auto first = static_cast<int64_t>(i) * sharedBy_;
    int64_t users = std::clamp<int64_t>(cores - first, 0, sharedBy_);
    auto lines = static_cast<double>(caches_[i].capacityBytes()) / static_cast<double>(lineBytes_);
    caches_[i].age(static_cast<double>(linesPerCore) * static_cast<double>(users) / lines, dirtyShare);
  }
}

void HostMemory::advance(int64_t ps) {
  for (Channel &channel : channels_)
    channel.advance(ps);
}

void HostMemory::reset() {
  for (TimedCache &cache : caches_)
    cache.reset();
  for (Channel &channel : channels_)
    channel.reset();
  if (toMemory_) {
    toMemory_->reset();
    fromMemory_->reset();
  }
  l3Accesses_ = l3Misses_ = 0;
}

HostMemoryStats HostMemory::stats() const {
  HostMemoryStats sum{.l3Accesses = l3Accesses_, .l3Misses = l3Misses_};
  for (const Channel &channel : channels_) {
    const ChannelStats &s = channel.stats();
    sum.reads += s.reads, sum.writes += s.writes;
    sum.rowHits += s.rowHits, sum.rowMisses += s.rowMisses, sum.rowConflicts += s.rowConflicts;
    sum.busBusyPs += static_cast<double>(s.busBusyTicks) * tCkPs_;
  }
  return sum;
}

} // namespace nearbank::sim
