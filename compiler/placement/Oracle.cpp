// SPDX-License-Identifier: Apache-2.0
// oracle: the cut of min-cut on simulated times. It judges the other policies: no real compiler knows these times.

#include "compiler/placement/ExactCut.h"

#include "runtime/Error.h"

namespace nearbank::placement {
namespace {

/// Simulated times of the kernels; 0 where there is none and no open nest needs one.
std::vector<double> requireTimes(const ProgramView &view, std::span<const std::optional<double>> simulatedNs) {
  std::vector<double> times(view.program.kernels.size());
  for (size_t i = 0; i < view.nests.size(); ++i) {
    const NestView &nest = view.nests[i];
    uint32_t kernel = nest.instance.kernel;
    if (kernel < simulatedNs.size() && simulatedNs[kernel])
      times[kernel] = *simulatedNs[kernel];
    else if (view.isOpen[i])
      throw InternalError({"NB0904", "nest was to be placed without a profile", nest.instance.id,
                           "a simulated time of " + nest.kernel.name, "none",
                           "report this with the model that caused it"});
  }
  return times;
}

} // namespace

void placeOracle(const ProgramView &view, std::vector<NestDecision> &decisions) {
  CutSource source{"oracle", "simulated", "pimTime", "simulation"};
  std::vector<double> hostNs(view.program.kernels.size());
  for (const NestView &nest : view.nests)
    hostNs[nest.instance.kernel] = nest.profile.allThreadsNs;
  if (!view.hostSimulatedNs.empty()) {
    hostNs = requireTimes(view, view.hostSimulatedNs);
    source.hostName = "modelledHostTime";
    source.hostProvenance = "simulation";
  }
  placeByCut(view, hostNs, requireTimes(view, view.simulatedNs), source, decisions);
}

} // namespace nearbank::placement
