// SPDX-License-Identifier: Apache-2.0
// min-cut: the placement of least total time, PL-3 predicted PIM times beside host times (PL-9 predicted for a modelled
// host, else measured), crossings included.

#include "compiler/placement/ExactCut.h"
#include "compiler/placement/PimTimeModel.h"

namespace nearbank::placement {

void placeMinCut(const ProgramView &view, std::vector<NestDecision> &decisions) {
  std::vector<double> pimNs(view.program.kernels.size());
  std::vector<double> hostNs(view.program.kernels.size());
  CutSource source{"min-cut", "predicted", "predictedPimTime", "machine file"};
  for (const NestView &nest : view.nests) {
    HostTime host = hostTimeOf(nest);
    hostNs[nest.instance.kernel] = host.ns;
    source.hostName = host.name;
    source.hostProvenance = host.provenance;
    pimNs[nest.instance.kernel] =
        predictPimTime(nest.kernel.facts, nest.profile, nest.machine, nest.dpuKernel).kernelNs;
  }
  placeByCut(view, hostNs, pimNs, source, decisions);
}

} // namespace nearbank::placement
