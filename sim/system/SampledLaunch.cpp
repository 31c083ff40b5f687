// SPDX-License-Identifier: Apache-2.0
#include "sim/system/SampledLaunch.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nearbank::sim {
namespace {

/// Two-sided 95 % quantile of Student's t by degrees of freedom, 1 to 10; from the standard table.
constexpr double studentQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};

/// Adds `weight` times the difference of two launches of one window.
void addDifference(NmcLaunchStats &sum, const NmcLaunchStats &longer, const NmcLaunchStats &shorter, double weight) {
  auto add = [&](uint64_t NmcLaunchStats::*field) {
    double value = static_cast<double>(longer.*field) - static_cast<double>(shorter.*field);
    sum.*field += static_cast<uint64_t>(std::llround(std::max(0.0, value * weight)));
  };
  for (auto field : {&NmcLaunchStats::instructions, &NmcLaunchStats::l1dAccesses, &NmcLaunchStats::l1dMisses,
                     &NmcLaunchStats::l1iMisses, &NmcLaunchStats::writebacks, &NmcLaunchStats::dramReads,
                     &NmcLaunchStats::dramWrites, &NmcLaunchStats::dramBytes, &NmcLaunchStats::rowHits,
                     &NmcLaunchStats::rowMisses, &NmcLaunchStats::rowConflicts, &NmcLaunchStats::memoryStallCycles})
    add(field);
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

class Sampler {
public:
  Sampler(SimulatedMachine &machine, const NmcLaunch &launch, const SamplingOptions &options)
      : machine_(machine), launch_(launch), options_(options),
        block_((launch.tasks + machine.numCores() - 1) / machine.numCores()), cacheLines_(machine.l1dLines()) {}

  SampledTiming run() {
    // A pilot of one task on each core tells how many tasks make a window.
    NmcLaunchStats pilot = window(0, 1);
    double perTask = std::max(1.0, static_cast<double>(pilot.instructions) / std::max<int64_t>(1, pilot.coresUsed));
    int64_t length = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(options_.windowInstructions / perTask)));
    length = fillCache(length);
    // Per window a warm-up of two lengths, and again with a measured length; two lengths at the start of the block.
    int64_t executed = (5 * options_.windows + 2) * length;
    if (options_.windows < 2 || block_ < executed * options_.leastGain)
      return whole();
    return estimate(length);
  }

private:
  NmcLaunchStats window(int64_t first, int64_t count) {
    NmcLaunch part = launch_;
    part.firstTaskOfCore = first;
    part.tasksOfCore = count;
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
    timing.stats = window(0, 2 * length);
    double startCycles = static_cast<double>(timing.stats.coreCycles);
    double nsPerCycle = timing.stats.timeNs / startCycles;
    double rest = static_cast<double>(block_ - 2 * length);
    std::vector<double> rates;
    for (int64_t i = 0; i < options_.windows; ++i) {
      // Windows lie in the middle of equal strata of the block.
      auto first = static_cast<int64_t>(2 * length +
                                        rest * (static_cast<double>(i) + 0.5) / static_cast<double>(options_.windows)) -
                   2 * length;
      NmcLaunchStats shorter = window(first, 2 * length), longer = window(first, 3 * length);
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
    timing.lowNs = std::max(0.0, (startCycles + (mean - error) * rest) * nsPerCycle);
    timing.highNs = (startCycles + (mean + error) * rest) * nsPerCycle;
    timing.sampledShare = static_cast<double>((2 + options_.windows) * length) / static_cast<double>(block_);
    return timing;
  }

  SimulatedMachine &machine_;
  const NmcLaunch &launch_;
  const SamplingOptions &options_;
  int64_t block_;      ///< Tasks of the busiest core.
  int64_t cacheLines_; ///< Of a core's first-level data cache.
};

} // namespace

SampledTiming launchSampled(SimulatedMachine &machine, const NmcLaunch &launch, const SamplingOptions &options) {
  return Sampler(machine, launch, options).run();
}

} // namespace nearbank::sim
