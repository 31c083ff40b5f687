// SPDX-License-Identifier: Apache-2.0
// What the cores of a modelled host share: last-level caches, the channels behind them, and a link where there is one.
#pragma once

#include "runtime/Machine.h"
#include "sim/memory/Channel.h"
#include "sim/memory/TimedCache.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace nearbank::sim {

/// A path that carries so many bytes a nanosecond: each transfer takes the first time with room, by slots of 16 ns.
class TransferMeter {
public:
  explicit TransferMeter(double bandwidthGBs);
  /// @return when `bytes` that are there at `ps` have passed, not before `ps`
  int64_t pass(int64_t ps, int64_t bytes);
  void reset();

private:
  static constexpr int64_t slotPs = 16000, numSlots = 4096;
  int64_t slotBytes_;
  double psPerByte_;
  std::vector<int64_t> used_; ///< Ring of slots.
  int64_t first_ = 0;         ///< Slot number of the oldest.
};

struct HostMemoryStats {
  uint64_t l3Accesses = 0, l3Misses = 0;
  uint64_t reads = 0, writes = 0, rowHits = 0, rowMisses = 0, rowConflicts = 0;
  double busBusyPs = 0; ///< Summed over channels.
};

class HostMemory {
public:
  explicit HostMemory(const MachineConfig &config);

  /// Reads a line that the core's private caches lack. Times are picoseconds.
  /// @param ps when the request leaves the core
  /// @return when the line has reached the core
  int64_t read(int64_t core, uint64_t address, int64_t ps);
  /// Takes a dirty line that left the core's private caches.
  void write(int64_t core, uint64_t address, int64_t ps);
  /// Puts a line into the last-level cache of `core` before the launch begins.
  void warm(int64_t core, uint64_t address);
  /// Takes the last-level caches for ones that hold lines of earlier work, so many from each core that uses them.
  void age(int64_t linesPerCore, double dirtyShare, int64_t cores);
  /// No later request leaves before this time.
  void advance(int64_t ps);
  void reset();
  HostMemoryStats stats() const;

private:
  TimedCache &cacheOf(int64_t core) { return caches_[static_cast<size_t>(core / sharedBy_)]; }
  /// Channel and line number in it. Channel bits are permuted by the bits above them.
  std::pair<Channel *, uint64_t> locate(uint64_t address);
  void writeBack(uint64_t address, int64_t ps);

  int64_t sharedBy_, l3Ps_, controllerPs_, lineBytes_;
  uint64_t interleaveLines_;
  unsigned lineShift_, interleaveShift_, channelShift_;
  std::vector<TimedCache> caches_;
  std::vector<Channel> channels_;
  std::optional<TransferMeter> toMemory_, fromMemory_;
  int64_t linkPs_ = 0;
  double tCkPs_;
  uint64_t l3Accesses_ = 0, l3Misses_ = 0;
};

} // namespace nearbank::sim
