// SPDX-License-Identifier: Apache-2.0
// roofline: to PIM what the host's memory roof holds up for longer than both roofs of PIM would. Launch is ignored.

#include "compiler/placement/Policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nearbank::placement {
namespace {

// A fused multiply-add of an in-order core counts two operations; one is issued in a cycle.
constexpr double operationsPerCycle = 2;

} // namespace

void placeRoofline(const NestView &nest, NestDecision &decision) {
  const MachineConfig &machine = nest.machine;
  double operations = nest.kernel.facts.operations.total(), bytes = nest.profile.cache.dramBytes;
  double hostBandwidth = machine.host.dramBandwidthGBs;
  double pimBandwidth = double(machine.dram.vaults) * machine.dram.vaultBandwidthGBs;
  double pimPeak = double(machine.core.count) * machine.core.clockGHz * operationsPerCycle;

  // PL-7 (docs/model.md). Operations of the ridge on a byte: where PIM's compute roof meets the host's memory roof.
  EquationRecord intensity;
  intensity.id = "PL-7.1";
  intensity.text = "operations / DRAM bytes <= PIM operations/s / host bandwidth";
  intensity.inputs = {{"operations", operations, "operations", "MLIR"},
                      {"dramBytes", bytes, "B", "host profile"},
                      {"core.count", double(machine.core.count), "cores", "machine file"},
                      {"core.clockGHz", machine.core.clockGHz, "GHz", "machine file"},
                      {"host.dramBandwidthGBs", hostBandwidth, "GB/s", "machine file"}};
  intensity.value = operations == 0 ? 0 : bytes > 0 ? operations / bytes : HUGE_VAL;
  intensity.threshold = pimPeak / hostBandwidth;
  evaluate(intensity, true);

  EquationRecord bandwidth;
  bandwidth.id = "PL-7.2";
  bandwidth.text = "bandwidth of all vaults >= host bandwidth";
  bandwidth.inputs = {{"vault.bandwidthGBs", machine.dram.vaultBandwidthGBs, "GB/s", "machine file"},
                      {"vault.count", double(machine.dram.vaults), "vaults", "machine file"},
                      {"host.dramBandwidthGBs", hostBandwidth, "GB/s", "machine file"}};
  bandwidth.value = pimBandwidth;
  bandwidth.threshold = hostBandwidth;
  evaluate(bandwidth);

  bool isUnderHostRoof = intensity.isPassed && bandwidth.isPassed && bytes > 0;
  decision.equations = {intensity, bandwidth};
  decision.site = isUnderHostRoof ? Site::Pim : Site::Host;
  if (bytes <= 0)
    decision.reason = "moves no DRAM bytes on the host: the memory roof does not hold it up";
  else
    decision.reason =
        fmt::format("intensity {} operations/B is {} {}, where PIM's compute roof meets the host's memory "
                    "roof; vaults give {} GB/s, the host {} GB/s",
                    shortNumber(intensity.value), intensity.isPassed ? "at or below" : "above",
                    shortNumber(intensity.threshold), shortNumber(pimBandwidth), shortNumber(hostBandwidth));
  decision.flip =
      isUnderHostRoof
          ? fmt::format("PIM cores of less than {} operations/ns together, or a host bandwidth above {} GB/s",
                        shortNumber(intensity.value * hostBandwidth), shortNumber(pimBandwidth))
          : fmt::format("PIM cores of at least {} operations/ns together (now {})",
                        shortNumber(intensity.value * hostBandwidth), shortNumber(pimPeak));
}

} // namespace nearbank::placement
