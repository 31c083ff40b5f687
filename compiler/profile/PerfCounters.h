// SPDX-License-Identifier: Apache-2.0
// Hardware counters of the calling thread through perf_event_open, where the kernel gives them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace nearbank::profile {

struct PerfCounts {
  uint64_t instructions = 0;
  uint64_t l1Misses = 0;  ///< L1 data-cache load misses.
  uint64_t llcMisses = 0; ///< Last-level cache misses.
};

/// One group of counters. Counts only the thread that opened it.
class PerfCounters {
public:
  /// Opens the counters.
  /// @param reason why there are none, e.g. "perf_event_open: No such file or directory"
  /// @returns null when the kernel gives none
  static std::unique_ptr<PerfCounters> open(std::string &reason);
  ~PerfCounters();
  PerfCounters(const PerfCounters &) = delete;
  PerfCounters &operator=(const PerfCounters &) = delete;

  void start();
  /// Stops and returns the counts since start.
  PerfCounts stop();

private:
  PerfCounters() = default;
  int files_[3] = {-1, -1, -1};
};

} // namespace nearbank::profile
