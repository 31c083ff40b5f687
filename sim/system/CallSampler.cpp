// SPDX-License-Identifier: Apache-2.0
#include "sim/system/CallSampler.h"

#include "sim/system/LaunchEstimate.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nearbank::sim {
namespace {

/// Instructions of one core within which caches are given time to fill; kernels that miss that rarely need no more.
constexpr double fillInstructions = 150000;
/// Instructions of a task from which it is its own warm-up.
constexpr double longTask = 100000;
/// Least instructions of a core in a measured call.
constexpr double leastCall = 4000;
/// Launches of so many instructions are sampled sparsely, smaller ones densely: shares of all tasks.
constexpr double largeLaunch = 5e8, sparseShare = 1.0 / 21, denseShare = 1.0 / 4;
/// Lines that a core reads and writes while three streams pass over all vaults once (32 of 256 B).
constexpr double roundOfVaults = 384;
/// Most of a decaying excess that one start call leaves to the next.
constexpr double slowestDecay = 0.8;

/// Tasks of each core's calls: `start` at the beginning of its block, as many again, then in `strata` places `warmUp`
/// (in the first with `settle` before it) and `measured`.
struct Plan {
  int64_t start = 1;
  bool startsTwice = false;
  int64_t settle = 0, warmUp = 0, measured = 1, strata = 2;

  int64_t starts() const { return startsTwice ? 2 * start : start; }
  int64_t tasks() const { return starts() + settle + strata * (warmUp + measured); }
};

int64_t atLeastOne(double tasks) { return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(tasks))); }

std::optional<Plan> choosePlan(double perTask, double linesPerTask, double cacheLines, int64_t block,
                               double instructions, double leastGain) {
  bool isLong = perTask >= longTask;
  int64_t fill = 1, round = 1;
  if (!isLong && linesPerTask > 0) {
    fill = atLeastOne(std::min(cacheLines / linesPerTask, fillInstructions / perTask));
    round = atLeastOne(std::min(roundOfVaults / linesPerTask, fillInstructions / perTask));
  }
  int64_t brief = atLeastOne(leastCall / perTask), warm = isLong ? 0 : atLeastOne(leastCall / 2 / perTask);
  int64_t settle = isLong ? 0 : round;
  int64_t measured = std::max(brief, (fill + 1) / 2);
  const Plan shapes[] = {{8 * fill, !isLong, 4 * settle, std::max(warm, measured / 2), 2 * measured},
                         {4 * fill, !isLong, 2 * settle, std::max(warm, measured / 2), measured},
                         {2 * fill, !isLong, settle, std::max(warm, measured / 2), measured},
                         {fill, !isLong, settle, std::max(warm, measured / 2), measured},
                         {fill, !isLong, settle, warm, brief},
                         {brief, !isLong, settle, warm, brief},
                         {brief, false, std::min(settle, brief), warm, brief}};
  auto find = [&](double share, std::initializer_list<int64_t> numbersOfStrata) -> std::optional<Plan> {
    for (Plan plan : shapes)
      for (int64_t strata : numbersOfStrata) {
        plan.strata = strata;
        if (static_cast<double>(plan.tasks()) <= share * static_cast<double>(block))
          return plan;
      }
    return std::nullopt;
  };
  double share = instructions >= largeLaunch ? sparseShare : denseShare;
  if (auto plan = find(share, {8, 6, 4}))
    return plan;
  if (auto plan = find(share, {3, 2}))
    return plan;
  return find(1 / leastGain, {4, 3, 2});
}

/// Takes the ends of the calls apart.
std::vector<CoreSample> samplesOf(const NmcLaunchStats &stats, const Plan &plan) {
  std::vector<CoreSample> samples;
  for (const NmcLaunchStats::CoreProgress &core : stats.progress) {
    CoreSample sample;
    size_t next = plan.startsTwice ? 2 : 1;
    NmcLaunchStats::Point started = core.points[next - 1], ended = core.points.back();
    sample.startCycles = static_cast<double>(started.cycle);
    sample.startOwnCycles = static_cast<double>(started.ownCycles());
    sample.endCycle = static_cast<double>(ended.cycle);
    sample.executedOwnCycles = static_cast<double>(ended.ownCycles() - core.waitCycles);
    sample.rest = static_cast<double>(core.blockTasks - plan.starts());
    for (int64_t k = 0; k < plan.strata; ++k) {
      next += plan.warmUp > 0 ? 1 : 0;
      uint64_t waited = k == 0 && plan.warmUp == 0 ? core.waitCycles : 0;
      NmcLaunchStats::Point before = core.points[next - 1], after = core.points[next++];
      auto perTask = [&](uint64_t cycles) {
        return static_cast<double>(cycles - waited) / static_cast<double>(plan.measured);
      };
      sample.rates.push_back(perTask(after.cycle - before.cycle));
      sample.efforts.push_back(perTask(after.ownCycles() - before.ownCycles()));
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

/// Cores that begin in step meet in the same vaults and drift apart: what the two start calls took beyond the rate of
/// the long run falls, and is taken to fall on in the same proportion.
double startExcess(const NmcLaunchStats &stats, const std::vector<CoreSample> &samples, const Plan &plan) {
  if (!plan.startsTwice)
    return 0;
  auto numCores = static_cast<double>(samples.size());
  double first = 0, second = 0, usual = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto &points = stats.progress[i].points;
    first += static_cast<double>(points[0].cycle) / numCores;
    second += static_cast<double>(points[1].cycle - points[0].cycle) / numCores;
    for (double rate : samples[i].rates)
      usual += rate * static_cast<double>(plan.start) / static_cast<double>(plan.strata) / numCores;
  }
  first -= usual, second -= usual;
  if (second <= 0 || first <= second)
    return 0;
  double decay = std::min(second / first, slowestDecay);
  return second * decay / (1 - decay);
}

} // namespace

std::optional<SampledTiming> sampleCalls(SimulatedMachine &machine, const NmcLaunch &launch,
                                         const SamplingOptions &options) {
  int64_t block = launch.tasks / machine.numCores(); // of the core with the fewest
  if (static_cast<double>(block) < options.leastGain * 3)
    return std::nullopt;
  NmcLaunch part = launch;
  // A few tasks of a few cores tell how many tasks make a call.
  part.coreStride = std::max<int64_t>(1, machine.numCores() / 4);
  double perTask = 1, linesPerTask = 0, cyclesPerTask = 1;
  for (int64_t tasks = 1;;) {
    const TaskRange middle[] = {{block / 2, block / 2 + tasks}};
    part.calls = middle;
    NmcLaunchStats pilot = machine.launch(part);
    double executed = static_cast<double>(tasks) * static_cast<double>(std::max<int64_t>(1, pilot.coresUsed));
    perTask = std::max(1.0, static_cast<double>(pilot.instructions) / executed);
    linesPerTask = static_cast<double>(pilot.l1dMisses) / executed;
    cyclesPerTask = static_cast<double>(pilot.coreCycles) / static_cast<double>(tasks);
    auto wanted = static_cast<int64_t>(std::ceil(leastCall / perTask));
    if (wanted <= 2 * tasks || 8 * wanted >= block)
      break;
    tasks = wanted;
  }
  double instructions = perTask * static_cast<double>(launch.tasks);
  if (instructions < options.leastInstructions)
    return std::nullopt;
  std::optional<Plan> plan = choosePlan(perTask, linesPerTask, static_cast<double>(machine.l1dLines()), block,
                                        instructions, options.leastGain);
  if (!plan)
    return std::nullopt;
  std::vector<TaskRange> calls = {{0, plan->start}};
  if (plan->startsTwice)
    calls.push_back({plan->start, plan->starts()});
  part = launch;
  part.spreadCall = calls.size();
  double longest = plan->settle > 0 ? static_cast<double>(plan->settle) : 0.125; // tasks
  part.spreadCycles =
      static_cast<uint64_t>(cyclesPerTask * std::min(roundOfVaults / std::max(1.0, linesPerTask), longest));
  double rest = static_cast<double>(block - plan->starts());
  for (int64_t k = 0; k < plan->strata; ++k) {
    auto middle =
        static_cast<double>(plan->starts()) + rest * (static_cast<double>(k) + 0.5) / static_cast<double>(plan->strata);
    int64_t before = plan->warmUp + (k == 0 ? plan->settle : 0);
    int64_t first = std::clamp(static_cast<int64_t>(std::llround(middle - static_cast<double>(plan->measured) / 2)),
                               before, block - plan->measured);
    if (plan->warmUp > 0)
      calls.push_back({first - before, first});
    calls.push_back({first, first + plan->measured});
  }
  part.calls = calls;
  NmcLaunchStats stats = machine.launch(part);
  std::vector<CoreSample> samples = samplesOf(stats, *plan);
  double excess = startExcess(stats, samples, *plan);
  SampledTiming timing = estimateLaunch(stats, std::move(samples), static_cast<double>(plan->measured), excess);
  timing.sampledShare = static_cast<double>(plan->tasks()) / static_cast<double>(block);
  return timing;
}

double expectedSample(double instructions, const SamplingOptions &options) {
  if (instructions < options.leastInstructions)
    return instructions;
  return instructions * (instructions >= largeLaunch ? sparseShare : denseShare);
}

} // namespace nearbank::sim
