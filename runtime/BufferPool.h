// SPDX-License-Identifier: Apache-2.0
// Memory for a program's temporaries: aligned blocks that stay mapped from one run to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>

namespace nearbank {

/// Hands out 64-byte-aligned blocks and keeps returned ones, so that a repeated run does not fault its pages in again.
/// Thread-safe.
class BufferPool {
public:
  static constexpr size_t alignment = 64;

  struct Block {
    void *data = nullptr;
    uint64_t bytes = 0; ///< Usable size, at least what was asked for.
  };

  /// @param keepBytes most bytes kept of returned blocks; the oldest are freed beyond it
  explicit BufferPool(uint64_t keepBytes) : keepBytes_(keepBytes) {}
  ~BufferPool();
  BufferPool(const BufferPool &) = delete;
  BufferPool &operator=(const BufferPool &) = delete;

  /// The pool of this process. Never destroyed: runs may be in flight when the process exits.
  static BufferPool &shared();

  /// Returns a block of unspecified contents. A request of zero bytes gives a block too.
  /// @throws DeviceError NB0603 when memory runs out
  Block acquire(uint64_t bytes);
  void release(Block block);
  uint64_t keptBytes() const;

private:
  void trim();

  const uint64_t keepBytes_;
  mutable std::mutex mutex_;
  std::list<Block> kept_; ///< Most recently returned first.
  uint64_t keptBytes_ = 0;
};

} // namespace nearbank
