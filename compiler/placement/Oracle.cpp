// SPDX-License-Identifier: Apache-2.0
// oracle: the cut of min-cut on simulated PIM times. It judges the other policies: no real compiler knows these times.

#include "compiler/placement/ExactCut.h"

#include "runtime/Error.h"

namespace nearbank::placement {

void placeOracle(const ProgramView &view, std::vector<NestDecision> &decisions) {
  std::vector<double> pimNs(view.program.kernels.size());
  for (size_t i = 0; i < view.nests.size(); ++i) {
    const NestView &nest = view.nests[i];
    uint32_t kernel = nest.instance.kernel;
    if (kernel < view.simulatedNs.size() && view.simulatedNs[kernel])
      pimNs[kernel] = *view.simulatedNs[kernel];
    else if (view.isOpen[i])
      throw InternalError({"NB0904", "nest was to be placed without a profile", nest.instance.id,
                           "a simulated time of " + nest.kernel.name, "none",
                           "report this with the model that caused it"});
  }
  placeByCut(view, pimNs, {"oracle", "simulated", "pimTime", "simulation"}, decisions);
}

} // namespace nearbank::placement
