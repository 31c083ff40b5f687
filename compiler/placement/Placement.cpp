// SPDX-License-Identifier: Apache-2.0

#include "compiler/placement/Placement.h"

#include "compiler/placement/PimTimeModel.h"
#include "compiler/placement/Policy.h"
#include "compiler/placement/Selectors.h"
#include "runtime/Error.h"
#include "runtime/NearestName.h"

#include <fmt/format.h>

#include <cmath>

namespace nearbank::placement {
namespace {

struct PolicyEntry {
  const char *name;
  Policy policy;
  bool needsProfiles;
  bool placesEverything; ///< Whether serial and hoisted nests are placed too.
};

constexpr PolicyEntry policies[] = {
    {"two-stage", placeTwoStage, true, false}, {"cpu-only", placeCpuOnly, false, false},
    {"pim-only", placePimOnly, false, true},   {"op-type", placeOpType, false, false},
    {"greedy", placeGreedy, true, false},
};

const PolicyEntry &findPolicy(const std::string &name) {
  for (const PolicyEntry &entry : policies)
    if (name == entry.name)
      return entry;
  throw UserError({"NB0404", "unknown policy", "--policy " + name, "one of " + joinNames(policyNames()),
                   "'" + name + "'", fmt::format("did you mean '{}'?", nearestName(name, policyNames()))});
}

bool isSerial(const NestFacts &facts) { return facts.parallelExtent < 2 || facts.kind == "scalar"; }

/// PL-3 as a record: shown with every decision, deciding for `greedy` only (through PL-4).
EquationRecord predictionRecord(const NestView &nest, const PimTimePrediction &prediction) {
  EquationRecord record;
  record.id = "PL-3";
  record.text = "max((issue + stall cycles) / cores used x imbalance / clock, DRAM bytes / vault bandwidth)";
  record.inputs = {
      {"issueCycles", prediction.issueCycles, "cycles", "MLIR"},
      {"stallCycles", prediction.stallCycles, "cycles", "host profile"},
      {"coresUsed", prediction.coresUsed, "cores", "MLIR"},
      {"imbalance", prediction.imbalance, "ratio", "MLIR"},
      {"core.clockGHz", nest.machine.core.clockGHz, "GHz", "machine file"},
      {"pimDramBytes", prediction.dramBytes, "B", "host profile"},
      {"bandwidth", double(nest.machine.dram.vaults) * nest.machine.dram.vaultBandwidthGBs, "GB/s", "machine file"}};
  record.value = prediction.kernelNs;
  record.threshold = record.margin = record.ratio = NAN; // It decides nothing by itself.
  return record;
}

NestDecision decide(const PolicyEntry &entry, const NestView &nest, const NestWish &wish,
                    const std::string &pimFailure) {
  NestDecision decision;
  bool isProfiled = !nest.profile.key.empty();
  if (!pimFailure.empty()) {
    decision.status = Status::Failed;
    decision.reason = "no PIM code: " + pimFailure;
    decision.suggestion = "nothing to do: the nest runs on the host";
    decision.flip = "PIM code for this nest";
  } else if (wish.wish == Wish::Pin) {
    decision.site = Site::Pim;
    decision.reason = fmt::format("pinned by --pin {}", wish.selector);
    decision.flip = "leaving out --pin " + wish.selector;
  } else if (wish.wish == Wish::Forbid) {
    decision.reason = fmt::format("forbidden by --forbid {}", wish.selector);
    decision.flip = "leaving out --forbid " + wish.selector;
  } else if (isSerial(nest.kernel.facts) && !entry.placesEverything) {
    decision.status = Status::NotCandidate;
    decision.reason = fmt::format("parallel extent {} < 2: nothing to spread over {} cores",
                                  nest.kernel.facts.parallelExtent, nest.machine.core.count);
    decision.suggestion = "pin the nest with --pin to run it on one PIM core";
    decision.flip = "a parallel extent of at least 2";
  } else if (nest.instance.isHoisted && !entry.placesEverything) {
    decision.reason = "depends on parameters only: runs once, outside the timed program";
    decision.flip = "pinning with --pin";
  } else if (entry.needsProfiles && !isProfiled) {
    throw InternalError({"NB0904", "nest was to be placed without a profile", nest.instance.id,
                         "a profile of " + nest.kernel.name, "none", "report this with the model that caused it"});
  } else {
    entry.policy(nest, decision);
  }
  if (decision.status == Status::KeptOnHost && decision.site == Site::Pim)
    decision.status = Status::Placed;
  if (isProfiled) {
    PimTimePrediction prediction = predictPimTime(nest.kernel.facts, nest.profile, nest.machine);
    decision.predictedPimNs = prediction.kernelNs;
    decision.predictedPimTotalNs = prediction.totalNs;
    decision.equations.push_back(predictionRecord(nest, prediction));
  }
  return decision;
}

} // namespace

const char *nameOf(Status status) {
  switch (status) {
  case Status::Placed:
    return "Placed";
  case Status::KeptOnHost:
    return "KeptOnHost";
  case Status::NotCandidate:
    return "NotCandidate";
  case Status::Failed:
    return "Failed";
  }
  return "";
}

std::string shortNumber(double value) {
  bool isReadable = std::abs(value) >= 1000 && std::abs(value) < 1e7;
  return isReadable ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

void evaluate(EquationRecord &equation, bool isSmallPassing) {
  double value = equation.value, threshold = equation.threshold;
  equation.isPassed = isSmallPassing ? value <= threshold : value >= threshold;
  equation.margin = isSmallPassing ? threshold - value : value - threshold;
  double numerator = isSmallPassing ? threshold : value;
  double denominator = isSmallPassing ? value : threshold;
  equation.ratio = denominator != 0 ? numerator / denominator : HUGE_VAL;
}

std::vector<Site> PlacementResult::sites() const {
  std::vector<Site> sites;
  for (const NestDecision &decision : decisions)
    sites.push_back(decision.site);
  return sites;
}

std::vector<std::string> policyNames() {
  std::vector<std::string> names;
  for (const PolicyEntry &entry : policies)
    names.push_back(entry.name);
  return names;
}

bool needsProfiles(const std::string &policy) { return findPolicy(policy).needsProfiles; }

void checkRequest(const PlacementInput &input) {
  findPolicy(input.policy);
  resolveSelectors(input.program, input.pins, input.forbids);
}

PlacementResult place(const PlacementInput &input) {
  const PolicyEntry &entry = findPolicy(input.policy);
  const Program &program = input.program;
  std::vector<NestWish> wishes = resolveSelectors(program, input.pins, input.forbids);
  static const profile::NestProfile noProfile;
  auto profileOf = [&](uint32_t kernel) -> const profile::NestProfile & {
    return kernel < input.profiles.size() ? input.profiles[kernel] : noProfile;
  };

  std::vector<double> executions(program.kernels.size());
  double programHostNs = 0;
  for (const NestInstance &nest : program.nests) {
    if (nest.isHoisted)
      continue;
    executions[nest.kernel] += 1;
    programHostNs += profileOf(nest.kernel).allThreadsNs;
  }

  PlacementResult result;
  result.policy = input.policy;
  for (size_t i = 0; i < program.nests.size(); ++i) {
    const NestInstance &nest = program.nests[i];
    NestView view{nest,          program.kernels[nest.kernel],           profileOf(nest.kernel),
                  input.machine, std::max(1.0, executions[nest.kernel]), programHostNs};
    std::string failure = nest.kernel < input.pimFailures.size() ? input.pimFailures[nest.kernel] : "";
    result.decisions.push_back(decide(entry, view, wishes[i], failure));
  }
  return result;
}

} // namespace nearbank::placement
