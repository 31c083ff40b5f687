// SPDX-License-Identifier: Apache-2.0
// The interfaces of placement policies: one decides nest by nest, the other a whole program. Each policy is one file.
#pragma once

#include "compiler/placement/Placement.h"

#include <optional>
#include <span>
#include <vector>

namespace nearbank::placement {

/// What a policy may look at for one nest. No simulated time is among it.
struct NestView {
  const NestInstance &instance;
  const NestKernel &kernel;
  const profile::NestProfile &profile; ///< Empty key when there is none.
  const MachineConfig &machine;
  double executions = 1;                ///< Instances of the same kernel in the timed program.
  double programHostNs = 0;             ///< Measured host time of all timed nests.
  double programInstructions = 0;       ///< CM-4 instructions of all timed nests.
  const MachineConfig *host = nullptr;  ///< Modelled host; null when the measured times of this host count.
  double transferNs = 0;                ///< CX-5: what a launch on DPUs pays besides the kernel; 0 elsewhere.
  const DpuKernel *dpuKernel = nullptr; ///< Where DPUs run it.
};

/// What a nest takes on the host, as far as a policy may know: PL-9 for a modelled host, else measured.
struct HostTime {
  double ns = 0;
  const char *kind;       ///< "predicted" or "measured".
  const char *name;       ///< "predictedHostTime" or "allThreadsTime".
  const char *provenance; ///< "machine file" or "host profile".
};
HostTime hostTimeOf(const NestView &nest);

/// Decides one nest that is a candidate and has PIM code. Sets site, reason, suggestion, flip and equations.
using Policy = void (*)(const NestView &nest, NestDecision &decision);

/// What a policy may look at that decides all nests together.
struct ProgramView {
  const Program &program;
  const MachineConfig &machine;
  std::span<const NestView> nests; ///< By nest index.
  const std::vector<bool> &isOpen; ///< By nest index: whether the policy decides it; the others' sites are settled.
  std::span<const std::optional<double>> simulatedNs; ///< By kernel index; empty unless the policy is `oracle`.
  /// Of the modelled host, by kernel index; empty unless the policy is `oracle` and a host is modelled.
  std::span<const std::optional<double>> hostSimulatedNs;
};

/// Decides the open nests, as a Policy does, knowing the sites of the others.
using ProgramPolicy = void (*)(const ProgramView &view, std::vector<NestDecision> &decisions);

void placeCpuOnly(const NestView &nest, NestDecision &decision);
void placePimOnly(const NestView &nest, NestDecision &decision);
void placeTwoStage(const NestView &nest, NestDecision &decision);
void placeOpType(const NestView &nest, NestDecision &decision);
void placeGreedy(const NestView &nest, NestDecision &decision);
void placeMpki(const NestView &nest, NestDecision &decision);
void placeRoofline(const NestView &nest, NestDecision &decision);
void placeDamov(const NestView &nest, NestDecision &decision);
void placeMinCut(const ProgramView &view, std::vector<NestDecision> &decisions);
void placeOracle(const ProgramView &view, std::vector<NestDecision> &decisions);

/// "262144", "42.5" or "1.049e+07": whole below ten million, else four significant digits.
std::string shortNumber(double value);

/// Completes a record: `isSmallPassing` says that values at or below the threshold pass.
void evaluate(EquationRecord &equation, bool isSmallPassing = false);

} // namespace nearbank::placement
