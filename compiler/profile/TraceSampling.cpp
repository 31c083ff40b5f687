// SPDX-License-Identifier: Apache-2.0

#include "compiler/profile/TraceSampling.h"

#include "compiler/profile/CacheHierarchy.h"
#include "compiler/profile/TraceSink.h"

#include <algorithm>

namespace nearbank::profile {
namespace {

constexpr int64_t maxWindows = 8;
constexpr uint64_t hardLimitFactor = 4; ///< Accesses over this many budgets are counted, not modelled.
constexpr double residentShare = 0.8;   ///< A footprint below this share of a level's size stays in it.

/// Runs parts of the trace code against one cache hierarchy and keeps what each part added.
class Tracer {
public:
  Tracer(const HostKernel &code, ScratchArena &arena, const HostConfig &host, uint64_t budget)
      : code_(code), arena_(arena), caches_(host),
        sink_(caches_, arena.base(), arena.bytes(), budget * hardLimitFactor) {}

  struct Part {
    CacheCounts counts;
    uint64_t accesses = 0, operations = 0;
    int64_t tasks = 0;
    Part &operator+=(const Part &other) {
      counts += other.counts;
      accesses += other.accesses;
      operations += other.operations;
      tasks += other.tasks;
      return *this;
    }
  };

  Part run(int64_t begin, int64_t end) {
    CacheCounts before = caches_.counts();
    uint64_t accesses = sink_.accesses(), operations = sink_.operations();
    KernelStatus status;
    {
      CurrentTraceSink current(sink_);
      code_.trace(arena_.operands(), begin, end, &status);
    }
    return {caches_.counts() - before, sink_.accesses() - accesses, sink_.operations() - operations, end - begin};
  }

  int64_t lineBytes() const { return caches_.lineBytes(); }

private:
  const HostKernel &code_;
  ScratchArena &arena_;
  CacheHierarchy caches_;
  TraceSink sink_;
};

/// Adds `part` times `factor`; lines that the hard limit kept from the model are taken to miss like those before them.
void addScaled(CacheProfile &profile, double &writeBacks, double &operations, const Tracer::Part &part, double factor) {
  double modelled = double(part.counts.accesses);
  double unmodelled = modelled > 0 ? double(part.accesses) / modelled : 0;
  profile.accesses += double(part.accesses) * factor;
  profile.l1Misses += double(part.counts.l1Misses) * unmodelled * factor;
  profile.l2Misses += double(part.counts.l2Misses) * unmodelled * factor;
  profile.l3Misses += double(part.counts.l3Misses) * unmodelled * factor;
  writeBacks += double(part.counts.writeBacks) * unmodelled * factor;
  operations += double(part.operations) * factor;
}

/// CM-3: misses of a level that holds the whole footprint are bounded by its lines; a full execution misses each
/// line it touches at least once.
void boundByFootprint(double &misses, double footprintLines, bool isResident, double distinctLines) {
  if (isResident)
    misses = std::min(misses, footprintLines);
  misses = std::max(misses, distinctLines);
}

} // namespace

CacheProfile traceNest(const HostKernel &code, ScratchArena &arena, const NestFacts &facts, const HostConfig &host,
                       uint64_t accessBudget) {
  CacheProfile profile;
  int64_t tasks = code.traceTasks;
  if (!code.trace || tasks <= 0)
    return profile;
  Tracer tracer(code, arena, host, accessBudget);
  Tracer::Part prefix = tracer.run(0, 1);
  double perTask = std::max<double>(1, double(prefix.accesses));
  Tracer::Part windows;
  double budget = double(accessBudget);
  if (perTask * double(tasks) <= budget || tasks <= 4) {
    if (tasks > 1)
      prefix += tracer.run(1, tasks);
  } else {
    // CM-2: a quarter of the budget for the prefix, the rest for windows spread evenly over what follows.
    int64_t prefixTasks = std::clamp(int64_t(budget / 4 / perTask), int64_t(1), tasks - 1);
    if (prefixTasks > 1)
      prefix += tracer.run(1, prefixTasks);
    int64_t rest = tasks - prefixTasks;
    int64_t numWindows = std::clamp(int64_t(budget * 0.75 / perTask), int64_t(1), std::min(maxWindows, rest));
    int64_t length = std::clamp(int64_t(budget * 0.75 / perTask) / numWindows, int64_t(1), rest / numWindows);
    for (int64_t i = 0; i < numWindows; ++i) {
      // Each window lies in the middle of its share of the range.
      int64_t share = rest / numWindows;
      int64_t begin = prefixTasks + i * share + (share - length) / 2;
      windows += tracer.run(begin, begin + length);
    }
  }
  double writeBacks = 0, operations = 0;
  addScaled(profile, writeBacks, operations, prefix, 1);
  if (windows.tasks > 0)
    addScaled(profile, writeBacks, operations, windows, double(tasks - prefix.tasks) / double(windows.tasks));
  profile.sampledShare = double(prefix.tasks + windows.tasks) / double(tasks);

  double line = double(tracer.lineBytes());
  if (profile.sampledShare < 1) {
    double span = double(arena.spanBytes());
    double spanLines = span / line;
    double distinctLines = facts.isDataDependent ? 0 : double(arena.distinctBytes()) / line;
    bool isInL3 = span <= residentShare * double(host.l3.sizeBytes);
    boundByFootprint(profile.l2Misses, spanLines, span <= residentShare * double(host.l2.sizeBytes), distinctLines);
    boundByFootprint(profile.l3Misses, spanLines, isInL3, distinctLines);
    profile.l2Misses = std::max(profile.l2Misses, profile.l3Misses);
    profile.l1Misses = std::max(profile.l1Misses, profile.l2Misses);
    if (isInL3)
      writeBacks = 0;
  }
  profile.dramBytes = (profile.l3Misses + writeBacks) * line;
  profile.instructions = profile.accesses + (operations > 0 ? operations : facts.operations.total());
  return profile;
}

} // namespace nearbank::profile
