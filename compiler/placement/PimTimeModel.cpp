// SPDX-License-Identifier: Apache-2.0

#include "compiler/placement/PimTimeModel.h"

#include <algorithm>
#include <cmath>

namespace nearbank::placement {
namespace {

// Instructions of one transcendental after expansion to a polynomial: range reduction, about ten FMAs, reconstruction.
constexpr double transcendentalInstructions = 24;
// Address increment and loop branch of one innermost iteration; the compiler unrolls by four.
constexpr double loopInstructions = 3.0 / 4;
// Branches of that loop that are taken, per iteration.
constexpr double takenBranches = 1.0 / 4;
// Conversions between half and single precision cost one instruction; others too.
constexpr double conversionInstructions = 1;
// Independent partial sums that a reassociated reduction keeps in flight.
constexpr double reductionChains = 4;

/// PL-3.1: cycles in which the cores issue, over the whole nest.
double issueCycles(const NestFacts &facts, const CoreConfig &core) {
  const OperationCounts &operations = facts.operations;
  double iterations = double(facts.iterations);
  // A contraction's multiply and add are one fused instruction.
  double floatInstructions =
      facts.kind == "contraction" || facts.kind == "convolution" ? operations.floatOps / 2 : operations.floatOps;
  double cycles = floatInstructions + operations.integerOps * double(core.intAluCycles) +
                  operations.divisions * double(core.fpDivCycles) +
                  operations.transcendentals * transcendentalInstructions +
                  operations.conversions * conversionInstructions + operations.loads + operations.stores +
                  iterations * (loopInstructions + takenBranches * double(core.branchTakenCycles));
  if (facts.hasReduction)
    cycles = std::max(cycles, iterations * double(core.fpFmaCycles) / reductionChains);
  return cycles;
}

} // namespace

PimTimePrediction predictPimTime(const NestFacts &facts, const profile::NestProfile &profile,
                                 const MachineConfig &machine) {
  PimTimePrediction prediction;
  double extent = double(std::max<int64_t>(1, facts.parallelExtent));
  double cores = double(machine.core.count);
  prediction.coresUsed = std::min(cores, extent);
  prediction.imbalance = std::ceil(extent / prediction.coresUsed) / (extent / prediction.coresUsed);
  prediction.issueCycles = issueCycles(facts, machine.core);

  // PL-3.2: a PIM core's L1 misses as the host's does, and waits for each line.
  const DramConfig &dram = machine.dram;
  double bursts = double(machine.l1d.lineBytes) / dram.vaultBandwidthGBs;
  double missNs = double(dram.nRCD + dram.nCL) * dram.tCkNs + bursts;
  double distinctLines = (facts.bytesRead + facts.bytesWritten) / double(machine.l1d.lineBytes);
  double misses = std::max(profile.cache.l1Misses, facts.isDataDependent ? 0.0 : distinctLines);
  prediction.stallCycles = misses * missNs * machine.core.clockGHz;

  // PL-3.3: every missed line comes from a vault, every written line goes back once.
  prediction.dramBytes = misses * double(machine.l1d.lineBytes) + facts.bytesWritten;

  double perCore = (prediction.issueCycles + prediction.stallCycles) / prediction.coresUsed * prediction.imbalance;
  prediction.computeNs = perCore / machine.core.clockGHz;
  prediction.bandwidthNs = prediction.dramBytes / (double(dram.vaults) * dram.vaultBandwidthGBs);
  prediction.kernelNs = std::max(prediction.computeNs, prediction.bandwidthNs);
  prediction.totalNs = prediction.kernelNs + machine.coherence.launchNs + machine.coherence.returnNs;
  return prediction;
}

} // namespace nearbank::placement
