// SPDX-License-Identifier: Apache-2.0

#include "compiler/profile/TraceSink.h"

namespace nearbank::profile {
namespace {
thread_local TraceSink *currentSink = nullptr;
}

TraceSink::TraceSink(CacheHierarchy &caches, const void *arena, uint64_t arenaBytes, uint64_t limit)
    : caches_(caches), arenaBase_(reinterpret_cast<uint64_t>(arena)), arenaBytes_(arenaBytes), limit_(limit) {}

CurrentTraceSink::CurrentTraceSink(TraceSink &sink) : previous_(currentSink) { currentSink = &sink; }
CurrentTraceSink::~CurrentTraceSink() { currentSink = previous_; }

} // namespace nearbank::profile

void nearbankTraceAccess(const void *address, int32_t bytes, int32_t isWrite) {
  if (nearbank::profile::TraceSink *sink = nearbank::profile::currentSink)
    sink->access(address, uint32_t(bytes), isWrite != 0);
}

void nearbankTraceOperations(int64_t count) {
  if (nearbank::profile::TraceSink *sink = nearbank::profile::currentSink)
    sink->addOperations(count);
}
