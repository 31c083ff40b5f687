// SPDX-License-Identifier: Apache-2.0
// Replays the memory events of all cores against the shared vaults in global time order. Requests reach a vault in
// order of arrival time; at equal times the lower core comes first, and reads before writes.
#pragma once

#include "runtime/Machine.h"
#include "sim/core/Core.h"
#include "sim/memory/Vault.h"

#include <cstdint>
#include <queue>
#include <vector>

namespace nearbank::sim {

class Weave {
public:
  /// @param coreIds numbers of the cores that take part, ascending; lane i is core coreIds[i]
  /// @param numCores cores of the machine
  Weave(const MachineConfig &config, const std::vector<size_t> &coreIds, size_t numCores);

  /// Queues the first event of each core of `cores`; call once, before advance.
  void begin(const std::vector<Core *> &cores);
  /// Replays until some unfinished core has no events left; false when all cores have ended.
  bool advance();
  /// Drops the events of a core that have been replayed, and makes room for more.
  void compact(size_t core);
  /// Events of a core that are not replayed yet.
  size_t pending(size_t core) const { return lanes_[core].core->events().size() - lanes_[core].position; }
  bool hasEnded(size_t core) const { return lanes_[core].hasEnded; }
  /// Resumes cores that had run out of events.
  void refill();

  /// Adds cycles, DRAM counts and stalls.
  void report(NmcLaunchStats &stats) const;

private:
  struct Lane {
    Core *core = nullptr;
    size_t position = 0;
    uint64_t resumedAt = 0; ///< Core cycle at which the last read completed.
    uint64_t endCycle = 0;
    uint64_t stallCycles = 0;
    uint64_t readIssued = 0; ///< Core cycle at which the read in flight left.
    uint32_t drain = 0;
    bool isStarved = false, hasEnded = false;
  };
  struct Request {
    int64_t arrivalPs;
    uint32_t order; ///< 2 * core + (write ? 1 : 0).
    int32_t vault;
    int64_t bank, row;
    int64_t hopPs;
    bool operator>(const Request &other) const {
      return arrivalPs != other.arrivalPs ? arrivalPs > other.arrivalPs : order > other.order;
    }
  };

  void schedule(uint32_t lane);
  void complete(const Request &request);
  int64_t hopPs(size_t core, int64_t vault) const { return hopPs_[core * vaults_.size() + static_cast<size_t>(vault)]; }
  int64_t toPs(uint64_t coreCycles) const;
  uint64_t toCyclesUp(int64_t ps) const;

  DramTiming timing_;
  AddressMap map_;
  std::vector<Vault> vaults_;
  std::vector<int64_t> hopPs_;
  double periodPs_;
  uint64_t lineBytes_;
  std::vector<Lane> lanes_;
  std::priority_queue<Request, std::vector<Request>, std::greater<>> queue_;
  int64_t lastWritePs_ = 0;
  size_t numStarved_ = 0, numEnded_ = 0;
};

} // namespace nearbank::sim
