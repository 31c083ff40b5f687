// SPDX-License-Identifier: Apache-2.0
// DRAM vault timing.
#include "sim/memory/Vault.h"

#include "runtime/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace nearbank::sim {

DramTiming::DramTiming(const DramConfig &c, int64_t lineBytes)
    : tCkPs(std::llround(c.tCkNs * 1000)), burstPs(0), nRCD(c.nRCD), nCL(c.nCL), nRP(c.nRP), nRAS(c.nRAS), nCWL(c.nCWL),
      nCCD(c.nCCD), nRRD(c.nRRD), nFAW(c.nFAW), nWR(c.nWR), nRTP(c.nRTP), nRFC(c.nRFC), nREFI(c.nREFI),
      banks(c.banksPerVault) {
  if (tCkPs <= 0 || banks <= 0 || c.vaults <= 0 || c.rowBytes <= 0 || c.interleaveBytes < lineBytes ||
      c.vaultBandwidthGBs <= 0 || (nREFI > 0 && nREFI <= nRFC + nRP + nRAS + nWR))
    throw UserError(
        {.code = "NB0111",
         .title = "DRAM cannot be built",
         .where = "dram of the machine",
         .expected = "positive tCK, vaults, banks, row size and bandwidth; interleave of at least one cache line; "
                     "nREFI beyond nRFC",
         .actual = fmt::format(
             "tCK {} ns, {} vaults, {} banks, rows of {} B, {} GB/s, interleave {} B, line {} B, nREFI {}", c.tCkNs,
             c.vaults, c.banksPerVault, c.rowBytes, c.vaultBandwidthGBs, c.interleaveBytes, lineBytes, c.nREFI),
         .fix = "mend the machine file"});
  burstPs =
      std::max<int64_t>(std::llround(static_cast<double>(lineBytes) * 1000.0 / c.vaultBandwidthGBs), nCCD * tCkPs);
}

AddressMap::AddressMap(const DramConfig &c)
    : interleaveBytes_(static_cast<uint64_t>(c.interleaveBytes)), vaults_(static_cast<uint64_t>(c.vaults)),
      rowBytes_(static_cast<uint64_t>(c.rowBytes)), banks_(static_cast<uint64_t>(c.banksPerVault)) {
  interleaveShift_ = static_cast<unsigned>(std::countr_zero(interleaveBytes_));
  vaultShift_ = static_cast<unsigned>(std::countr_zero(vaults_));
  rowShift_ = static_cast<unsigned>(std::countr_zero(rowBytes_));
  bankShift_ = static_cast<unsigned>(std::countr_zero(banks_));
  arePowersOfTwo_ = std::has_single_bit(interleaveBytes_) && std::has_single_bit(vaults_) &&
                    std::has_single_bit(rowBytes_) && std::has_single_bit(banks_);
}

Vault::Vault(const DramTiming &timing) : timing_(&timing), banks_(static_cast<size_t>(timing.banks)) { reset(); }

void Vault::reset() {
  std::fill(banks_.begin(), banks_.end(), Bank{});
  activates_.fill(never);
  oldest_ = 0;
  lastActivate_ = never;
  nextColumn_ = busFreePs_ = 0;
  nextRefresh_ = timing_->nREFI > 0 ? timing_->nREFI : INT64_MAX / 4;
  stats_ = {};
}

// The two that follow fold to a few operations where the command is constant.
__attribute__((always_inline)) inline int64_t Vault::earliestOf(DramCommand command, int64_t bankIndex) const {
  const DramTiming &t = *timing_;
  const Bank &bank = banks_[static_cast<size_t>(bankIndex)];
  switch (command) {
  case DramCommand::Activate:
    return std::max({bank.nextActivate, lastActivate_ + t.nRRD, activates_[oldest_] + t.nFAW});
  case DramCommand::Precharge:
    return bank.nextPrecharge;
  case DramCommand::Read:
    return std::max({bank.nextColumn, nextColumn_, busFreePs_ / t.tCkPs - t.nCL});
  case DramCommand::Write:
    return std::max({bank.nextColumn, nextColumn_, busFreePs_ / t.tCkPs - t.nCWL});
  case DramCommand::Refresh: {
    int64_t tick = 0;
    for (const Bank &b : banks_)
      tick = std::max(tick, b.nextActivate);
    return tick;
  }
  }
  return 0;
}

bool Vault::isLegal(DramCommand command, int64_t bankIndex, int64_t tick) const {
  bool isOpen = banks_[static_cast<size_t>(bankIndex)].openRow >= 0;
  switch (command) {
  case DramCommand::Activate:
    if (isOpen)
      return false;
    break;
  case DramCommand::Precharge:
  case DramCommand::Read:
  case DramCommand::Write:
    if (!isOpen)
      return false;
    break;
  case DramCommand::Refresh:
    for (const Bank &b : banks_)
      if (b.openRow >= 0)
        return false;
    break;
  }
  return tick >= earliest(command, bankIndex);
}

__attribute__((always_inline)) inline int64_t Vault::issueOf(DramCommand command, int64_t bankIndex, int64_t row,
                                                             int64_t tick) {
  const DramTiming &t = *timing_;
  Bank &bank = banks_[static_cast<size_t>(bankIndex)];
  switch (command) {
  case DramCommand::Activate:
    bank.openRow = row;
    bank.nextColumn = tick + t.nRCD;
    bank.nextPrecharge = tick + t.nRAS;
    lastActivate_ = tick;
    activates_[oldest_] = tick;
    oldest_ = (oldest_ + 1) % activates_.size();
    return 0;
  case DramCommand::Precharge:
    bank.openRow = -1;
    bank.nextActivate = std::max(bank.nextActivate, tick + t.nRP);
    return 0;
  case DramCommand::Read:
  case DramCommand::Write: {
    bool isWrite = command == DramCommand::Write;
    int64_t dataPs = std::max((tick + (isWrite ? t.nCWL : t.nCL)) * t.tCkPs, busFreePs_);
    busFreePs_ = dataPs + t.burstPs;
    nextColumn_ = tick + t.nCCD;
    // A write recovers from the end of its data; a read may be closed nRTP after its command.
    int64_t closable = isWrite ? (busFreePs_ + t.tCkPs - 1) / t.tCkPs + t.nWR : tick + t.nRTP;
    bank.nextPrecharge = std::max(bank.nextPrecharge, closable);
    stats_.busBusyPs += t.burstPs;
    return busFreePs_;
  }
  case DramCommand::Refresh:
    for (Bank &b : banks_)
      b.nextActivate = tick + t.nRFC;
    ++stats_.refreshes;
    return 0;
  }
  return 0;
}

int64_t Vault::earliest(DramCommand command, int64_t bank) const { return earliestOf(command, bank); }
int64_t Vault::issue(DramCommand command, int64_t bank, int64_t row, int64_t tick) {
  return issueOf(command, bank, row, tick);
}

void Vault::refreshUntil(int64_t tick) {
  const DramTiming &t = *timing_;
  // Refreshes of a long idle time leave no trace but closed rows.
  if (tick - nextRefresh_ > 2 * t.nREFI)
    nextRefresh_ += (tick - nextRefresh_) / t.nREFI * t.nREFI;
  while (nextRefresh_ <= tick) {
    for (size_t b = 0; b < banks_.size(); ++b)
      if (banks_[b].openRow >= 0)
        issue(DramCommand::Precharge, static_cast<int64_t>(b), 0, std::max(nextRefresh_, banks_[b].nextPrecharge));
    issue(DramCommand::Refresh, 0, 0, std::max(nextRefresh_, earliest(DramCommand::Refresh, 0)));
    nextRefresh_ += t.nREFI;
  }
}

template <bool isWrite> int64_t Vault::serveLine(int64_t arrival, int64_t bankIndex, int64_t row) {
  constexpr DramCommand column = isWrite ? DramCommand::Write : DramCommand::Read;
  Bank &bank = banks_[static_cast<size_t>(bankIndex)];
  // A refresh that is due before the request's first command comes first.
  for (;;) {
    int64_t first = bank.openRow == row ? earliestOf(column, bankIndex)
                    : bank.openRow < 0  ? earliestOf(DramCommand::Activate, bankIndex)
                                        : earliestOf(DramCommand::Precharge, bankIndex);
    if (std::max(arrival, first) < nextRefresh_)
      break;
    refreshUntil(std::max(arrival, first));
  }
  ++(isWrite ? stats_.writes : stats_.reads);
  if (bank.openRow == row) {
    ++stats_.rowHits;
  } else {
    if (bank.openRow >= 0) {
      ++stats_.rowConflicts;
      issueOf(DramCommand::Precharge, bankIndex, 0, std::max(arrival, earliestOf(DramCommand::Precharge, bankIndex)));
    } else {
      ++stats_.rowMisses;
    }
    issueOf(DramCommand::Activate, bankIndex, row, std::max(arrival, earliestOf(DramCommand::Activate, bankIndex)));
  }
  return issueOf(column, bankIndex, 0, std::max(arrival, earliestOf(column, bankIndex)));
}

int64_t Vault::serve(int64_t arrivalPs, int64_t bankIndex, int64_t row, bool isWrite) {
  int64_t arrival = (arrivalPs + timing_->tCkPs - 1) / timing_->tCkPs;
  return isWrite ? serveLine<true>(arrival, bankIndex, row) : serveLine<false>(arrival, bankIndex, row);
}

} // namespace nearbank::sim
