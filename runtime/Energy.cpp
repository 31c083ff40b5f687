// SPDX-License-Identifier: Apache-2.0
#include "runtime/Energy.h"

#include <algorithm>
#include <string_view>

namespace nearbank {
namespace {

double counterOf(const PimTiming &timing, std::string_view name) {
  auto found = std::find_if(timing.counters.begin(), timing.counters.end(),
                            [&](const auto &entry) { return entry.first == name; });
  return found == timing.counters.end() ? 0 : found->second;
}

} // namespace

std::optional<EnergyParts> energyOf(const PimTiming &timing, const MachineConfig &machine) {
  if (!machine.energy)
    return std::nullopt;
  const EnergyConfig &e = *machine.energy;
  auto count = [&](std::string_view name) { return counterOf(timing, name); };
  EnergyParts parts; // EN-1
  parts.instructionsPj = count("intAluInstructions") * e.intAluPj + count("intMulDivInstructions") * e.intMulDivPj +
                         count("branchInstructions") * e.branchPj + count("loadInstructions") * e.loadPj +
                         count("storeInstructions") * e.storePj + count("floatAddInstructions") * e.floatAddPj +
                         count("floatMulInstructions") * e.floatMulPj + count("floatFmaInstructions") * e.floatFmaPj +
                         count("floatDivInstructions") * e.floatDivPj +
                         count("floatOtherInstructions") * e.floatOtherPj + count("otherInstructions") * e.otherPj;
  parts.vectorPj = count("vectorLanes") * e.vectorLanePj;
  parts.l1Pj = static_cast<double>(timing.l1dAccesses) * e.l1AccessPj;
  parts.l2Pj = count("l2Accesses") * e.l2AccessPj;
  parts.l3Pj = count("l3Accesses") * e.l3AccessPj;
  double lineBits = 8.0 * static_cast<double>(machine.l1d.lineBytes);
  parts.dramPj = (count("rowMisses") + count("rowConflicts")) * e.dramActivatePj +
                 count("dramReads") * lineBits * e.dramReadPjPerBit +
                 count("dramWrites") * lineBits * e.dramWritePjPerBit;
  if (machine.kind == "host")
    parts.linkPj = (count("dramReads") + count("dramWrites")) * lineBits * e.linkPjPerBit;
  parts.staticPj = e.staticWatts * timing.timeNs * 1000; // W ns = 1000 pJ
  return parts;
}

std::optional<double> linkEnergyPj(double bytes, const MachineConfig &machine) {
  if (!machine.energy)
    return std::nullopt;
  return 8 * bytes * machine.energy->linkPjPerBit; // EN-2
}

} // namespace nearbank
