// SPDX-License-Identifier: Apache-2.0
// Best-fit reuse of returned blocks.
#include "runtime/BufferPool.h"

#include "runtime/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace nearbank {

namespace {

constexpr uint64_t sharedKeepBytes = uint64_t{256} << 20;

} // namespace

BufferPool::~BufferPool() {
  for (Block &block : kept_)
    std::free(block.data);
}

BufferPool &BufferPool::shared() {
  static BufferPool *pool = new BufferPool(sharedKeepBytes);
  return *pool;
}

BufferPool::Block BufferPool::acquire(uint64_t bytes) {
  uint64_t rounded = std::max<uint64_t>((bytes + alignment - 1) / alignment * alignment, alignment);
  {
    std::lock_guard lock(mutex_);
    auto best = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if (it->bytes >= rounded && it->bytes / 2 <= rounded && (best == kept_.end() || it->bytes < best->bytes))
        best = it;
    if (best != kept_.end()) {
      Block block = *best;
      keptBytes_ -= block.bytes;
      kept_.erase(best);
      return block;
    }
  }
  void *data = std::aligned_alloc(alignment, rounded);
  if (!data)
    throw DeviceError({"NB0603", "host memory ran out", "temporary buffer of the program", "",
                       fmt::format("{} B asked for", rounded), "use a smaller batch, or a machine with more memory"});
  return {data, rounded};
}

void BufferPool::release(Block block) {
  if (!block.data)
    return;
  std::lock_guard lock(mutex_);
  kept_.push_front(block);
  keptBytes_ += block.bytes;
  trim();
}

uint64_t BufferPool::keptBytes() const {
  std::lock_guard lock(mutex_);
  return keptBytes_;
}

void BufferPool::trim() {
  while (keptBytes_ > keepBytes_) {
    keptBytes_ -= kept_.back().bytes;
    std::free(kept_.back().data);
    kept_.pop_back();
  }
}

} // namespace nearbank
