// SPDX-License-Identifier: Apache-2.0
// greedy: each nest for itself to the side of less time, PL-3 predicted against the host: PL-9 predicted, or measured.

#include "compiler/placement/PimTimeModel.h"
#include "compiler/placement/Policy.h"

#include <fmt/format.h>

#include <cmath>

namespace nearbank::placement {

void placeGreedy(const NestView &nest, NestDecision &decision) {
  PimTimePrediction prediction = predictPimTime(nest.kernel.facts, nest.profile, nest.machine, nest.dpuKernel);
  double pimNs = prediction.totalNs + nest.transferNs;
  HostTime host = hostTimeOf(nest);
  double hostNs = host.ns;
  // PL-4 (docs/model.md): predicted PIM time with launch and return <= host time.
  EquationRecord equation;
  equation.id = "PL-4";
  equation.text = "predicted PIM time with launch and return <= host time of all threads";
  equation.inputs = {
      {"predictedPimTime", prediction.kernelNs, "ns", "machine file"},
      {"coherence.launchNs", nest.machine.coherence.launchNs, "ns", "machine file"},
      {"coherence.returnNs", nest.machine.coherence.returnNs, "ns", "machine file"},
      {host.name, hostNs, "ns", host.provenance},
  };
  if (nest.dpuKernel) {
    equation.text = "predicted PIM time with launch and transfers <= host time of all threads";
    equation.inputs[1] = {"transfers", nest.transferNs, "ns", "machine file"};
    equation.inputs.erase(equation.inputs.begin() + 2);
  }
  equation.value = pimNs;
  equation.threshold = hostNs;
  evaluate(equation, true);
  if (nest.host == nullptr)
    equation.ratio = NAN; // Predicted over measured is no ratio to use.
  bool isFaster = equation.isPassed;
  decision.equations.push_back(equation);
  decision.site = isFaster ? Site::Pim : Site::Host;
  decision.reason = fmt::format("predicted PIM time {} ns ({} included) is {} {} host time {} ns", shortNumber(pimNs),
                                nest.dpuKernel ? "launch and transfers" : "launch and return",
                                isFaster ? "at or below" : "above", host.kind, shortNumber(hostNs));
  if (isFaster)
    decision.flip =
        fmt::format("a host time below {} ns, or PIM slower by {} ns", shortNumber(pimNs), shortNumber(hostNs - pimNs));
  else
    decision.flip = fmt::format("a host time of at least {} ns, or PIM faster by {} ns", shortNumber(pimNs),
                                shortNumber(pimNs - hostNs));
}

} // namespace nearbank::placement
