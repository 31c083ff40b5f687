// SPDX-License-Identifier: Apache-2.0
#include "sim/system/PartSampler.h"

#include "sim/system/LaunchEstimate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace nearbank::sim {
namespace {

/// Tasks of fewer instructions are sampled whole.
constexpr double longTask = 100000;
/// Own cycles between points of a lone task.
constexpr uint64_t pilotPoints = 2000;
/// Parts of a task that must be alike, the first left out since caches are cold.
constexpr size_t parts = 16;
/// How much tasks may differ, and waits in the parts of one: as a share, and in cycles per own cycle.
constexpr double unlike = 0.03, unlikeCycles = 0.005;
/// Share of a core's work that is executed, and least own cycles of it.
constexpr double share = 1.0 / 32, leastPart = 100000;
/// Places of it at which rates are taken.
constexpr size_t places = 32;
/// Change of the rate from the third to the last quarter from which it is anybody's guess.
constexpr double unsettled = 0.03;
/// Cores that are slowed down this much while the vaults are less busy than that meet in few of them. That changes as
/// they drift apart, which takes long.
constexpr double crowded = 1.2, busyEnough = 0.5;
/// Most of a fall of the rate that one quarter leaves to the next.
constexpr double slowestDecay = 0.8;

using Points = std::vector<NmcLaunchStats::Point>;

/// Cycle at which a core had made `own` cycles of its own, between points that have them.
double cycleAt(const Points &points, double own) {
  NmcLaunchStats::Point before;
  for (const NmcLaunchStats::Point &point : points) {
    auto reached = static_cast<double>(point.ownCycles()), from = static_cast<double>(before.ownCycles());
    if (reached >= own)
      return static_cast<double>(before.cycle) +
             static_cast<double>(point.cycle - before.cycle) * (reached > from ? (own - from) / (reached - from) : 1);
    before = point;
  }
  return static_cast<double>(before.cycle);
}

/// What a lone task shows.
struct Lone {
  double own = 0;          ///< Its own cycles.
  double cyclesPerOwn = 0; ///< Without the first of its parts.
  bool isAlike = true;     ///< Waits are spread evenly over the others.
};

Lone examine(const Points &points) {
  Lone task;
  task.own = static_cast<double>(points.back().ownCycles());
  double partOwn = task.own / parts, sum = 0, squares = 0;
  for (size_t k = 1; k < parts; ++k) {
    double waits =
        (cycleAt(points, partOwn * static_cast<double>(k + 1)) - cycleAt(points, partOwn * static_cast<double>(k))) /
            partOwn -
        1;
    sum += waits, squares += waits * waits;
  }
  double mean = sum / (parts - 1);
  task.cyclesPerOwn = 1 + mean;
  double allowed = unlike * mean + unlikeCycles;
  task.isAlike = squares / (parts - 1) - mean * mean <= allowed * allowed;
  return task;
}

/// Rates of quarters 2 to 4 of what was executed, and what they lead to.
struct Course {
  double quarters[3]{};

  double change() const { return quarters[1] - quarters[2]; }
  /// Cores that begin in step meet in the same vaults and drift apart, so rates fall, by less each time.
  double stillToFall() const {
    double first = quarters[0] - quarters[1], second = change();
    if (second <= 0 || first <= second)
      return 0;
    double decay = std::min(second / first, slowestDecay);
    return second * decay / (1 - decay);
  }
};

/// What lone tasks of a few cores tell of all.
struct Pilot {
  double own = 0, cyclesPerOwn = 0; ///< Of a task, as of Lone.
};

/// Nothing when tasks are short, or not alike.
std::optional<Pilot> fly(SimulatedMachine &machine, const NmcLaunch &launch, const SamplingOptions &options) {
  int64_t block = launch.tasks / machine.numCores();
  NmcLaunch part = launch;
  int64_t pilots = std::clamp<int64_t>(launch.tasks / 64, 1, 4);
  part.coreStride = (machine.numCores() + pilots - 1) / pilots;
  const TaskRange middle[] = {{block / 2, block / 2 + 1}};
  part.calls = middle;
  part.pointCycles = pilotPoints;
  NmcLaunchStats stats = machine.launch(part);
  auto numRun = static_cast<double>(stats.coresUsed);
  double perTask = static_cast<double>(stats.instructions) / numRun;
  if (perTask < longTask || perTask * static_cast<double>(launch.tasks) < options.leastInstructions)
    return std::nullopt;
  Pilot pilot;
  double least = std::numeric_limits<double>::max(), most = 0;
  for (const NmcLaunchStats::CoreProgress &core : stats.progress) {
    Lone task = examine(core.points);
    if (!task.isAlike)
      return std::nullopt;
    least = std::min(least, task.own), most = std::max(most, task.own);
    pilot.own += task.own / numRun;
    pilot.cyclesPerOwn += task.cyclesPerOwn / numRun;
  }
  if (most - least > unlike * pilot.own)
    return std::nullopt;
  return pilot;
}

/// All cores have executed the first part of `blockOwn` own cycles. Nothing when their rate may change much.
std::optional<SampledTiming> extrapolate(const NmcLaunchStats &stats, const Pilot &pilot, double blockOwn) {
  std::vector<CoreSample> samples;
  Course course;
  auto numRun = static_cast<double>(stats.progress.size());
  std::vector<double> rates(places / 4); // of the last quarter; in the long run, cores that do the same share them
  for (const NmcLaunchStats::CoreProgress &core : stats.progress) {
    CoreSample sample;
    auto executed = static_cast<double>(core.points.back().ownCycles());
    double step = executed / static_cast<double>(places);
    auto at = [&](size_t place) { return cycleAt(core.points, step * static_cast<double>(place)); };
    sample.startCycles = sample.endCycle = at(places);
    sample.startOwnCycles = sample.executedOwnCycles = executed;
    sample.rest = blockOwn - executed;
    size_t first = places - rates.size();
    for (size_t k = 0; k < rates.size(); ++k)
      rates[k] += (at(first + k + 1) - at(first + k)) / step / numRun;
    for (size_t q = 0; q < 3; ++q)
      course.quarters[q] += (at(places / 4 * (q + 2)) - at(places / 4 * (q + 1))) * 4 / executed / numRun;
    samples.push_back(std::move(sample));
  }
  double rate = course.quarters[2];
  bool isCrowded = rate > crowded * pilot.cyclesPerOwn && stats.vaultBusyShare < busyEnough;
  if (isCrowded || std::fabs(course.change()) > unsettled * rate)
    return std::nullopt;
  for (CoreSample &sample : samples)
    sample.rates = rates, sample.efforts.assign(rates.size(), 1);
  double fall = course.stillToFall() * samples.front().rest;
  SampledTiming timing = estimateLaunch(stats, std::move(samples), 1, -fall);
  double nsPerCycle = stats.timeNs / static_cast<double>(stats.coreCycles);
  timing.lowNs -= fall / 2 * nsPerCycle, timing.highNs += fall / 2 * nsPerCycle;
  return timing;
}

} // namespace

std::optional<SampledTiming> samplePart(SimulatedMachine &machine, const NmcLaunch &launch,
                                        const SamplingOptions &options) {
  int64_t block = launch.tasks / machine.numCores();
  if (block < 1 || launch.tasks % machine.numCores() != 0)
    return std::nullopt;
  std::optional<Pilot> pilot = fly(machine, launch, options);
  if (!pilot)
    return std::nullopt;
  double blockOwn = pilot->own * static_cast<double>(block), limit = std::max(leastPart, blockOwn * share);
  if (limit * options.leastGain > std::min(pilot->own, blockOwn / 2))
    return std::nullopt;
  NmcLaunch part = launch;
  part.ownCyclesLimit = static_cast<uint64_t>(limit);
  part.pointCycles = part.ownCyclesLimit / (4 * places);
  std::optional<SampledTiming> timing = extrapolate(machine.launch(part), *pilot, blockOwn);
  if (timing)
    timing->sampledShare = limit / blockOwn;
  return timing;
}

} // namespace nearbank::sim
