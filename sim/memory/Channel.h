// SPDX-License-Identifier: Apache-2.0
// One memory channel of a host: ranks of DRAM banks in groups behind one data bus, with refresh and a write queue.
//
// A request is placed at once: its commands get the first ticks that the commands placed before it leave legal, whether
// before or after them in time. So a row hit overtakes a conflict that arrived earlier, as under a first-ready policy,
// and requests may be placed in any order of arrival. Times are DRAM clocks (ticks of tCK) or picoseconds, as named.
#pragma once

#include "runtime/Machine.h"
#include "sim/memory/Vault.h"

#include <cstdint>
#include <vector>

namespace nearbank::sim {

/// Ticks that are taken, as a ring of bits over a window of time that moves forward.
class TickMap {
public:
  TickMap();
  /// First tick at or after `tick` from which `count` (at most 64) ticks are free. Beyond the window all are.
  int64_t firstFree(int64_t tick, int64_t count) const;
  /// Takes [begin, end); what lies outside the window is ignored.
  void take(int64_t begin, int64_t end);
  /// Sixty-four ticks from `tick` on, the first in the lowest bit; taken ones are set.
  uint64_t bitsFrom(int64_t tick) const {
    int64_t word = tick >> 6, bit = tick & 63;
    uint64_t bits = wordAt(word) >> bit;
    return bit == 0 ? bits : bits | wordAt(word + 1) << (64 - bit);
  }
  /// Forgets what lies before `tick`.
  void advance(int64_t tick);
  void reset();

private:
  static constexpr int64_t windowTicks = 1 << 14;
  uint64_t wordAt(int64_t word) const {
    auto numWords = static_cast<int64_t>(words_.size());
    bool isInside = word >= firstWord_ && word < firstWord_ + numWords;
    return isInside ? words_[static_cast<size_t>(word & (numWords - 1))] : 0;
  }

  std::vector<uint64_t> words_;
  int64_t firstWord_ = 0; ///< The window begins with this word of 64 ticks.
};

/// Where a line lies in its channel.
struct ChannelLocation {
  int64_t rank = 0, group = 0;
  int64_t bank = 0; ///< Within the rank, groups included.
  int64_t row = 0;
};

/// A command as it was placed, for tests.
struct PlacedCommand {
  DramCommand command;
  ChannelLocation where;
  int64_t tick = 0;
};

struct ChannelStats {
  uint64_t reads = 0, writes = 0; ///< Lines.
  uint64_t rowHits = 0, rowMisses = 0, rowConflicts = 0;
  int64_t busBusyTicks = 0;
};

class Channel {
public:
  Channel(const DramConfig &config, int64_t lineBytes);

  /// Line `index` of this channel; consecutive lines change bank group first, then column, bank, rank, row. The bank is
  /// permuted by the row, so that walks a power of two apart do not all meet in one bank.
  ChannelLocation locate(uint64_t index) const;

  /// Reads a line. @return when its last byte has crossed the bus, picoseconds
  int64_t read(int64_t arrivalPs, uint64_t index);
  /// Queues a line for writing; a full queue is drained to half of it, row by row.
  void write(int64_t arrivalPs, uint64_t index);
  /// Drains the write queue. @return when the bus is done with it, picoseconds
  int64_t flush(int64_t arrivalPs);

  /// Places one access. @return tick after its last data
  int64_t place(int64_t arrivalTick, const ChannelLocation &where, bool isWrite);
  int64_t burstTicks() const { return burst_; }
  const ChannelStats &stats() const { return stats_; }
  /// Forgets what lies before the time; no later request may arrive earlier.
  void advance(int64_t ps);
  void reset();
  /// Records every command into `log` from now on; null stops it.
  void record(std::vector<PlacedCommand> *log) { log_ = log; }

private:
  static constexpr int64_t never = INT64_MIN / 4;
  struct Bank {
    int64_t openRow = -1;
    int64_t activateTick = never;
    int64_t nextActivate = 0, nextPrecharge = 0;
  };
  /// Ticks at which a bank group may take no such command.
  struct Group {
    TickMap forReads, forWrites, forActivates;
  };
  struct Rank {
    TickMap activates;                 ///< That there were.
    TickMap forActivates;              ///< Ticks at which there may be none.
    TickMap busForReads, busForWrites; ///< Data-bus ticks that this rank may not use.
  };

  int64_t afterRefresh(int64_t rank, int64_t tick) const;
  int64_t latestRefresh(int64_t rank, int64_t tick) const;
  bool isWithinFour(const TickMap &activates, int64_t tick) const;
  int64_t firstActivate(const ChannelLocation &where, int64_t tick) const;
  void note(DramCommand command, const ChannelLocation &where, int64_t tick);
  int64_t toTick(int64_t ps) const { return (ps + tCkPs_ - 1) / tCkPs_; }
  void drain(int64_t arrivalTick, size_t left);

  int64_t tCkPs_, burst_;
  DramConfig config_;
  int64_t banksPerGroup_;
  uint64_t linesPerRow_;
  std::vector<Bank> banks_;   ///< By rank, then bank.
  std::vector<Group> groups_; ///< By rank, then group.
  std::vector<Rank> ranks_;
  std::vector<uint64_t> writes_; ///< Line indices that wait.
  int64_t lastData_ = 0;
  ChannelStats stats_;
  std::vector<PlacedCommand> *log_ = nullptr;
};

} // namespace nearbank::sim
