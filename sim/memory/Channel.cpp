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

int64_t TickMap::firstFree(int64_t tick, int64_t count) const {
  for (;;) {
    if (tick >> 6 >= firstWord_ + static_cast<int64_t>(words_.size()))
      return tick;
    uint64_t taken = bitsFrom(tick);
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
  for (Group &group : groups_)
    for (TickMap *map : {&group.forReads, &group.forWrites, &group.forActivates})
      map->reset();
  for (Rank &rank : ranks_)
    for (TickMap *map : {&rank.activates, &rank.forActivates, &rank.busForReads, &rank.busForWrites})
      map->reset();
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
  // All row bits take part, so that buffers at any power-of-two distance spread.
  uint64_t folded = 0, bits = static_cast<uint64_t>(std::countr_zero(inGroup * ranks));
  for (uint64_t left = row; left != 0 && bits != 0; left >>= bits)
    folded ^= left;
  bank = (bank ^ folded) & (inGroup - 1);
  rank = (rank ^ (folded >> std::countr_zero(inGroup))) & (ranks - 1);
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

bool Channel::isWithinFour(const TickMap &activates, int64_t tick) const {
  // Distances to the nearest four before and after: any five in a row must span nFAW.
  int64_t before[5] = {0}, after[5] = {0}, numBefore = 0, numAfter = 0;
  for (uint64_t bits = activates.bitsFrom(tick - 64); bits != 0 && numBefore < 4;) {
    int64_t zeros = std::countl_zero(bits);
    before[++numBefore] = zeros + 1;
    bits &= ~(uint64_t{1} << (63 - zeros));
  }
  for (uint64_t bits = activates.bitsFrom(tick); bits != 0 && numAfter < 4; bits &= bits - 1)
    after[++numAfter] = std::countr_zero(bits);
  for (int64_t i = std::max<int64_t>(0, 4 - numAfter); i <= numBefore; ++i)
    if (before[i] + after[4 - i] < config_.nFAW)
      return true;
  return false;
}

int64_t Channel::firstActivate(const ChannelLocation &where, int64_t tick) const {
  const Rank &rank = ranks_[static_cast<size_t>(where.rank)];
  const Group &group = groups_[static_cast<size_t>(where.rank * config_.bankGroups + where.group)];
  for (;;) {
    int64_t start = tick;
    tick = afterRefresh(where.rank, tick);
    tick = rank.forActivates.firstFree(tick, 1);
    tick = group.forActivates.firstFree(tick, 1);
    if (isWithinFour(rank.activates, tick))
      ++tick;
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
    rank.activates.take(tick, tick + 1);
    rank.forActivates.take(tick - t.nRRD + 1, tick + t.nRRD);
    if (t.bankGroups > 1)
      group.forActivates.take(tick - t.nRRDL + 1, tick + t.nRRDL);
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
  const TickMap &forColumns = isWrite ? group.forWrites : group.forReads;
  for (;;) {
    int64_t start = tick;
    tick = afterRefresh(where.rank, tick);
    if (!isOpenAt(tick)) {
      open(tick);
      tick = bank.activateTick + t.nRCD;
    }
    tick = forColumns.firstFree(tick, 1);
    tick = bus.firstFree(tick + latency, burst_) - latency;
    if (tick == start)
      break;
  }
  note(isWrite ? DramCommand::Write : DramCommand::Read, where, tick);
  if (t.bankGroups > 1) {
    // Within a group commands keep their distance, reads above all from the writes before them.
    int64_t writeToRead = t.nCWL + burst_ + t.nWTRL;
    (isWrite ? group.forWrites : group.forReads).take(tick - t.nCCDL + 1, tick + t.nCCDL);
    if (isWrite)
      group.forReads.take(tick - t.nCCDL + 1, tick + writeToRead);
    else
      group.forWrites.take(tick - writeToRead + 1, tick + t.nCCDL);
  }
  int64_t begin = tick + latency, end = begin + burst_;
  // What each rank may no longer do: use the bus at that time, or turn it around too soon.
  constexpr int64_t turnTicks = 2; // JESD79-4C: RL + BL/2 - WL + 2 from a read command to a write command
  for (size_t r = 0; r < ranks_.size(); ++r) {
    bool isSame = static_cast<int64_t>(r) == where.rank;
    Rank &other = ranks_[r];
    int64_t gap = isSame ? 0 : t.nCS, turn = std::max(gap, turnTicks);
    (isWrite ? other.busForWrites : other.busForReads).take(begin - gap, end + gap);
    if (isWrite)
      other.busForReads.take(begin - turn, isSame ? end + t.nWTR + t.nCL : end + turn);
    else
      other.busForWrites.take(isSame ? begin - t.nWTR - t.nCL : begin - turn, end + turn);
  }
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
  for (Group &group : groups_)
    for (TickMap *map : {&group.forReads, &group.forWrites, &group.forActivates})
      map->advance(tick);
  for (Rank &rank : ranks_)
    for (TickMap *map : {&rank.activates, &rank.forActivates, &rank.busForReads, &rank.busForWrites})
      map->advance(tick);
}

} // namespace nearbank::sim
