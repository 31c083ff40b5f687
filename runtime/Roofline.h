// SPDX-License-Identifier: Apache-2.0
// Time on a machine of which only the peaks are known. Modelled.
#pragma once

#include "runtime/Machine.h"
#include "runtime/Program.h"

#include <algorithm>

namespace nearbank {

/// RL-1 (docs/model.md): launch, then whichever takes longer of arithmetic at the peak and memory traffic at the
/// bandwidth. A lower bound of the time that the machine would take.
/// @param operations arithmetic operations
/// @param bytes distinct bytes read and written
inline double rooflineTimeNs(const RooflineConfig &machine, double operations, double bytes, ElementType type) {
  bool isHalf = type == ElementType::BF16 || type == ElementType::F16;
  double peak = isHalf ? machine.peakBf16GFlops : machine.peakF32GFlops;
  return machine.launchNs + std::max(operations / peak, bytes / machine.bandwidthGBs);
}

} // namespace nearbank
