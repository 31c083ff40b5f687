// SPDX-License-Identifier: Apache-2.0
#include "sim/system/LaunchEstimate.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace nearbank::sim {
namespace {

/// Two-sided 95 % quantile of Student's t by degrees of freedom, from 2 on; from the standard table.
constexpr double studentQuantiles[] = {4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306};
/// Error of the method that neither the spread over places nor over cores shows, as a share of the extrapolated time;
/// docs/results/sampling.md bounds it.
constexpr double modelError = 0.03;

double meanOf(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values)
    sum += value;
  return sum / static_cast<double>(values.size());
}

/// Cycles of the slowest core, with their uncertainty.
struct Slowest {
  double cycles = 0, deviation = 0;
};

/// Expected maximum over cores of what each takes in all, `noise` being the deviation of what it did not execute.
Slowest slowestOf(const std::vector<double> &totals, const std::vector<double> &noise) {
  constexpr int draws = 400;
  std::mt19937_64 random(1); // the same draws for the same launch
  auto normal = [&] {
    double sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += static_cast<double>(random() >> 11) * 0x1p-53;
    return sum;
  };
  double sum = 0, squares = 0;
  for (int draw = 0; draw < draws; ++draw) {
    double most = 0;
    for (size_t i = 0; i < totals.size(); ++i)
      most = std::max(most, totals[i] + noise[i] * normal());
    sum += most;
    squares += most * most;
  }
  double mean = sum / draws;
  return {mean, std::sqrt(std::max(0.0, squares / draws - mean * mean))};
}

using Values = std::vector<double> CoreSample::*;

std::vector<double> placeMeans(const std::vector<CoreSample> &cores, Values values) {
  std::vector<double> means((cores.front().*values).size());
  for (const CoreSample &core : cores)
    for (size_t k = 0; k < means.size(); ++k)
      means[k] += (core.*values)[k] / static_cast<double>(cores.size());
  return means;
}

/// Variance of a value about what its core and its place have.
double scatter(const std::vector<CoreSample> &cores, Values values) {
  std::vector<double> ofPlace = placeMeans(cores, values);
  if (cores.size() < 2 || ofPlace.size() < 2)
    return 0;
  double mean = meanOf(ofPlace), squares = 0;
  for (const CoreSample &core : cores) {
    double ofCore = meanOf(core.*values);
    for (size_t k = 0; k < ofPlace.size(); ++k) {
      double residual = (core.*values)[k] - ofCore - ofPlace[k] + mean;
      squares += residual * residual;
    }
  }
  return squares / static_cast<double>((cores.size() - 1) * (ofPlace.size() - 1));
}

/// Relative half width of the mean rate over places. Second differences leave a steady trend out, which evenly spread
/// places sample without error.
double placeError(const std::vector<double> &rates) {
  size_t places = rates.size();
  double squares = 0;
  if (places >= 4) {
    for (size_t k = 1; k + 1 < places; ++k)
      squares += std::pow(rates[k - 1] - 2 * rates[k] + rates[k + 1], 2) / 6;
    squares /= static_cast<double>(places - 2);
  } else {
    for (size_t k = 1; k < places; ++k)
      squares += std::pow(rates[k] - rates[k - 1], 2) / 2;
    squares /= static_cast<double>(places - 1);
  }
  size_t freedom = std::clamp<size_t>(places, 4, std::size(studentQuantiles) + 3) - 2;
  return studentQuantiles[freedom - 2] * std::sqrt(squares / static_cast<double>(places)) / meanOf(rates);
}

void scale(NmcLaunchStats &stats, double factor) {
  forEachCount([&](uint64_t NmcLaunchStats::*count) {
    stats.*count = static_cast<uint64_t>(std::llround(static_cast<double>(stats.*count) * factor));
  });
  for (uint64_t &count : stats.instructionsByClass)
    count = static_cast<uint64_t>(std::llround(static_cast<double>(count) * factor));
}

} // namespace

SampledTiming estimateLaunch(const NmcLaunchStats &stats, std::vector<CoreSample> cores, double unitsOfPlace,
                             double laterCycles) {
  auto numCores = static_cast<double>(cores.size());
  std::vector<double> rates = placeMeans(cores, &CoreSample::rates);
  double mean = meanOf(rates), between = 0;
  for (const CoreSample &core : cores)
    between += std::pow(meanOf(core.rates) - mean, 2);
  double ofCores = numCores > 1 ? between / (numCores - 1) : 0;
  // Draws the cores' rates together as far as their differences are what places differ by anyway.
  double ofMeans = scatter(cores, &CoreSample::rates) / static_cast<double>(rates.size());
  double kept = ofCores > 0 ? std::max(0.0, 1 - ofMeans / ofCores) : 1;
  // Waiting evens out over cores that share the vaults; work does not.
  double effort = meanOf(placeMeans(cores, &CoreSample::efforts));
  double ofUnit =
      effort > 0 ? scatter(cores, &CoreSample::efforts) * unitsOfPlace / (effort * effort) : 0; // variance, relative
  std::vector<double> totals, noise;
  double lastEnd = 0, executedOwn = 0, allOwn = 0;
  for (const CoreSample &core : cores) {
    double rate = mean + kept * (meanOf(core.rates) - mean);
    totals.push_back(core.startCycles + laterCycles + rate * core.rest);
    noise.push_back(rate * std::sqrt(ofUnit * core.rest));
    lastEnd = std::max(lastEnd, core.endCycle);
    executedOwn += core.executedOwnCycles;
    allOwn += core.startOwnCycles + meanOf(core.efforts) * core.rest;
  }
  Slowest slowest = slowestOf(totals, noise);
  // What leaves the caches at the end.
  double tail = std::max(0.0, static_cast<double>(stats.coreCycles) - lastEnd);
  double nsPerCycle = stats.timeNs / static_cast<double>(stats.coreCycles);
  SampledTiming timing;
  timing.isExact = false;
  timing.stats = stats;
  timing.stats.progress.clear();
  scale(timing.stats, allOwn / executedOwn);
  timing.stats.coreCycles = static_cast<uint64_t>(std::llround(slowest.cycles + tail));
  timing.stats.timeNs = (slowest.cycles + tail) * nsPerCycle;
  double extrapolated = std::max(0.0, slowest.cycles - cores.front().startCycles);
  double half = std::hypot(placeError(rates) * extrapolated, slowest.deviation * 2, modelError * extrapolated);
  timing.lowNs = std::max(0.0, timing.stats.timeNs - half * nsPerCycle);
  timing.highNs = timing.stats.timeNs + half * nsPerCycle;
  return timing;
}

} // namespace nearbank::sim
