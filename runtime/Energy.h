// SPDX-License-Identifier: Apache-2.0
// Energy of a simulated launch: its counts times the machine file's energies per event (EN-1, EN-2 of docs/model.md).
// Modelled.
#pragma once

#include "runtime/Executor.h"
#include "runtime/Machine.h"

#include <optional>

namespace nearbank {

/// Picojoules by part.
struct EnergyParts {
  double instructionsPj = 0; ///< Fetch, registers and control of all instructions, and scalar arithmetic.
  double vectorPj = 0;       ///< Arithmetic in the lanes of vector units.
  double l1Pj = 0, l2Pj = 0, l3Pj = 0;
  double dramPj = 0;   ///< Activations and data.
  double linkPj = 0;   ///< Between cores and memory; hosts only, since PIM cores reach their vaults without it.
  double staticPj = 0; ///< Of the whole machine while the launch takes.

  double totalPj() const { return instructionsPj + vectorPj + l1Pj + l2Pj + l3Pj + dramPj + linkPj + staticPj; }
};

/// Applies the energies of `machine` to the counts of a launch on it; nothing when its file gives none.
std::optional<EnergyParts> energyOf(const PimTiming &timing, const MachineConfig &machine);

/// Energy of bytes that cross the external link of a PIM machine (EN-2); nothing when its file gives no energies.
std::optional<double> linkEnergyPj(double bytes, const MachineConfig &machine);

} // namespace nearbank
