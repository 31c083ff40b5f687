// SPDX-License-Identifier: Apache-2.0
// The interface that every placement policy implements. Each policy is one sibling file.
#pragma once

#include "compiler/placement/Placement.h"

namespace nearbank::placement {

/// What a policy may look at for one nest. No simulated time is among it.
struct NestView {
  const NestInstance &instance;
  const NestKernel &kernel;
  const profile::NestProfile &profile; ///< Empty key when there is none.
  const MachineConfig &machine;
  double executions = 1;    ///< Instances of the same kernel in the timed program.
  double programHostNs = 0; ///< Measured host time of all timed nests.
};

/// Decides one nest that is a candidate and has PIM code. Sets site, reason, suggestion, flip and equations.
using Policy = void (*)(const NestView &nest, NestDecision &decision);

void placeCpuOnly(const NestView &nest, NestDecision &decision);
void placePimOnly(const NestView &nest, NestDecision &decision);
void placeTwoStage(const NestView &nest, NestDecision &decision);
void placeOpType(const NestView &nest, NestDecision &decision);
void placeGreedy(const NestView &nest, NestDecision &decision);

/// "262144", "42.5" or "1.049e+07": whole below ten million, else four significant digits.
std::string shortNumber(double value);

/// Completes a record: `isSmallPassing` says that values at or below the threshold pass.
void evaluate(EquationRecord &equation, bool isSmallPassing = false);

} // namespace nearbank::placement
