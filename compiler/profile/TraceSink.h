// SPDX-License-Identifier: Apache-2.0
// Where compiled trace code reports its accesses; feeds them to the cache model.
#pragma once

#include "compiler/profile/CacheHierarchy.h"

#include <cstdint>

#define NB_TRACE_EXPORT __attribute__((visibility("default")))

/// Called by trace code for each element access. Does nothing on a thread without a current sink.
extern "C" NB_TRACE_EXPORT void nearbankTraceAccess(const void *address, int32_t bytes, int32_t isWrite);
/// Called by trace code with the arithmetic operations it has executed since the last call.
extern "C" NB_TRACE_EXPORT void nearbankTraceOperations(int64_t count);

namespace nearbank::profile {

/// Receives the accesses of one thread. Addresses inside the arena are taken relative to its start, so that the
/// result does not depend on where the host put it.
class TraceSink {
public:
  /// @param limit accesses that reach the cache model; those after it are counted only
  TraceSink(CacheHierarchy &caches, const void *arena, uint64_t arenaBytes, uint64_t limit);

  void access(const void *address, uint32_t bytes, bool isWrite) {
    ++accesses_;
    if (accesses_ > limit_)
      return;
    uint64_t offset = reinterpret_cast<uint64_t>(address) - arenaBase_;
    if (offset >= arenaBytes_)
      offset = outsideBase + (offset & outsideMask);
    caches_.access(offset, bytes, isWrite);
  }
  void addOperations(int64_t count) { operations_ += uint64_t(count); }

  uint64_t accesses() const { return accesses_; } ///< All accesses reported.
  uint64_t operations() const { return operations_; }
  bool isOverLimit() const { return accesses_ > limit_; }
  void setLimit(uint64_t limit) { limit_ = limit; }

private:
  static constexpr uint64_t outsideBase = uint64_t(1) << 46; ///< Nest-local scratch memory is put here.
  static constexpr uint64_t outsideMask = (uint64_t(1) << 20) - 1;

  CacheHierarchy &caches_;
  uint64_t arenaBase_, arenaBytes_, limit_;
  uint64_t accesses_ = 0, operations_ = 0;
};

/// Makes a sink the current one of this thread for the lifetime of the object.
class CurrentTraceSink {
public:
  explicit CurrentTraceSink(TraceSink &sink);
  ~CurrentTraceSink();
  CurrentTraceSink(const CurrentTraceSink &) = delete;
  CurrentTraceSink &operator=(const CurrentTraceSink &) = delete;

private:
  TraceSink *previous_;
};

} // namespace nearbank::profile
