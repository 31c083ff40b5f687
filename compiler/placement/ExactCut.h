// SPDX-License-Identifier: Apache-2.0
// PL-5 (docs/model.md): the placement of least total time, found as a minimum s-t cut. Shared by min-cut and oracle.
#pragma once

#include "compiler/placement/CrossingGraph.h"
#include "compiler/placement/Policy.h"

#include <optional>
#include <span>
#include <vector>

namespace nearbank::placement {

/// What a nest costs on either side, crossings apart.
struct SideTimes {
  double hostNs = 0, pimNs = 0;
  std::optional<Site> fixed; ///< Set when the nest may run on that side only.
};

/// Sites by nest index that minimise totalNs; exact. Of several, the one with the fewest nests on PIM. Hoisted nests
/// keep their fixed side, or the host.
/// @param times by nest index, non-negative
std::vector<Site> minimumCut(const CrossingGraph &graph, std::span<const SideTimes> times);

/// The objective: times of the timed nests on their sides, and what crosses.
double totalNs(const CrossingGraph &graph, std::span<const SideTimes> times, std::span<const Site> sites);

/// Where the PIM times of a cut come from, in words.
struct CutSource {
  const char *policy;                      ///< "min-cut".
  const char *kind;                        ///< "predicted".
  const char *name;                        ///< "predictedPimTime".
  const char *provenance;                  ///< "machine file".
  const char *hostName = "allThreadsTime"; ///< The same for the host times.
  const char *hostProvenance = "host profile";
};

/// Decides every open nest of a program by the cut; times by kernel index.
void placeByCut(const ProgramView &view, std::span<const double> hostNs, std::span<const double> pimNs,
                const CutSource &source, std::vector<NestDecision> &decisions);

} // namespace nearbank::placement
