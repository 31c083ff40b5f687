// SPDX-License-Identifier: Apache-2.0

#include "compiler/placement/ExactCut.h"

#include "compiler/placement/MaxFlow.h"

#include <fmt/format.h>

#include <cmath>

namespace nearbank::placement {
namespace {

/// Sum of the capacities after scaling, at most: a quarter of what the type holds, so that infinity fits too.
constexpr double largestSum = double(int64_t{1} << 60);

/// Turns times into integers that are as fine as 64 bits allow for the sum of all of them. The scale is a power of two.
class Scale {
public:
  Scale(const CrossingGraph &graph, std::span<const SideTimes> times) {
    double sum = double(graph.timedNests().size() + 1) * (graph.launchNs() + graph.returnNs() + 1);
    for (uint32_t nest : graph.timedNests())
      sum += times[nest].hostNs + times[nest].pimNs;
    for (const VersionCost &version : graph.versions())
      sum += version.flushNs + version.fetchNs;
    factor_ = std::exp2(std::floor(std::log2(largestSum / sum)));
  }
  int64_t operator()(double ns) const { return std::llround(ns * factor_); }
  static constexpr int64_t infinity = int64_t{1} << 61;

private:
  double factor_ = 1;
};

constexpr uint32_t source = 0, sink = 1;

/// The network: PIM is the source's side. `nodes` maps nests to nodes.
MaxFlow buildNetwork(const CrossingGraph &graph, std::span<const SideTimes> times, std::span<const uint32_t> nodes,
                     uint32_t numNodes) {
  Scale scale(graph, times);
  MaxFlow network(numNodes);
  uint32_t before = sink; // The caller is on the host.
  for (uint32_t nest : graph.timedNests()) {
    const SideTimes &time = times[nest];
    uint32_t node = nodes[nest];
    network.addEdge(source, node, time.fixed == Site::Pim ? Scale::infinity : scale(time.hostNs));
    network.addEdge(node, sink, time.fixed == Site::Host ? Scale::infinity : scale(time.pimNs));
    network.addEdge(node, before, scale(graph.launchNs()));
    if (before != sink)
      network.addEdge(before, node, scale(graph.returnNs()));
    before = node;
  }
  if (before != sink)
    network.addEdge(before, sink, scale(graph.returnNs()));
  for (const VersionCost &version : graph.versions()) {
    uint32_t producer = version.producer ? nodes[*version.producer] : sink;
    if (!version.consumers.empty()) {
      // P_v is on PIM as soon as one consumer is, and then the producer pays for being on the host.
      uint32_t onPim = network.addNode();
      network.addEdge(onPim, producer, scale(version.flushNs));
      for (uint32_t consumer : version.consumers)
        network.addEdge(nodes[consumer], onPim, Scale::infinity);
    }
    if (producer == sink)
      continue;
    // H_v is on the host as soon as one consumer is, and then the producer pays for being on PIM.
    uint32_t onHost = version.isReadByCaller ? sink : network.addNode();
    network.addEdge(producer, onHost, scale(version.fetchNs));
    if (onHost != sink)
      for (uint32_t consumer : version.consumers)
        network.addEdge(onHost, nodes[consumer], Scale::infinity);
  }
  return network;
}

/// PL-5 for one nest: the total as placed against the total with this nest alone on the other side.
EquationRecord cutRecord(const ProgramView &view, const NestView &nest, const CutSource &source, const SideTimes &times,
                         double placedNs, double movedNs, double crossingChangeNs) {
  const CoherenceConfig &cost = view.machine.coherence;
  EquationRecord record;
  record.id = "PL-5";
  record.text = "total time as placed <= total time with this nest alone on the other side";
  record.inputs = {{source.hostName, times.hostNs, "ns", source.hostProvenance},
                   {source.name, times.pimNs, "ns", source.provenance},
                   {"crossingChange", crossingChangeNs, "ns", "machine file"},
                   {"coherence.launchNs", cost.launchNs, "ns", "machine file"},
                   {"coherence.returnNs", cost.returnNs, "ns", "machine file"}};
  if (nest.dpuKernel) // Each launch pays for itself, wherever the others run.
    record.inputs = {{source.hostName, times.hostNs, "ns", source.hostProvenance},
                     {source.name, times.pimNs - nest.transferNs, "ns", source.provenance},
                     {"transfers", nest.transferNs, "ns", "machine file"}};
  record.value = placedNs;
  record.threshold = movedNs;
  evaluate(record, true);
  record.ratio = NAN; // Both sums mix kinds.
  return record;
}

void explain(const NestView &nest, const CutSource &source, const SideTimes &times, double change,
             double crossingChange, NestDecision &decision) {
  bool isOnPim = decision.site == Site::Pim;
  auto [hostNs, pimNs, fixed] = times;
  const char *otherSide = isOnPim ? "the host" : "PIM";
  if (nest.dpuKernel)
    decision.reason = fmt::format("least total time of the program: {} ns {} on PIM and {} ns of transfers, {} ns on "
                                  "the host; alone on {} it would add {} ns",
                                  shortNumber(pimNs - nest.transferNs), source.kind, shortNumber(nest.transferNs),
                                  shortNumber(hostNs), otherSide, shortNumber(change));
  else
    decision.reason = fmt::format("least total time of the program: {} ns {} on PIM, {} ns on the host; alone on {} it "
                                  "would add {} ns, {} ns of it crossings",
                                  shortNumber(pimNs), source.kind, shortNumber(hostNs), otherSide, shortNumber(change),
                                  shortNumber(crossingChange));
  decision.flip = isOnPim
                      ? fmt::format("PIM slower by more than {} ns, or the host faster by as much", shortNumber(change))
                      : fmt::format("a host time above {} ns (now {}), or PIM faster by more than {} ns",
                                    shortNumber(hostNs + change), shortNumber(hostNs), shortNumber(change));
  if (!isOnPim)
    decision.suggestion = "pin the nest with --pin to try it on PIM";
}

} // namespace

std::vector<Site> minimumCut(const CrossingGraph &graph, std::span<const SideTimes> times) {
  std::vector<uint32_t> nodes(times.size());
  uint32_t numNodes = 2;
  for (uint32_t nest : graph.timedNests())
    nodes[nest] = numNodes++;
  MaxFlow network = buildNetwork(graph, times, nodes, numNodes);
  network.run(source, sink);
  std::vector<Site> sites;
  for (const SideTimes &time : times)
    sites.push_back(time.fixed.value_or(Site::Host));
  for (uint32_t nest : graph.timedNests())
    sites[nest] = network.isOnSourceSide(nodes[nest]) ? Site::Pim : Site::Host;
  return sites;
}

double totalNs(const CrossingGraph &graph, std::span<const SideTimes> times, std::span<const Site> sites) {
  double total = graph.costNs(sites);
  for (uint32_t nest : graph.timedNests())
    total += sites[nest] == Site::Pim ? times[nest].pimNs : times[nest].hostNs;
  return total;
}

void placeByCut(const ProgramView &view, std::span<const double> hostNs, std::span<const double> pimNs,
                const CutSource &source, std::vector<NestDecision> &decisions) {
  CrossingGraph graph(view.program, view.machine);
  std::vector<SideTimes> times(view.nests.size());
  for (size_t i = 0; i < times.size(); ++i) {
    uint32_t kernel = view.nests[i].instance.kernel;
    times[i] = {hostNs[kernel], pimNs[kernel] + view.nests[i].transferNs, std::nullopt};
    if (!view.isOpen[i])
      times[i].fixed = decisions[i].site;
  }
  std::vector<Site> sites = minimumCut(graph, times);
  double placedNs = totalNs(graph, times, sites);
  for (size_t position = 0; position < graph.timedNests().size(); ++position) {
    uint32_t i = graph.timedNests()[position];
    if (!view.isOpen[i])
      continue;
    NestDecision &decision = decisions[i];
    decision.site = sites[i];
    double toPim = times[i].pimNs - times[i].hostNs;
    double crossingChange = graph.changeNs(sites, position);
    // The optimum leaves no negative change; rounding may.
    double change = std::max(0.0, (sites[i] == Site::Host ? toPim : -toPim) + crossingChange);
    explain(view.nests[i], source, times[i], change, crossingChange, decision);
    decision.equations.push_back(
        cutRecord(view, view.nests[i], source, times[i], placedNs, placedNs + change, crossingChange));
  }
}

} // namespace nearbank::placement
