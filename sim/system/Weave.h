// SPDX-License-Identifier: Apache-2.0
// Replays the memory events of all cores against the shared vaults in global time order. Requests reach a vault in
// order of arrival time; at equal times the lower core comes first, and reads before writes.
#pragma once

#include "runtime/Machine.h"
#include "sim/core/Core.h"
#include "sim/memory/Vault.h"
#include "sim/system/SimulatedMachine.h"

#include <cstdint>
#include <queue>
#include <vector>

namespace nearbank::sim {

class Weave {
public:
  explicit Weave(const MachineConfig &config);

  /// Readies the vaults for a launch and queues the first event of each core of `cores`.
  /// @param coreIds numbers of those cores, ascending; lane i is core coreIds[i]
  void begin(const std::vector<Core *> &cores, const std::vector<size_t> &coreIds);
  /// Replays until some unfinished core has no events left; false when all cores have ended.
  bool advance();
  /// Drops the events of a core that have been replayed, and makes room for more.
  void compact(size_t core);
  /// Events of a core that are not replayed yet.
  size_t pending(size_t core) const { return lanes_[core].core->events().size() - lanes_[core].position; }
  bool hasEnded(size_t core) const { return lanes_[core].hasEnded; }
  /// Resumes cores that had run out of events.
  void refill();

  /// Where a core was at its Mark events.
  const std::vector<NmcLaunchStats::Point> &marks(size_t core) const { return lanes_[core].marks; }
  /// Adds cycles, DRAM counts and stalls.
  void report(NmcLaunchStats &stats) const;

private:
  static constexpr uint64_t never = ~uint64_t{0};

  struct Lane {
    Core *core = nullptr;
    const int64_t *hopPs = nullptr; ///< By vault.
    size_t position = 0;
    uint64_t resumedAt = 0; ///< Core cycle at which the last read completed.
    uint64_t endCycle = 0;
    uint64_t stallCycles = 0;
    uint64_t readIssued = 0; ///< Core cycle at which the read in flight left.
    MemoryEvent read;        ///< The read in flight.
    bool isStarved = false, hasEnded = false;
    std::vector<NmcLaunchStats::Point> marks;
  };
  struct PostedWrite {
    uint64_t key;
    MemoryEvent event;
    bool operator>(const PostedWrite &other) const { return key > other.key; }
  };

  void schedule(uint64_t lane);
  void completeRead(uint64_t lane, int64_t arrivalPs);
  /// Requests are ordered by arrival, then lane, then reads before writes.
  uint64_t keyOf(int64_t arrivalPs, uint64_t lane, bool isWrite) const {
    return static_cast<uint64_t>(arrivalPs) << keyShift_ | lane << 1 | (isWrite ? 1 : 0);
  }
  void setReadKey(uint64_t lane, uint64_t key);
  int64_t hopPs(uint64_t lane, uint64_t vault) const { return lanes_[lane].hopPs[vault]; }
  int64_t toPs(uint64_t coreCycles) const { return static_cast<int64_t>(coreCycles * periodFs_ / 1000); }
  /// First core cycle that begins at or after `ps`.
  uint64_t toCyclesUp(int64_t ps) const { return (static_cast<uint64_t>(ps) * 1000 + periodFs_ - 1) / periodFs_; }

  DramTiming timing_;
  std::vector<Vault> vaults_;
  std::vector<int64_t> hopPs_; ///< By core and vault.
  uint64_t periodFs_;          ///< Core clock period.
  uint64_t lineBytes_;
  std::vector<Lane> lanes_;
  unsigned keyShift_ = 1;
  size_t numLeaves_ = 1;
  std::vector<uint64_t>
      tree_; ///< Keys of the reads in flight: leaf of lane i at numLeaves + i, each parent the least child.
  std::priority_queue<PostedWrite, std::vector<PostedWrite>, std::greater<>> writes_;
  int64_t lastWritePs_ = 0;
  size_t numStarved_ = 0;
};

} // namespace nearbank::sim
