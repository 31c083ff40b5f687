// SPDX-License-Identifier: Apache-2.0
// Stream prefetcher.
#include "sim/memory/StreamPrefetcher.h"

#include <algorithm>
#include <bit>

namespace nearbank::sim {

StreamPrefetcher::StreamPrefetcher(const PrefetchConfig &config, int64_t lineBytes)
    : config_(config), lineShift_(static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(lineBytes)))),
      pageShift_(static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(config.pageBytes)))),
      streams_(static_cast<size_t>(config.streams)) {}

void StreamPrefetcher::reset() {
  std::fill(streams_.begin(), streams_.end(), Stream{});
  latest_ = 0;
  clock_ = 0;
}

const std::vector<uint64_t> &StreamPrefetcher::observe(uint64_t address) {
  lines_.clear();
  if (streams_.empty())
    return lines_;
  uint64_t page = address >> pageShift_;
  if (streams_[latest_].page != page) {
    size_t found = 0, oldest = 0;
    for (; found < streams_.size() && streams_[found].page != page; ++found)
      if (streams_[found].lastUse < streams_[oldest].lastUse)
        oldest = found;
    latest_ = found < streams_.size() ? found : oldest;
  }
  Stream &stream = streams_[latest_];
  stream.lastUse = ++clock_;
  int64_t linesPerPage = int64_t{1} << (pageShift_ - lineShift_);
  auto line = static_cast<int64_t>(address >> lineShift_) & (linesPerPage - 1);
  if (stream.page != page) {
    stream = {page, line, line, 0, 1, clock_};
    return lines_;
  }
  if (line == stream.line)
    return lines_;
  int64_t direction = line > stream.line ? 1 : -1;
  if (direction == stream.direction)
    ++stream.run;
  else
    stream.direction = direction, stream.run = 2, stream.frontier = line;
  stream.line = line;
  if ((line - stream.frontier) * direction > 0)
    stream.frontier = line;
  if (stream.run < config_.trainAccesses)
    return lines_;
  for (int64_t i = 0; i < config_.degree; ++i) {
    int64_t next = stream.frontier + direction;
    if (next < 0 || next >= linesPerPage || (next - line) * direction > config_.distanceLines)
      break;
    stream.frontier = next;
    lines_.push_back(page << pageShift_ | static_cast<uint64_t>(next) << lineShift_);
  }
  return lines_;
}

} // namespace nearbank::sim
