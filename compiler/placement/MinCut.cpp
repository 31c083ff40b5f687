// SPDX-License-Identifier: Apache-2.0
// min-cut: the placement of least total time, PL-3 predicted PIM times beside measured host times, crossings included.

#include "compiler/placement/ExactCut.h"
#include "compiler/placement/PimTimeModel.h"

namespace nearbank::placement {

void placeMinCut(const ProgramView &view, std::vector<NestDecision> &decisions) {
  std::vector<double> pimNs(view.program.kernels.size());
  std::vector<double> hostNs(view.program.kernels.size());
  for (const NestView &nest : view.nests) {
    hostNs[nest.instance.kernel] = nest.profile.allThreadsNs;
    pimNs[nest.instance.kernel] = predictPimTime(nest.kernel.facts, nest.profile, nest.machine).kernelNs;
  }
  placeByCut(view, hostNs, pimNs, {"min-cut", "predicted", "predictedPimTime", "machine file"}, decisions);
}

} // namespace nearbank::placement
