// SPDX-License-Identifier: Apache-2.0
// two-stage: enough work (PL-1), then memory-bound (PL-2). Reads host profile, MLIR facts and thresholds only.

#include "compiler/placement/Policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nearbank::placement {
namespace {

/// PL-1: work of one execution and its share of the measured host time.
std::vector<EquationRecord> evaluateWork(const NestView &nest) {
  const NestFacts &facts = nest.kernel.facts;
  const OperationCounts &operations = facts.operations;
  const PlacementThresholds &thresholds = nest.machine.thresholds;
  double iterations = double(std::max<int64_t>(1, facts.iterations));
  double perIteration = (operations.total() + operations.loads + operations.stores) / iterations;

  EquationRecord work;
  work.id = "PL-1.1";
  work.text = "iterations x operations per iteration >= placement.workOperations";
  work.inputs = {{"iterations", iterations, "iterations", "MLIR"},
                 {"operationsPerIteration", perIteration, "operations", "MLIR"},
                 {"executions", nest.executions, "executions", "MLIR"},
                 {"placement.workOperations", thresholds.workOperations, "operations", "machine file"}};
  work.value = iterations * perIteration;
  work.threshold = thresholds.workOperations;
  evaluate(work);

  EquationRecord share;
  share.id = "PL-1.2";
  share.text = "executions x host time / host time of the program >= placement.workShare";
  share.inputs = {{"executions", nest.executions, "executions", "MLIR"},
                  {"allThreadsTime", nest.profile.allThreadsNs, "ns", "host profile"},
                  {"programTime", nest.programHostNs, "ns", "host profile"},
                  {"placement.workShare", thresholds.workShare, "share", "machine file"}};
  share.value = nest.programHostNs > 0 ? nest.executions * nest.profile.allThreadsNs / nest.programHostNs : 0;
  share.threshold = thresholds.workShare;
  evaluate(share);
  return {work, share};
}

/// PL-2: memory-boundedness is the least of three ratios to their thresholds.
std::vector<EquationRecord> evaluateMemory(const NestView &nest) {
  const profile::CacheProfile &cache = nest.profile.cache;
  const PlacementThresholds &thresholds = nest.machine.thresholds;
  double operations = nest.kernel.facts.operations.total();

  EquationRecord mpki;
  mpki.id = "PL-2.1";
  mpki.text = "last-level misses per kilo-instruction >= placement.mpki";
  mpki.inputs = {{"l3Misses", cache.l3Misses, "lines", "host profile"},
                 {"instructions", cache.instructions, "instructions", "host profile"},
                 {"placement.mpki", thresholds.mpki, "misses/kilo-instruction", "machine file"}};
  mpki.value = cache.mpki();
  mpki.threshold = thresholds.mpki;
  evaluate(mpki);

  EquationRecord lfmr;
  lfmr.id = "PL-2.2";
  lfmr.text = "last-level misses / L1 misses >= placement.lfmr";
  lfmr.inputs = {{"l3Misses", cache.l3Misses, "lines", "host profile"},
                 {"l1Misses", cache.l1Misses, "lines", "host profile"},
                 {"placement.lfmr", thresholds.lfmr, "share", "machine file"}};
  lfmr.value = cache.lfmr();
  lfmr.threshold = thresholds.lfmr;
  evaluate(lfmr);

  EquationRecord intensity;
  intensity.id = "PL-2.3";
  intensity.text = "operations / DRAM bytes <= placement.intensity";
  intensity.inputs = {{"operations", operations, "operations", "MLIR"},
                      {"dramBytes", cache.dramBytes, "B", "host profile"},
                      {"placement.intensity", thresholds.intensity, "operations/B", "machine file"}};
  intensity.value = operations == 0 ? 0 : cache.dramBytes > 0 ? operations / cache.dramBytes : HUGE_VAL;
  intensity.threshold = thresholds.intensity;
  evaluate(intensity, true);

  EquationRecord bound;
  bound.id = "PL-2";
  bound.text = "min(mpki/placement.mpki, lfmr/placement.lfmr, placement.intensity/intensity) >= 1";
  bound.inputs = {{"mpkiRatio", mpki.ratio, "ratio", "host profile"},
                  {"lfmrRatio", lfmr.ratio, "ratio", "host profile"},
                  {"intensityRatio", intensity.ratio, "ratio", "host profile"}};
  bound.value = std::min({mpki.ratio, lfmr.ratio, intensity.ratio});
  bound.threshold = 1;
  evaluate(bound);
  return {mpki, lfmr, intensity, bound};
}

const char *shortNameOf(const EquationRecord &equation) {
  return equation.id == "PL-1.1"   ? "work"
         : equation.id == "PL-1.2" ? "share of host time"
         : equation.id == "PL-2.1" ? "MPKI"
         : equation.id == "PL-2.2" ? "LFMR"
                                   : "intensity";
}

const char *thresholdOf(const EquationRecord &equation) {
  return equation.id == "PL-1.1"   ? "placement.workOperations"
         : equation.id == "PL-1.2" ? "placement.workShare"
         : equation.id == "PL-2.1" ? "placement.mpki"
         : equation.id == "PL-2.2" ? "placement.lfmr"
                                   : "placement.intensity";
}

std::string comparison(const EquationRecord &equation) {
  bool isSmallPassing = equation.id == "PL-2.3";
  const char *relation = equation.isPassed ? (isSmallPassing ? "<=" : ">=") : (isSmallPassing ? ">" : "<");
  return fmt::format("{} {} {} {}", shortNameOf(equation), shortNumber(equation.value), relation,
                     shortNumber(equation.threshold));
}

/// What the threshold would have to become for this equation to change sides.
std::string flipOf(const EquationRecord &equation) {
  bool isSmallPassing = equation.id == "PL-2.3";
  const char *direction =
      equation.isPassed ? (isSmallPassing ? "below" : "above") : (isSmallPassing ? "at least" : "at most");
  return fmt::format("{} {} {} (now {})", thresholdOf(equation), direction, shortNumber(equation.value),
                     shortNumber(equation.threshold));
}

} // namespace

void placeTwoStage(const NestView &nest, NestDecision &decision) {
  std::vector<EquationRecord> work = evaluateWork(nest), memory = evaluateMemory(nest);
  std::vector<EquationRecord> simple = {work[0], work[1], memory[0], memory[1], memory[2]};
  std::vector<EquationRecord> failed;
  std::copy_if(simple.begin(), simple.end(), std::back_inserter(failed), [](const auto &e) { return !e.isPassed; });
  decision.equations = work;
  decision.equations.insert(decision.equations.end(), memory.begin(), memory.end());
  decision.site = failed.empty() ? Site::Pim : Site::Host;

  if (failed.empty()) {
    decision.reason = fmt::format("enough work ({}) and memory-bound ({}, {}, {})", comparison(simple[0]),
                                  comparison(simple[2]), comparison(simple[3]), comparison(simple[4]));
    // The equation nearest to its border flips first; one with threshold 0 cannot.
    std::stable_sort(simple.begin(), simple.end(), [](const auto &a, const auto &b) { return a.ratio < b.ratio; });
    decision.flip = fmt::format("{}, the nearest of the thresholds", flipOf(simple[0]));
    return;
  }
  bool isTooSmall = failed[0].id == "PL-1.1" || failed[0].id == "PL-1.2";
  std::string shown, flips;
  for (const EquationRecord &equation : failed) {
    shown += (shown.empty() ? "" : ", ") + comparison(equation);
    flips += (flips.empty() ? "" : " and ") + flipOf(equation);
  }
  decision.reason =
      fmt::format("{} ({})", isTooSmall ? "too little work to pay for a launch" : "not memory-bound", shown);
  decision.flip = flips;
  if (failed[0].id == "PL-1.1" && failed[0].value > 0)
    decision.flip += fmt::format("; or {} times the iterations, for example a larger batch",
                                 shortNumber(failed[0].threshold / failed[0].value));
  decision.suggestion = isTooSmall ? "enlarge the batch, or pin the nest with --pin to try it on PIM"
                                   : "pin the nest with --pin to try it on PIM";
}

} // namespace nearbank::placement
