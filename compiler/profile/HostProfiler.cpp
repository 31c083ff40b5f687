// SPDX-License-Identifier: Apache-2.0

#include "compiler/profile/HostProfiler.h"

#include "compiler/profile/PerfCounters.h"
#include "compiler/profile/ProfileDatabase.h"
#include "compiler/profile/ScratchArena.h"
#include "compiler/profile/TraceSampling.h"
#include "runtime/Error.h"
#include "runtime/Executor.h"
#include "runtime/HostThreads.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

namespace nearbank::profile {
namespace {

constexpr int64_t maxRepeats = 200;
constexpr double batchNs = 5000; ///< Shorter nests are timed in batches of this length, over the clock's resolution.

struct Timing {
  double medianNs = 0, spreadNs = 0;
  int64_t repeats = 0;
};

double nowNs() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// HP-1 (docs/model.md): median and interquartile range of repeats; the first run warms up.
Timing measure(ScratchArena &arena, const std::function<void()> &run, const ProfileOptions &options, double budgetNs) {
  auto timed = [&](int64_t batch) {
    if (arena.isInPlace())
      arena.restore();
    double begin = nowNs();
    for (int64_t i = 0; i < batch; ++i)
      run();
    return (nowNs() - begin) / double(batch);
  };
  double begin = nowNs();
  double first = timed(1);
  bool isSlow = first > options.slowNs;
  int64_t wanted = isSlow ? 2 : std::clamp(int64_t(budgetNs / std::max(first, 1.0)), options.minRepeats, maxRepeats);
  int64_t batch = 1;
  if (!arena.isInPlace() && first < batchNs)
    batch = std::max<int64_t>(1, int64_t(batchNs / std::max(timed(1), 20.0)));
  std::vector<double> times;
  while (int64_t(times.size()) < wanted) {
    times.push_back(timed(batch));
    bool isOverBudget = nowNs() - begin > budgetNs;
    if (isOverBudget && int64_t(times.size()) >= std::min(wanted, options.minRepeats))
      break;
  }
  std::sort(times.begin(), times.end());
  auto quantile = [&](double share) {
    double position = share * double(times.size() - 1);
    size_t low = size_t(position);
    size_t high = std::min(low + 1, times.size() - 1);
    return times[low] + (times[high] - times[low]) * (position - double(low));
  };
  return {quantile(0.5), quantile(0.75) - quantile(0.25), int64_t(times.size())};
}

/// Hardware counters of one single-threaded execution, where the kernel gives them.
void readCounters(NestProfile &profile, ScratchArena &arena, const std::function<void()> &run, int64_t lineBytes) {
  std::string reason;
  std::unique_ptr<PerfCounters> counters = PerfCounters::open(reason);
  if (!counters)
    return;
  if (arena.isInPlace())
    arena.restore();
  counters->start();
  run();
  PerfCounts counts = counters->stop();
  if (counts.instructions == 0 || counts.l1Misses == 0)
    return;
  profile.cache.instructions = double(counts.instructions);
  profile.cache.l1Misses = double(counts.l1Misses);
  profile.cache.l3Misses = double(counts.llcMisses);
  profile.cache.dramBytes = double(counts.llcMisses) * double(lineBytes);
  profile.cacheSource = "perf-event";
}

} // namespace

std::string indexClassOf(const Program &program, uint32_t nest, const ProfileOptions &options) {
  const NestInstance &instance = program.nests[nest];
  if (!program.kernels[instance.kernel].facts.isDataDependent && options.indexBounds.empty())
    return "";
  std::string text;
  for (uint32_t number = 0; number < instance.operands.size(); ++number) {
    auto bound = options.indexBounds.find(number);
    if (bound == options.indexBounds.end())
      continue;
    const std::string &name = program.buffers[instance.operands[number].buffer].indexClass;
    text += fmt::format("{}{}:{}<{}", text.empty() ? "" : ",", number, name.empty() ? "uniform" : name, bound->second);
  }
  return text.empty() ? "zeros" : text;
}

NestProfile profileNest(const Program &program, uint32_t nest, const HostKernel &code, const HostConfig &host,
                        const ProfileOptions &options) {
  const NestInstance &instance = program.nests[nest];
  const NestKernel &kernel = program.kernels[instance.kernel];
  if (!code.run)
    throw InternalError({"NB0905", "nest without host code was to be profiled", instance.id, "code for " + kernel.name,
                         "none", "report this with the model that caused it"});
  ScratchArena arena(program, instance, kernel.facts, options.indexBounds);
  int threads = options.threads > 0 ? options.threads : availableCores();

  KernelStatus status;
  auto runOneThread = [&] { code.run(arena.operands(), 0, code.tasks, &status); };
  auto runAllThreads = [&] { runHostKernel(code.run, arena.operands(), code.tasks, threads); };
  if (kernel.facts.isDataDependent) {
    runOneThread();
    if (status.code != 0)
      arena.zeroIndices();
    arena.restore();
  }

  NestProfile profile;
  profile.key = kernel.key;
  profile.host = hostFingerprint();
  profile.version = options.codegenVersion;
  profile.threads = threads;
  profile.parallelTasks = code.traceTasks;
  Timing one = measure(arena, runOneThread, options, options.budgetNs / 2);
  Timing all = threads > 1 && code.tasks > 1 ? measure(arena, runAllThreads, options, options.budgetNs / 2) : one;
  profile.oneThreadNs = one.medianNs;
  profile.oneThreadSpreadNs = one.spreadNs;
  profile.allThreadsNs = all.medianNs;
  profile.allThreadsSpreadNs = all.spreadNs;
  profile.repeats = one.repeats;

  arena.restore();
  profile.cache = traceNest(code, arena, kernel.facts, host, options.traceAccesses);
  profile.cacheSource = code.trace && code.traceTasks > 0 ? "cache-model" : "none";
  readCounters(profile, arena, runOneThread, host.l1d.lineBytes);
  return profile;
}

} // namespace nearbank::profile
