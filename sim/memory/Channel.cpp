// SPDX-License-Identifier: Apache-2.0
// Memory channel timing.
#include "sim/memory/Channel.h"

#include "runtime/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace nearbank::sim {

TickMap::TickMap() : words_(windowTicks / 64) {}

uint64_t TickMap::wordAt(int64_t word) const {
  auto numWords = static_cast<int64_t>(words_.size());
  bool isInside = word >= firstWord_ && word < firstWord_ + numWords;
  return isInside ? words_[static_cast<size_t>(word & (numWords - 1))] : 0;
}

int64_t TickMap::firstFree(int64_t tick, int64_t count) const {
  for (;;) {
    int64_t word = tick >> 6, bit = tick & 63;
    if (word >= firstWord_ + static_cast<int64_t>(words_.size()))
      return tick;
    // Sixty-four ticks from `tick` on.
    uint64_t taken = wordAt(word) >> bit;
    if (bit != 0)
      taken |= wordAt(word + 1) << (64 - bit);
    int64_t run = taken == 0 ? 64 : std::countr_zero(taken);
    if (run >= count)
      return tick;
    // On to the first tick after the run that is in the way.
    uint64_t beyond = taken >> run;
    tick += run + std::max<int64_t>(1, std::countr_one(beyond));
  }
}

void TickMap::take(int64_t begin, int64_t end) {
  auto numWords = static_cast<int64_t>(words_.size());
  begin = std::max(begin, firstWord_ << 6);
  end = std::min(end, (firstWord_ + numWords) << 6);
  while (begin < end) {
    int64_t bit = begin & 63, bits = std::min<int64_t>(64 - bit, end - begin);
    uint64_t mask = bits == 64 ? ~uint64_t{0} : ((uint64_t{1} << bits) - 1) << bit;
    words_[static_cast<size_t>((begin >> 6) & (numWords - 1))] |= mask;
    begin += bits;
  }
}

void TickMap::advance(int64_t tick) {
  auto numWords = static_cast<int64_t>(words_.size());
  int64_t word = tick >> 6;
  if (word >= firstWord_ + numWords)
    std::fill(words_.begin(), words_.end(), 0);
  else
    for (int64_t w = firstWord_; w < word; ++w)
      words_[static_cast<size_t>(w & (numWords - 1))] = 0;
  firstWord_ = std::max(firstWord_, word);
}

void TickMap::reset() {
  std::fill(words_.begin(), words_.end(), 0);
  firstWord_ = 0;
}

void Channel::Recent::insert(int64_t tick) {
  if (tick <= ticks.front())
    return;
  size_t i = 0;
  for (; i + 1 < ticks.size() && ticks[i + 1] < tick; ++i)
    ticks[i] = ticks[i + 1];
  ticks[i] = tick;
}

Channel::Channel(const DramConfig &config, int64_t lineBytes)
    : tCkPs_(std::llround(config.tCkNs * 1000)), burst_(1), config_(config),
      banksPerGroup_(config.bankGroups > 0 ? config.banksPerVault / config.bankGroups : 0), linesPerRow_(1) {
  auto isPower = [](int64_t value) { return value > 0 && std::has_single_bit(static_cast<uint64_t>(value)); };
  if (tCkPs_ <= 0 || config.vaultBandwidthGBs <= 0 || banksPerGroup_ <= 0 || config.nREFI < 0 ||
      !isPower(config.banksPerVault) || !isPower(config.bankGroups) || !isPower(config.ranks) ||
      !isPower(config.rowBytes) || config.rowBytes < lineBytes ||
      (config.nREFI > 0 && config.nREFI <= config.nRFC + config.nRP + config.nRAS + config.nWR))
    throw UserError({.code = "NB0111",
                     .title = "DRAM cannot be built",
                     .where = "dram of the machine",
                     .expected =
                         "positive tCK and bandwidth; ranks, bank groups, banks and row size that are powers of "
                         "two; nREFI beyond nRFC",
                     .actual = fmt::format("tCK {} ns, {} GB/s, {} ranks, {} groups, {} banks, rows of {} B, nREFI {}",
                                           config.tCkNs, config.vaultBandwidthGBs, config.ranks, config.bankGroups,
                                           config.banksPerVault, config.rowBytes, config.nREFI),
                     .fix = "mend the machine file"});
  auto burstPs = static_cast<double>(lineBytes) * 1000 / config.vaultBandwidthGBs;
  burst_ = std::max<int64_t>(config.nCCD, std::llround(std::ceil(burstPs / static_cast<double>(tCkPs_) - 0.01)));
  linesPerRow_ = static_cast<uint64_t>(config.rowBytes / lineBytes);
  banks_.resize(static_cast<size_t>(config.ranks * config.banksPerVault));
  groups_.resize(static_cast<size_t>(config.ranks * config.bankGroups));
  ranks_.resize(static_cast<size_t>(config.ranks));
  reset();
}

void Channel::reset() {
  std::fill(banks_.begin(), banks_.end(), Bank{});
  for (Group &group : groups_) {
    group.columns.ticks.fill(never);
    group.activates.ticks.fill(never);
    group.readAfter = never;
  }
  for (Rank &rank : ranks_) {
    rank.activates.ticks.fill(never);
    rank.busForReads.reset();
    rank.busForWrites.reset();
  }
  writes_.clear();
  lastData_ = 0;
  stats_ = {};
}

ChannelLocation Channel::locate(uint64_t index) const {
  auto groups = static_cast<uint64_t>(config_.bankGroups), ranks = static_cast<uint64_t>(config_.ranks);
  auto inGroup = static_cast<uint64_t>(banksPerGroup_);
  uint64_t group = index & (groups - 1);
  index = (index >> std::countr_zero(groups)) >> std::countr_zero(linesPerRow_);
  uint64_t bank = index & (inGroup - 1);
  index >>= std::countr_zero(inGroup);
  uint64_t rank = index & (ranks - 1), row = index >> std::countr_zero(ranks);
  bank = (bank ^ row) & (inGroup - 1);
  rank = (rank ^ (row >> std::countr_zero(inGroup))) & (ranks - 1);
  return {static_cast<int64_t>(rank), static_cast<int64_t>(group), static_cast<int64_t>(group * inGroup + bank),
          static_cast<int64_t>(row)};
}

int64_t Channel::latestRefresh(int64_t rank, int64_t tick) const {
  if (config_.nREFI <= 0)
    return never;
  // Ranks refresh in turn; the first refresh falls one interval after the start.
  int64_t offset = rank * config_.nREFI / config_.ranks, index = (tick - offset) / config_.nREFI;
  return tick < offset || index < 1 ? never : offset + index * config_.nREFI;
}

int64_t Channel::afterRefresh(int64_t rank, int64_t tick) const {
  return std::max(tick, latestRefresh(rank, tick) + config_.nRFC);
}

int64_t Channel::firstActivate(const ChannelLocation &where, int64_t tick) const {
  const Recent &rank = ranks_[static_cast<size_t>(where.rank)].activates;
  const Recent &group = groups_[static_cast<size_t>(where.rank * config_.bankGroups + where.group)].activates;
  for (;;) {
    int64_t start = tick;
    tick = afterRefresh(where.rank, tick);
    for (int64_t other : rank.ticks)
      if (std::abs(other - tick) < config_.nRRD)
        tick = other + config_.nRRD;
    if (config_.bankGroups > 1)
      for (int64_t other : group.ticks)
        if (std::abs(other - tick) < config_.nRRDL)
          tick = other + config_.nRRDL;
    // Any five activates span at least nFAW: with four neighbours of the sorted list, wherever this one falls.
    for (size_t i = 0; i + 3 < rank.ticks.size(); ++i)
      if (rank.ticks[i] > tick - config_.nFAW && rank.ticks[i + 3] < tick + config_.nFAW &&
          std::max(rank.ticks[i + 3], tick) - std::min(rank.ticks[i], tick) < config_.nFAW)
        tick = rank.ticks[i] + config_.nFAW;
    if (tick == start)
      return tick;
  }
}

void Channel::note(DramCommand command, const ChannelLocation &where, int64_t tick) {
  if (log_ != nullptr)
    log_->push_back({command, where, tick});
}

int64_t Channel::place(int64_t arrivalTick, const ChannelLocation &where, bool isWrite) {
  const DramConfig &t = config_;
  Bank &bank = banks_[static_cast<size_t>(where.rank * t.banksPerVault + where.bank)];
  Group &group = groups_[static_cast<size_t>(where.rank * t.bankGroups + where.group)];
  Rank &rank = ranks_[static_cast<size_t>(where.rank)];
  ++(isWrite ? stats_.writes : stats_.reads);

  // A refresh since the row was opened has closed it.
  auto isOpenAt = [&](int64_t tick) {
    return bank.openRow >= 0 && latestRefresh(where.rank, tick) <= bank.activateTick;
  };
  auto open = [&](int64_t tick) {
    tick = firstActivate(where, std::max(tick, bank.nextActivate));
    note(DramCommand::Activate, where, tick);
    rank.activates.insert(tick);
    group.activates.insert(tick);
    bank.openRow = where.row;
    bank.activateTick = tick;
    bank.nextActivate = tick + t.nRAS + t.nRP;
    bank.nextPrecharge = tick + t.nRAS;
  };
  int64_t tick = afterRefresh(where.rank, arrivalTick);
  if (!isOpenAt(tick)) {
    ++stats_.rowMisses;
    open(tick);
  } else if (bank.openRow == where.row) {
    ++stats_.rowHits;
  } else {
    ++stats_.rowConflicts;
    tick = afterRefresh(where.rank, std::max(tick, bank.nextPrecharge));
    note(DramCommand::Precharge, where, tick);
    open(tick + t.nRP);
  }
  tick = std::max(tick, bank.activateTick + t.nRCD);

  int64_t latency = isWrite ? t.nCWL : t.nCL;
  const TickMap &bus = isWrite ? rank.busForWrites : rank.busForReads;
  for (;;) {
    int64_t start = tick;
    tick = afterRefresh(where.rank, tick);
    if (!isOpenAt(tick)) {
      open(tick);
      tick = bank.activateTick + t.nRCD;
    }
    if (!isWrite)
      tick = std::max(tick, group.readAfter);
    if (t.bankGroups > 1)
      for (int64_t other : group.columns.ticks)
        if (std::abs(other - tick) < t.nCCDL)
          tick = other + t.nCCDL;
    tick = bus.firstFree(tick + latency, burst_) - latency;
    if (tick == start)
      break;
  }
  note(isWrite ? DramCommand::Write : DramCommand::Read, where, tick);
  group.columns.insert(tick);
  int64_t begin = tick + latency, end = begin + burst_;
  // What each rank may no longer do: use the bus at that time, or turn it around too soon.
  constexpr int64_t turnTicks = 2; // JESD79-4C: RL + BL/2 - WL + 2 from a read command to a write command
  for (size_t r = 0; r < ranks_.size(); ++r) {
    bool isSame = static_cast<int64_t>(r) == where.rank;
    Rank &other = ranks_[r];
    if (isWrite) {
      other.busForWrites.take(isSame ? begin : begin - t.nCS, isSame ? end : end + t.nCS);
      other.busForReads.take(begin - turnTicks, isSame ? end + t.nWTR + t.nCL : end + std::max(t.nCS, turnTicks));
    } else {
      other.busForReads.take(isSame ? begin : begin - t.nCS, isSame ? end : end + t.nCS);
      other.busForWrites.take(isSame ? begin - t.nWTR - t.nCL : begin - std::max(t.nCS, turnTicks), end + turnTicks);
    }
  }
  if (isWrite)
    group.readAfter = std::max(group.readAfter, end + t.nWTRL);
  bank.nextPrecharge = std::max(bank.nextPrecharge, isWrite ? end + t.nWR : tick + t.nRTP);
  bank.nextActivate = std::max(bank.nextActivate, bank.nextPrecharge + t.nRP);
  stats_.busBusyTicks += burst_;
  lastData_ = std::max(lastData_, end);
  return end;
}

int64_t Channel::read(int64_t arrivalPs, uint64_t index) {
  return place(toTick(arrivalPs), locate(index), false) * tCkPs_;
}

void Channel::write(int64_t arrivalPs, uint64_t index) {
  writes_.push_back(index);
  if (static_cast<int64_t>(writes_.size()) >= std::max<int64_t>(1, config_.writeQueueLines))
    drain(toTick(arrivalPs), writes_.size() / 2);
}

void Channel::drain(int64_t arrivalTick, size_t left) {
  // In index order lines of one row follow each other.
  size_t count = writes_.size() - left;
  std::sort(writes_.begin(), writes_.end());
  std::vector<uint64_t> batch(writes_.begin(), writes_.begin() + static_cast<std::ptrdiff_t>(count));
  writes_.erase(writes_.begin(), writes_.begin() + static_cast<std::ptrdiff_t>(count));
  for (uint64_t index : batch)
    place(arrivalTick, locate(index), true);
}

int64_t Channel::flush(int64_t arrivalPs) {
  drain(toTick(arrivalPs), 0);
  return lastData_ * tCkPs_;
}

void Channel::advance(int64_t ps) {
  int64_t tick = ps / tCkPs_;
  for (Rank &rank : ranks_) {
    rank.busForReads.advance(tick);
    rank.busForWrites.advance(tick);
  }
}

} // namespace nearbank::sim
