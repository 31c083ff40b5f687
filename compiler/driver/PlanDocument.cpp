// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/Documents.h"

#include "compiler/placement/DecisionJson.h"
#include "runtime/DpuKernel.h"
#include "runtime/Energy.h"
#include "sim/dpu/DpuConfig.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace nearbank::driver {

using Json = nlohmann::ordered_json;

/// A quantity: value, unit and kind. Values that are no numbers are null.
static Json quantity(double value, const char *unit, const char *kind) {
  return {{"value", std::isfinite(value) ? Json(value) : Json(nullptr)}, {"unit", unit}, {"kind", kind}};
}

static Json factsJson(const NestFacts &facts) {
  const OperationCounts &counts = facts.operations;
  return {{"tripCounts", facts.tripCounts},
          {"iteratorTypes", facts.iteratorTypes},
          {"iterations", facts.iterations},
          {"parallelExtent", facts.parallelExtent},
          {"operations",
           {{"floatOps", counts.floatOps},
            {"divisions", counts.divisions},
            {"transcendentals", counts.transcendentals},
            {"integerOps", counts.integerOps},
            {"conversions", counts.conversions},
            {"loads", counts.loads},
            {"stores", counts.stores},
            {"total", counts.total()}}},
          {"bytesRead", facts.bytesRead},
          {"bytesWritten", facts.bytesWritten},
          {"intensity", facts.intensity()},
          {"accessMaps", facts.accessMaps},
          {"dataDependent", facts.isDataDependent},
          {"computeType", nameOf(facts.computeType)}};
}

static Json profileJson(const profile::NestProfile &profile, const NestFacts &facts) {
  if (profile.key.empty())
    return nullptr;
  // Cache figures come from a model or from counters; the kind says which.
  const char *kind = profile.cacheSource == "perf-event" ? "measured" : "modelled";
  double bytes = profile.cache.dramBytes;
  return {{"oneThreadTime", quantity(profile.oneThreadNs, "ns", "measured")},
          {"oneThreadSpread", quantity(profile.oneThreadSpreadNs, "ns", "measured")},
          {"allThreadsTime", quantity(profile.allThreadsNs, "ns", "measured")},
          {"allThreadsSpread", quantity(profile.allThreadsSpreadNs, "ns", "measured")},
          {"threads", profile.threads},
          {"repeats", profile.repeats},
          {"mpki", quantity(profile.cache.mpki(), "misses/kilo-instruction", kind)},
          {"lfmr", quantity(profile.cache.lfmr(), "ratio", kind)},
          {"l1Misses", quantity(profile.cache.l1Misses, "count", kind)},
          {"l3Misses", quantity(profile.cache.l3Misses, "count", kind)},
          {"dramBytes", quantity(bytes, "B", kind)},
          {"dramIntensity", quantity(bytes > 0 ? facts.operations.total() / bytes : INFINITY, "operations/B", kind)},
          {"sampledShare", profile.cache.sampledShare},
          {"source", profile.cacheSource}};
}

static Json crossingsJson(const Program &program, const std::vector<CrossingRecord> &crossings) {
  Json result = Json::array();
  for (const CrossingRecord &crossing : crossings)
    result.push_back(
        {{"nest", crossing.nest < program.nests.size() ? Json(program.nests[crossing.nest].id) : Json(nullptr)},
         {"kind", crossing.kind},
         {"buffer", crossing.buffer >= 0 ? Json(program.buffers[crossing.buffer].name) : Json(nullptr)},
         {"bytes", crossing.bytes},
         {"time", quantity(crossing.timeNs, "ns", "modelled")}});
  return result;
}

/// 95 % confidence interval of a sampled time; null for exact ones.
static Json intervalJson(const std::optional<PimTiming> &timing) {
  if (!timing || !timing->isSampled)
    return nullptr;
  return {{"low", quantity(timing->lowNs, "ns", "simulated")}, {"high", quantity(timing->highNs, "ns", "simulated")}};
}

/// Of a launch (EN-1); null where it was not simulated, or the machine file has no energies.
static Json energyJson(const std::optional<PimTiming> &timing, const MachineConfig *machine) {
  std::optional<EnergyParts> parts = timing && machine ? energyOf(*timing, *machine) : std::nullopt;
  return parts ? quantity(parts->totalPj(), "pJ", "modelled") : Json(nullptr);
}

/// How DPUs share a nest: what a plan on a machine with DPUs shows beside times.
static Json dpuJson(const Program &program, const Plan &plan, uint32_t index) {
  const NestInstance &nest = program.nests[index];
  const DpuKernel *kernel = nest.kernel < plan.dpuKernels.size() ? plan.dpuKernels[nest.kernel].get() : nullptr;
  if (!kernel)
    return nullptr;
  const dpu::DpuConfig &config = *plan.options.machine.dpus;
  auto dpus = kernel->dpus();
  Json splits = Json::array(), resident = Json::array();
  for (const DpuKernel::Split &split : kernel->splits)
    splits.push_back({{"extent", split.extent}, {"chunk", split.chunk}, {"parts", split.parts()}});
  for (uint32_t operand : plan.transfers->residentOperands[index])
    resident.push_back(program.buffers[nest.operands[operand].buffer].name);
  return {{"dpus", dpus},
          {"firstDpu", 0},
          {"dpuShare", double(dpus) / double(config.numDpus)},
          {"tasklets", kernel->tasklets},
          {"busyTasklets", std::min(kernel->items, kernel->tasklets)},
          {"splits", splits},
          {"mramBytes", kernel->mramBytes},
          {"mramCapacity", DpuKernel::mramRoom},
          {"residentBytes", plan.transfers->residentBytes[index]},
          {"residentBuffers", resident},
          {"instructions", kernel->instructions},
          {"transferTime", quantity(plan.transfers->launchNs(index), "ns", "modelled")}};
}

static Json nestJson(const Program &program, const Plan &plan, uint32_t index) {
  const NestInstance &nest = program.nests[index];
  const NestKernel &kernel = program.kernels[nest.kernel];
  const profile::NestProfile &profile = plan.profiles[nest.kernel];
  const placement::NestDecision &decision = plan.placement.decisions[index];
  bool isOnPim = plan.sites[index] == Site::Pim;
  const std::optional<PimTiming> &simulated = plan.simulated[nest.kernel];
  const std::optional<PimTiming> &host = plan.simulatedHost[nest.kernel];
  const MachineConfig *hostMachine = plan.options.host ? &*plan.options.host : nullptr;
  return {{"id", nest.id},
          {"key", kernel.key},
          {"kernel", kernel.name},
          {"where", isOnPim ? "pim" : "host"},
          {"source", nest.source},
          {"modulePath", nest.modulePath},
          {"torchOp", nest.torchOp},
          {"kind", kernel.facts.kind},
          {"hoisted", nest.isHoisted},
          {"hostTime", profile.key.empty() ? Json(nullptr) : quantity(profile.allThreadsNs, "ns", "measured")},
          {"pimTime", simulated ? quantity(simulated->timeNs, "ns", "simulated") : Json(nullptr)},
          {"pimTimeInterval", intervalJson(simulated)},
          {"pimDramBytes", simulated ? quantity(double(simulated->dramBytes), "B", "simulated") : Json(nullptr)},
          {"pimEnergy", energyJson(simulated, &plan.options.machine)},
          {"modelledHostTime", host ? quantity(host->timeNs, "ns", "simulated") : Json(nullptr)},
          {"modelledHostTimeInterval", intervalJson(host)},
          {"modelledHostDramBytes", host ? quantity(double(host->dramBytes), "B", "simulated") : Json(nullptr)},
          {"modelledHostEnergy", energyJson(host, hostMachine)},
          {"predictedHostTime",
           decision.predictedHostNs > 0 ? quantity(decision.predictedHostNs, "ns", "predicted") : Json(nullptr)},
          {"predictedPimTime",
           decision.predictedPimNs > 0 ? quantity(decision.predictedPimNs, "ns", "predicted") : Json(nullptr)},
          {"dpu", dpuJson(program, plan, index)},
          {"facts", factsJson(kernel.facts)},
          {"profile", profileJson(profile, kernel.facts)},
          {"why", Json::parse(placement::decisionJson(decision))}};
}

/// A sum of simulated launches; unknown as soon as one of them was not simulated.
class SimulatedSum {
public:
  /// @param machine null where nothing is simulated
  explicit SimulatedSum(const MachineConfig *machine) : machine_(machine) {}

  void add(const std::optional<PimTiming> &timing) {
    isKnown_ &= timing.has_value();
    if (!timing)
      return;
    timeNs_ += timing->timeNs;
    dramBytes_ += double(timing->dramBytes);
    if (std::optional<EnergyParts> parts = machine_ ? energyOf(*timing, *machine_) : std::nullopt)
      energyPj_ += parts->totalPj();
    else
      hasEnergy_ = false;
  }
  Json time() const { return isKnown_ ? quantity(timeNs_, "ns", "simulated") : Json(nullptr); }
  Json dramBytes() const { return isKnown_ ? quantity(dramBytes_, "B", "simulated") : Json(nullptr); }
  std::optional<double> energyPj() const { return isKnown_ && hasEnergy_ ? std::optional(energyPj_) : std::nullopt; }

private:
  const MachineConfig *machine_;
  bool isKnown_ = true, hasEnergy_ = true;
  double timeNs_ = 0, dramBytes_ = 0, energyPj_ = 0;
};

/// Sums over the timed (not hoisted) nests.
static Json summaryJson(const Program &program, const Plan &plan) {
  double host = 0, hostOfHost = 0, hostOfPim = 0, predicted = 0, dramBytes = 0, crossing = 0, link = 0;
  int64_t onPim = 0, onHost = 0, hoisted = 0;
  const MachineConfig *hostMachine = plan.options.host ? &*plan.options.host : nullptr;
  SimulatedSum pim(&plan.options.machine), modelled(hostMachine), modelledOfHost(hostMachine),
      modelledOfPim(hostMachine);
  for (size_t i = 0; i < program.nests.size(); ++i) {
    const NestInstance &nest = program.nests[i];
    bool isOnPim = plan.sites[i] == Site::Pim;
    (isOnPim ? onPim : onHost) += 1;
    hoisted += nest.isHoisted;
    if (nest.isHoisted)
      continue;
    const profile::NestProfile &profile = plan.profiles[nest.kernel];
    host += profile.allThreadsNs;
    (isOnPim ? hostOfPim : hostOfHost) += profile.allThreadsNs;
    dramBytes += profile.cache.dramBytes;
    const std::optional<PimTiming> &onHost = plan.simulatedHost[nest.kernel];
    modelled.add(onHost);
    (isOnPim ? modelledOfPim : modelledOfHost).add(onHost);
    if (!isOnPim)
      continue;
    predicted += plan.placement.decisions[i].predictedPimNs;
    pim.add(plan.simulated[nest.kernel]);
  }
  for (const CrossingRecord &record : plan.crossings) {
    crossing += record.timeNs;
    link += record.bytes;
  }
  std::optional<double> linkPj = link > 0 ? linkEnergyPj(link, plan.options.machine) : 0;
  std::optional<double> placedPj; // EN-2
  if (pim.energyPj() && modelledOfHost.energyPj() && linkPj)
    placedPj = *pim.energyPj() + *modelledOfHost.energyPj() + *linkPj;
  auto energy = [](std::optional<double> pj) { return pj ? quantity(*pj, "pJ", "modelled") : Json(nullptr); };
  return {{"numNests", program.nests.size()},
          {"distinctNests", program.kernels.size()},
          {"nestsOnPim", onPim},
          {"nestsOnHost", onHost},
          {"nestsHoisted", hoisted},
          {"hostTime", quantity(host, "ns", "measured")},
          {"hostTimeOfHostNests", quantity(hostOfHost, "ns", "measured")},
          {"hostTimeOfPimNests", quantity(hostOfPim, "ns", "measured")},
          {"pimTime", pim.time()},
          {"dramBytes", pim.dramBytes()},
          {"modelledHostTime", modelled.time()},
          {"modelledHostTimeOfHostNests", modelledOfHost.time()},
          {"modelledHostTimeOfPimNests", modelledOfPim.time()},
          {"modelledHostDramBytes", modelled.dramBytes()},
          {"modelledHostDramBytesOfHostNests", modelledOfHost.dramBytes()},
          {"energy", energy(placedPj)},
          {"pimEnergy", energy(pim.energyPj())},
          {"linkEnergy", energy(linkPj)},
          {"modelledHostEnergy", energy(modelled.energyPj())},
          {"modelledHostEnergyOfHostNests", energy(modelledOfHost.energyPj())},
          {"predictedPimTime", quantity(predicted, "ns", "predicted")},
          {"crossingTime", quantity(crossing, "ns", "modelled")},
          {"linkBytes", quantity(link, "B", "counted")},
          {"hostDramBytes", quantity(dramBytes, "B", "modelled")},
          {"profiledNests", plan.profiledKernels},
          {"reusedProfiles", plan.reusedKernels},
          {"simulatedNests", plan.simulatedKernels},
          {"reusedSimulations", plan.reusedSimulations}};
}

std::string planJson(const CompiledProgram &compiled, const Plan &plan) {
  const Program &program = compiled.program();
  Json document = {{"policy", plan.placement.policy}, {"machine", plan.options.machine.name}};
  document["summary"] = summaryJson(program, plan);
  document["nests"] = Json::array();
  for (uint32_t i = 0; i < program.nests.size(); ++i)
    document["nests"].push_back(nestJson(program, plan, i));
  document["crossings"] = crossingsJson(program, plan.crossings);
  document["remarks"] = Json::array();
  for (const CollectedRemark &remark : plan.remarks) {
    Json arguments = Json::object();
    for (const auto &[key, value] : remark.arguments)
      arguments[key] = value;
    document["remarks"].push_back({{"kind", remark.kind},
                                   {"status", remark.status},
                                   {"nest", remark.nest},
                                   {"location", remark.location},
                                   {"message", remark.text},
                                   {"args", arguments}});
  }
  document["message"] = plan.databaseMessage;
  return document.dump();
}

std::string runJson(const Program &program, const RunRecord &record, const MachineConfig &machine) {
  Json document = {{"launches", Json::array()}};
  for (const LaunchRecord &launch : record.launches) {
    bool isOnPim = launch.site == Site::Pim;
    Json entry = {
        {"nest", program.nests[launch.nest].id},
        {"site", isOnPim ? "pim" : "host"},
        {"time", isOnPim ? quantity(launch.pim.timeNs, "ns", "simulated") : quantity(launch.hostNs, "ns", "measured")},
        {"wallTime", quantity(launch.wallNs, "ns", "measured")}};
    if (isOnPim) {
      entry["instructions"] = launch.pim.instructions;
      entry["coreCycles"] = launch.pim.coreCycles;
      entry["dramBytes"] = launch.pim.dramBytes;
      entry["l1dAccesses"] = launch.pim.l1dAccesses;
      entry["l1dMisses"] = launch.pim.l1dMisses;
      entry["coresUsed"] = launch.pim.coresUsed;
      entry["energy"] = energyJson(launch.pim, &machine);
      entry["counters"] = Json::object();
      for (const auto &[name, value] : launch.pim.counters)
        entry["counters"][name] = value;
    }
    document["launches"].push_back(entry);
  }
  document["crossings"] = crossingsJson(program, record.crossings);
  document["wallTime"] = quantity(record.wallNs, "ns", "measured");
  return document.dump();
}

} // namespace nearbank::driver
