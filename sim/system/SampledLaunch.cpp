// SPDX-License-Identifier: Apache-2.0
#include "sim/system/SampledLaunch.h"

#include "sim/system/CallSampler.h"
#include "sim/system/PartSampler.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nearbank::sim {
namespace {

/// Two-sided 95 % quantile of Student's t by degrees of freedom, 1 to 10; from the standard table.
constexpr double studentQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};

/// Adds `weight` times the difference of two launches of one window.
void addDifference(NmcLaunchStats &sum, const NmcLaunchStats &longer, const NmcLaunchStats &shorter, double weight) {
  forEachCount([&](uint64_t NmcLaunchStats::*field) {
    double value = static_cast<double>(longer.*field) - static_cast<double>(shorter.*field);
    sum.*field += static_cast<uint64_t>(std::llround(std::max(0.0, value * weight)));
  });
  for (size_t c = 0; c < numInstructionClasses; ++c) {
    double value =
        static_cast<double>(longer.instructionsByClass[c]) - static_cast<double>(shorter.instructionsByClass[c]);
    sum.instructionsByClass[c] += static_cast<uint64_t>(std::llround(std::max(0.0, value * weight)));
  }
}

/// Misses of a measured window over the lines of the cache; its warm-up is twice as long. One filling brings the cache
/// into its long-run state; the rest lets cores that start in step, and so meet in the same vaults, drift apart: a
/// stream's time per task settles within 1 % after four to eight fillings.
constexpr double replacement = 4;
/// Windows grow at most this much; a kernel that misses less often than that hardly writes back.
constexpr double longestStretch = 16;

/// Instructions of a launch from which it pays to cut reductions short.
constexpr double largeLaunch = 2e8;
/// Least trips of the shortest of three cut launches; each of the others makes twice as many as the one before.
constexpr int64_t fewestTrips = 2;
/// Share of all trips that the shortest makes, and trips in all from which cutting pays.
constexpr double shortestShare = 1.0 / 16, worthwhileTrips = 8.0 * fewestTrips;
/// Instructions of a task, over those of a window, from which one task is warm-up enough.
constexpr double longTask = 4;
/// Error of extrapolation that repeated windows do not show, as a share of the extrapolated time; the study of
/// docs/model.md bounds it.
constexpr double modelError = 0.02;

class Sampler {
public:
  Sampler(SimulatedMachine &machine, const NmcLaunch &launch, const SamplingOptions &options)
      : machine_(machine), launch_(launch), options_(options),
        block_((launch.tasks + machine.numCores() - 1) / machine.numCores()), cacheLines_(machine.l1dLines()) {}

  SampledTiming run() {
    if (machine_.honoursCalls())
      if (std::optional<SampledTiming> timing = samplePart(machine_, launch_, options_))
        return *timing;
    if (!machine_.honoursCuts() || launch_.reductionTrips < worthwhileTrips)
      return sampleTasks();
    launch_.tripLimit = fewestTrips;
    NmcLaunchStats pilot = window(0, 1);
    double perTask =
        static_cast<double>(pilot.instructions) / static_cast<double>(std::max<int64_t>(1, pilot.coresUsed));
    if (perTask * launch_.reductionTrips / fewestTrips * static_cast<double>(launch_.tasks) >= largeLaunch)
      return cutReductions();
    launch_.tripLimit = 0;
    return sampleTasks();
  }

private:
  SampledTiming sampleTasks() {
    if (machine_.honoursCalls()) {
      if (std::optional<SampledTiming> timing = sampleCalls(machine_, launch_, options_))
        return *timing;
      return whole();
    }
    // A pilot of one task on each core tells how many tasks make a window.
    NmcLaunchStats pilot = window(0, 1);
    double perTask = std::max(1.0, static_cast<double>(pilot.instructions) / std::max<int64_t>(1, pilot.coresUsed));
    int64_t length = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(options_.windowInstructions / perTask)));
    length = fillCache(length);
    // A long task warms the caches up by itself.
    warmUp_ = perTask >= longTask * static_cast<double>(options_.windowInstructions) ? 1 : 2;
    // Per window a warm-up, and again with a measured length; a warm-up at the start of the block.
    int64_t executed = ((2 * warmUp_ + 1) * options_.windows + warmUp_) * length;
    if (options_.windows < 2 || block_ < executed * options_.leastGain)
      return whole();
    return estimate(length);
  }

  /// Trips of a task's outermost reduction loop execute the same instructions. Cores that begin in step meet in the
  /// same vaults and drift apart, so a trip's time falls for a while: launches of n, 2n and 4n trips give the time of a
  /// trip twice, and half of its last fall is taken to be still to come.
  SampledTiming cutReductions() {
    auto trips = std::max(fewestTrips, static_cast<int64_t>(launch_.reductionTrips * shortestShare));
    SampledTiming timings[3];
    for (SampledTiming &timing : timings) {
      launch_.tripLimit = trips << (&timing - timings);
      timing = sampleTasks();
    }
    auto nsOf = [&](int i) { return timings[i].stats.timeNs; };
    auto step = static_cast<double>(2 * trips);
    double early = 2 * (nsOf(1) - nsOf(0)) / step, late = (nsOf(2) - nsOf(1)) / step, fall = (early - late) / 2;
    double rest = launch_.reductionTrips - 2 * step;
    SampledTiming timing = timings[2];
    timing.isExact = false;
    addDifference(timing.stats, timings[2].stats, timings[1].stats, rest / step);
    timing.stats.timeNs = nsOf(2) + (late - fall) * rest;
    timing.stats.coreCycles = static_cast<uint64_t>(
        std::llround(static_cast<double>(timings[2].stats.coreCycles) * timing.stats.timeNs / nsOf(2)));
    double windows = 0;
    for (int i : {1, 2})
      windows = std::hypot(windows, (timings[i].highNs - timings[i].lowNs) / 2 * rest / step);
    widen(timing, std::hypot(windows, fall * rest), late * rest);
    timing.sampledShare *= 2 * step / launch_.reductionTrips;
    return timing;
  }

  /// Sets the interval: `error` from repeated windows, and the model's own on what was extrapolated.
  static void widen(SampledTiming &timing, double error, double extrapolatedNs) {
    double half = std::hypot(error, modelError * extrapolatedNs);
    timing.lowNs = std::max(0.0, timing.stats.timeNs - half);
    timing.highNs = timing.stats.timeNs + half;
  }

  NmcLaunchStats window(int64_t first, int64_t count) {
    NmcLaunch part = launch_;
    part.firstTaskOfCore = first;
    part.tasksOfCore = count;
    part.linesBefore = linesPerTask_ * static_cast<double>(first);
    part.dirtyLinesBefore = dirtyLinesPerTask_ * static_cast<double>(first);
    return machine_.launch(part);
  }

  /// Lengthens windows until their warm-up replaces the first-level cache: before that, lines are not written back as
  /// they are in the long run, but all at the end. Kernels that miss rarely keep their lines and stay short.
  int64_t fillCache(int64_t length) {
    if (block_ < length * options_.leastGain)
      return length;
    NmcLaunchStats first = window(0, length);
    double misses = static_cast<double>(first.l1dMisses) / static_cast<double>(std::max<int64_t>(1, first.coresUsed));
    double wanted = replacement * static_cast<double>(cacheLines_);
    if (misses < 1 || misses >= wanted)
      return length;
    return static_cast<int64_t>(std::ceil(static_cast<double>(length) * std::min(wanted / misses, longestStretch)));
  }

  SampledTiming whole() {
    SampledTiming timing;
    timing.stats = machine_.launch(launch_);
    timing.lowNs = timing.highNs = timing.stats.timeNs;
    return timing;
  }

  SampledTiming estimate(int64_t length) {
    SampledTiming timing;
    timing.isExact = false;
    timing.stats = window(0, warmUp_ * length);
    double tasks =
        static_cast<double>(warmUp_ * length) * static_cast<double>(std::max<int64_t>(1, timing.stats.coresUsed));
    linesPerTask_ = static_cast<double>(timing.stats.l2Misses) / tasks;
    dirtyLinesPerTask_ = static_cast<double>(timing.stats.dirtiedLines) / tasks;
    double startCycles = static_cast<double>(timing.stats.coreCycles);
    double nsPerCycle = timing.stats.timeNs / startCycles;
    double rest = static_cast<double>(block_ - warmUp_ * length);
    std::vector<double> rates;
    for (int64_t i = 0; i < options_.windows; ++i) {
      // Windows lie in the middle of equal strata of the block.
      auto stratum = rest * (static_cast<double>(i) + 0.5) / static_cast<double>(options_.windows);
      auto first = static_cast<int64_t>(stratum);
      NmcLaunchStats shorter = window(first, warmUp_ * length), longer = window(first, (warmUp_ + 1) * length);
      rates.push_back((static_cast<double>(longer.coreCycles) - static_cast<double>(shorter.coreCycles)) /
                      static_cast<double>(length));
      addDifference(timing.stats, longer, shorter, rest / static_cast<double>(length * options_.windows));
    }
    double mean = 0, squares = 0;
    for (double rate : rates)
      mean += rate / static_cast<double>(rates.size());
    for (double rate : rates)
      squares += (rate - mean) * (rate - mean);
    size_t freedom = rates.size() - 1;
    double quantile = studentQuantiles[std::min<size_t>(freedom, std::size(studentQuantiles)) - 1];
    double error = quantile * std::sqrt(squares / static_cast<double>(freedom) / static_cast<double>(rates.size()));
    timing.stats.coreCycles = static_cast<uint64_t>(std::llround(startCycles + mean * rest));
    timing.stats.timeNs = static_cast<double>(timing.stats.coreCycles) * nsPerCycle;
    widen(timing, error * rest * nsPerCycle, mean * rest * nsPerCycle);
    timing.sampledShare = static_cast<double>((warmUp_ + options_.windows) * length) / static_cast<double>(block_);
    return timing;
  }

  SimulatedMachine &machine_;
  NmcLaunch launch_; ///< With the cuts that all launches share.
  const SamplingOptions &options_;
  int64_t block_;                                   ///< Tasks of the busiest core.
  int64_t warmUp_ = 2;                              ///< Window lengths before what is measured.
  int64_t cacheLines_;                              ///< Of a core's first-level data cache.
  double linesPerTask_ = 0, dirtyLinesPerTask_ = 0; ///< Of the start of the block.
};

} // namespace

SampledTiming launchSampled(SimulatedMachine &machine, const NmcLaunch &launch, const SamplingOptions &options) {
  return Sampler(machine, launch, options).run();
}

} // namespace nearbank::sim
