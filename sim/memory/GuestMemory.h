// SPDX-License-Identifier: Apache-2.0
// The guest's address space: disjoint ranges, each backed by host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nearbank::sim {

struct MemoryRange {
  uint64_t begin = 0, end = 0; ///< Guest addresses, half open.
  int64_t hostDelta = 0;       ///< Host address minus guest address.
  bool isWritable = true;
  bool isScratch = false; ///< Cores record the lines they bring in, so that those can be zeroed.
};

class GuestMemory {
public:
  /// Adds a range. @throws DeviceError NB0506 when it is empty, overlaps another or reaches beyond 1 << 62
  void add(uint64_t guestBase, void *hostBase, uint64_t bytes, bool isWritable, const char *what,
           bool isScratch = false);
  /// Range that contains `address`, or null.
  const MemoryRange *find(uint64_t address) const;
  /// Range nearest to `address`, for messages; null when there is none.
  const MemoryRange *nearest(uint64_t address) const;
  const std::vector<MemoryRange> &ranges() const { return ranges_; }

private:
  std::vector<MemoryRange> ranges_; ///< Sorted by begin.
};

} // namespace nearbank::sim
