// SPDX-License-Identifier: Apache-2.0

#include "compiler/placement/Placement.h"

#include "compiler/placement/HostTimeModel.h"
#include "compiler/placement/PimTimeModel.h"
#include "compiler/placement/Policy.h"
#include "compiler/placement/Selectors.h"
#include "runtime/DpuKernel.h"
#include "runtime/Error.h"
#include "runtime/NearestName.h"
#include "sim/dpu/DpuConfig.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nearbank::placement {
namespace {

struct PolicyEntry {
  const char *name;
  Policy policy;               ///< Null when the policy decides the program as a whole.
  ProgramPolicy programPolicy; ///< Null when it decides nest by nest.
  bool needsProfiles;
  bool placesEverything = false; ///< Whether serial and hoisted nests are placed too.
  bool needsSimulation = false;
};

constexpr PolicyEntry policies[] = {
    {"two-stage", placeTwoStage, nullptr, true},
    {"cpu-only", placeCpuOnly, nullptr, false},
    {"pim-only", placePimOnly, nullptr, false, true},
    {"op-type", placeOpType, nullptr, false},
    {"greedy", placeGreedy, nullptr, true},
    {"min-cut", nullptr, placeMinCut, true},
    {"oracle", nullptr, placeOracle, true, false, true},
    {"mpki", placeMpki, nullptr, true},
    {"roofline", placeRoofline, nullptr, true},
    {"damov", placeDamov, nullptr, true},
};

const PolicyEntry &findPolicy(const std::string &name) {
  for (const PolicyEntry &entry : policies)
    if (name == entry.name)
      return entry;
  throw UserError({"NB0404", "unknown policy", "--policy " + name, "one of " + joinNames(policyNames()),
                   "'" + name + "'", fmt::format("did you mean '{}'?", nearestName(name, policyNames()))});
}

bool isSerial(const NestFacts &facts) { return facts.parallelExtent < 2 || facts.kind == "scalar"; }

/// PL-3 as a record: shown with every decision, deciding for `greedy` (PL-4) and `min-cut` (PL-5) only.
EquationRecord predictionRecord(const NestView &nest, const PimTimePrediction &prediction) {
  EquationRecord record;
  if (nest.dpuKernel) {
    const dpu::DpuConfig &config = *nest.machine.dpus;
    const DpuKernel &kernel = *nest.dpuKernel;
    record.id = "PL-10";
    record.text = "max(issue cycles, DMA cycles) of the DPU with the most work / clock";
    record.inputs = {{"items", double(kernel.items), "items", "MLIR"},
                     {"slotsPerItem", kernel.slotsPerItem, "slots", "machine file"},
                     {"imbalance", prediction.imbalance, "ratio", "MLIR"},
                     {"issueCycles", prediction.issueCycles, "cycles", "MLIR"},
                     {"dmaTransfers", kernel.dmaTransfers, "transfers", "MLIR"},
                     {"dmaBytes", kernel.dmaBytes, "B", "MLIR"},
                     {"dmaCycles", prediction.stallCycles, "cycles", "machine file"},
                     {"dpus", prediction.coresUsed, "DPUs", "MLIR"},
                     {"dpu.clockMHz", config.clockMHz, "MHz", "machine file"}};
    record.value = prediction.kernelNs;
    record.threshold = record.margin = record.ratio = NAN; // It decides nothing by itself.
    return record;
  }
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

EquationRecord hostRecord(const HostTimePrediction &prediction, const MachineConfig &host) {
  EquationRecord record;
  record.id = "PL-9";
  record.text = "predicted time on the modelled host";
  record.inputs = {{"computeCycles", prediction.computeCycles, "cycles", "MLIR"},
                   {"stallCycles", prediction.stallCycles, "cycles", "host profile"},
                   {"coresUsed", prediction.coresUsed, "cores", "MLIR"},
                   {"imbalance", prediction.imbalance, "ratio", "MLIR"},
                   {"lanes", prediction.lanes, "elements", "machine file"},
                   {"core.clockGHz", host.core.clockGHz, "GHz", "machine file"},
                   {"hostDramBytes", prediction.dramBytes, "B", "MLIR"},
                   {"bandwidth", double(host.dram.vaults) * host.dram.vaultBandwidthGBs, "GB/s", "machine file"},
                   {"threads.forkNs", host.threads.forkNs, "ns", "machine file"},
                   {"threads.joinNs", host.threads.joinNs, "ns", "machine file"}};
  record.value = prediction.timeNs;
  record.threshold = record.margin = record.ratio = NAN; // It decides nothing by itself.
  return record;
}

/// Decides what no policy is asked about: nests without PIM code, the user's wishes, and what is no candidate.
/// @return whether the nest is decided
bool settle(const PolicyEntry &entry, const NestView &nest, const NestWish &wish, const std::string &pimFailure,
            NestDecision &decision) {
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
  } else if (entry.needsProfiles && nest.profile.key.empty()) {
    throw InternalError({"NB0904", "nest was to be placed without a profile", nest.instance.id,
                         "a profile of " + nest.kernel.name, "none", "report this with the model that caused it"});
  } else {
    return false;
  }
  return true;
}

/// Adds what every decision carries, whoever took it.
void complete(const NestView &nest, NestDecision &decision) {
  if (decision.status == Status::KeptOnHost && decision.site == Site::Pim)
    decision.status = Status::Placed;
  if (nest.profile.key.empty())
    return;
  PimTimePrediction prediction = predictPimTime(nest.kernel.facts, nest.profile, nest.machine, nest.dpuKernel);
  decision.predictedPimNs = prediction.kernelNs;
  decision.predictedPimTotalNs = prediction.totalNs + nest.transferNs;
  if (!nest.machine.dpus || nest.dpuKernel) // Else nothing was predicted.
    decision.equations.push_back(predictionRecord(nest, prediction));
  if (nest.host == nullptr)
    return;
  HostTimePrediction host = predictHostTime(nest.kernel.facts, nest.profile, *nest.host);
  decision.predictedHostNs = host.timeNs;
  decision.equations.push_back(hostRecord(host, *nest.host));
}

/// One view per nest, with the sums over the timed program that they share.
std::vector<NestView> viewNests(const PlacementInput &input) {
  static const profile::NestProfile noProfile;
  const Program &program = input.program;
  auto profileOf = [&](const NestInstance &nest) -> const profile::NestProfile & {
    return nest.kernel < input.profiles.size() ? input.profiles[nest.kernel] : noProfile;
  };
  std::vector<double> executions(program.kernels.size());
  double hostNs = 0, instructions = 0;
  for (const NestInstance &nest : program.nests) {
    if (nest.isHoisted)
      continue;
    executions[nest.kernel] += 1;
    hostNs += profileOf(nest).allThreadsNs;
    instructions += profileOf(nest).cache.instructions;
  }
  std::vector<NestView> views;
  for (size_t i = 0; i < program.nests.size(); ++i) {
    const NestInstance &nest = program.nests[i];
    double transferNs = i < input.transferNs.size() ? input.transferNs[i] : 0;
    const DpuKernel *dpu = nest.kernel < input.dpuKernels.size() ? input.dpuKernels[nest.kernel].get() : nullptr;
    views.push_back({nest, program.kernels[nest.kernel], profileOf(nest), input.machine,
                     std::max(1.0, executions[nest.kernel]), hostNs, instructions, input.host, transferNs, dpu});
  }
  return views;
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

HostTime hostTimeOf(const NestView &nest) {
  if (nest.host == nullptr)
    return {nest.profile.allThreadsNs, "measured", "allThreadsTime", "host profile"};
  return {predictHostTime(nest.kernel.facts, nest.profile, *nest.host).timeNs, "predicted", "predictedHostTime",
          "machine file"};
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

bool needsSimulation(const std::string &policy) { return findPolicy(policy).needsSimulation; }

void checkRequest(const PlacementInput &input) {
  if (findPolicy(input.policy).needsSimulation && !input.isSimulated)
    throw UserError({"NB0409", "policy needs simulated times", "--policy " + input.policy,
                     "simulated PIM times of every nest", "--simulate none",
                     "add --simulate exact, or take --policy min-cut, which decides on predicted times"});
  resolveSelectors(input.program, input.pins, input.forbids);
}

PlacementResult place(const PlacementInput &input) {
  checkRequest(input);
  const PolicyEntry &entry = findPolicy(input.policy);
  const Program &program = input.program;
  std::vector<NestWish> wishes = resolveSelectors(program, input.pins, input.forbids);
  std::vector<NestView> views = viewNests(input);

  PlacementResult result;
  result.policy = input.policy;
  result.decisions.resize(views.size());
  std::vector<bool> isOpen(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    uint32_t kernel = views[i].instance.kernel;
    std::string failure = kernel < input.pimFailures.size() ? input.pimFailures[kernel] : "";
    isOpen[i] = !settle(entry, views[i], wishes[i], failure, result.decisions[i]);
    if (isOpen[i] && entry.policy)
      entry.policy(views[i], result.decisions[i]);
  }
  if (entry.programPolicy) {
    ProgramView view{program, input.machine, views, isOpen, {}, {}};
    if (entry.needsSimulation) {
      view.simulatedNs = input.simulatedNs;
      view.hostSimulatedNs = input.hostSimulatedNs;
    }
    entry.programPolicy(view, result.decisions);
  }
  for (size_t i = 0; i < views.size(); ++i)
    complete(views[i], result.decisions[i]);
  return result;
}

} // namespace nearbank::placement
