// SPDX-License-Identifier: Apache-2.0
// One DRAM vault: banks with row buffers, command timing, refresh, and a data bus. Open-page; requests are served in
// arrival order, commands of different banks overlap. Times are DRAM clocks (ticks of tCK) or picoseconds, as named.
#pragma once

#include "runtime/Machine.h"

#include <array>
#include <cstdint>
#include <vector>

namespace nearbank::sim {

enum class DramCommand : uint8_t { Activate, Precharge, Read, Write, Refresh };

/// Timing of a vault in integers, derived from DramConfig for lines of one size.
struct DramTiming {
  DramTiming(const DramConfig &config, int64_t lineBytes);

  int64_t tCkPs;   ///< DRAM clock period.
  int64_t burstPs; ///< Data-bus time of one line: at least nCCD clocks, at most what the vault's bandwidth allows.
  int64_t nRCD, nCL, nRP, nRAS, nCWL, nCCD, nRRD, nFAW, nWR, nRTP, nRFC, nREFI;
  int64_t banks;
};

struct VaultStats {
  uint64_t reads = 0, writes = 0;
  uint64_t rowHits = 0;      ///< The row was open.
  uint64_t rowMisses = 0;    ///< The bank had no open row.
  uint64_t rowConflicts = 0; ///< Another row was open.
  uint64_t refreshes = 0;
  int64_t busBusyPs = 0;
};

class Vault {
public:
  explicit Vault(const DramTiming &timing);

  /// Serves one line: issues the commands it needs, each at the first tick that is legal.
  /// @param arrivalPs not less than in earlier calls
  /// @return when the last byte has crossed the data bus, in picoseconds
  int64_t serve(int64_t arrivalPs, int64_t bank, int64_t row, bool isWrite);

  /// First tick at which timing allows `command`; the bank's state must allow it too (see isLegal).
  int64_t earliest(DramCommand command, int64_t bank) const;
  /// Whether `command` may be issued at `tick`.
  bool isLegal(DramCommand command, int64_t bank, int64_t tick) const;
  /// Applies a legal command; returns when its data has crossed the bus (Read, Write), else 0. In picoseconds.
  int64_t issue(DramCommand command, int64_t bank, int64_t row, int64_t tick);

  const VaultStats &stats() const { return stats_; }
  /// Idle again, with all rows closed and nothing counted.
  void reset();

private:
  static constexpr int64_t never = INT64_MIN / 4;
  struct Bank {
    int64_t openRow = -1;
    int64_t nextActivate = 0, nextPrecharge = 0, nextColumn = 0;
  };

  int64_t earliestOf(DramCommand command, int64_t bank) const;
  int64_t issueOf(DramCommand command, int64_t bank, int64_t row, int64_t tick);
  void refreshUntil(int64_t tick);
  template <bool isWrite> int64_t serveLine(int64_t arrival, int64_t bank, int64_t row);

  const DramTiming *timing_;
  std::vector<Bank> banks_;
  std::array<int64_t, 4> activates_{never, never, never, never}; ///< Ticks of the last four ACT, oldest at `oldest_`.
  unsigned oldest_ = 0;
  int64_t lastActivate_ = never;
  int64_t nextColumn_ = 0;
  int64_t busFreePs_ = 0;
  int64_t nextRefresh_ = 0;
  VaultStats stats_;
};

/// Where an address lies in the stack.
struct DramLocation {
  uint32_t row;
  uint16_t vault, bank;
};

/// Maps addresses: consecutive interleaveBytes go to consecutive vaults; in a vault, rows fill, then banks change, then
/// rows. The bank number is permuted by the row number (exclusive or; rotation when the number of banks is no power of
/// two), so that cores that walk blocks a power of two apart do not all meet in one bank.
class AddressMap {
public:
  explicit AddressMap(const DramConfig &config);
  DramLocation locate(uint64_t address) const {
    if (arePowersOfTwo_) {
      uint64_t block = address >> interleaveShift_;
      uint64_t inVault = (block >> vaultShift_ << interleaveShift_) | (address & (interleaveBytes_ - 1));
      uint64_t rowIndex = inVault >> rowShift_;
      uint64_t row = rowIndex >> bankShift_;
      return pack(row, block & (vaults_ - 1), (rowIndex ^ row) & (banks_ - 1));
    }
    uint64_t block = address / interleaveBytes_;
    uint64_t inVault = block / vaults_ * interleaveBytes_ + address % interleaveBytes_;
    uint64_t rowIndex = inVault / rowBytes_;
    uint64_t row = rowIndex / banks_;
    return pack(row, block % vaults_, (rowIndex + row) % banks_);
  }

private:
  static DramLocation pack(uint64_t row, uint64_t vault, uint64_t bank) {
    return {static_cast<uint32_t>(row), static_cast<uint16_t>(vault), static_cast<uint16_t>(bank)};
  }

  uint64_t interleaveBytes_, vaults_, rowBytes_, banks_;
  unsigned interleaveShift_, vaultShift_, rowShift_, bankShift_;
  bool arePowersOfTwo_;
};

} // namespace nearbank::sim
