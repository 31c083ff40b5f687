// SPDX-License-Identifier: Apache-2.0
// Stream prefetcher of a second-level cache: follows ascending and descending runs of lines within pages.
#pragma once

#include "runtime/Machine.h"

#include <cstdint>
#include <vector>

namespace nearbank::sim {

class StreamPrefetcher {
public:
  StreamPrefetcher(const PrefetchConfig &config, int64_t lineBytes);

  /// Observes an access to a line. @return lines to prefetch, valid until the next call
  const std::vector<uint64_t> &observe(uint64_t address);
  void reset();

private:
  struct Stream {
    uint64_t page = ~uint64_t{0};
    int64_t line = 0;      ///< Latest access, line within the page.
    int64_t frontier = 0;  ///< Furthest line that was prefetched or accessed.
    int64_t direction = 0; ///< 1, -1, or 0 while unknown.
    int64_t run = 0;       ///< Accesses in that direction.
    uint64_t lastUse = 0;
  };

  PrefetchConfig config_;
  unsigned lineShift_, pageShift_;
  std::vector<Stream> streams_;
  size_t latest_ = 0; ///< Stream of the latest access, where the search begins.
  uint64_t clock_ = 0;
  std::vector<uint64_t> lines_;
};

} // namespace nearbank::sim
