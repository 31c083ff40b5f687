// SPDX-License-Identifier: Apache-2.0

#include "compiler/placement/PimTimeModel.h"

#include "compiler/placement/TimeModel.h"
#include "runtime/DpuKernel.h"
#include "sim/dpu/DpuConfig.h"

#include <algorithm>
#include <cmath>

namespace nearbank::placement {
namespace {

// Pointer increments, counter, compare and branch of one trip of the innermost loop with three operands, and those of
// them that a trace counts.
constexpr double loopInstructions = 5, tracedLoopInstructions = 4;
// The innermost loop of a contraction: four steps of a register tile of 4 x 4 results, 64 fused multiply-adds.
constexpr double contractionTrip = 64, contractionTripInstructions = 105;
// Blocks of a contraction on PIM: as many as its schedule wants (codegen::pimTarget); results of a register tile at
// least, and 128 x 24 at most, which with their panel fill the scratch memory.
constexpr double contractionTasks = 256, smallestBlock = 16, largestBlock = 3072;
// Share of a polynomial's operations that wait for the one before: two halves of it are evaluated side by side.
constexpr double polynomialChain = 0.5;
// Of an emitted DPU program before its first piece of work and after its last.
constexpr double startSlots = 60;

/// Iterations that a trip of the innermost loop makes: a register tile, or as many as the loop is unrolled for.
double iterationsPerTrip(const NestFacts &facts) {
  if (facts.isContraction())
    return contractionTrip;
  return facts.operations.transcendentals > 0 ? 4 : 8;
}

/// Trips of the innermost loop over the whole nest.
double innermostTrips(const NestFacts &facts) { return double(facts.iterations) / iterationsPerTrip(facts); }

bool isTraced(const profile::NestProfile &profile) {
  return profile.cacheSource == "cache-model" && profile.cache.instructions > 0;
}

/// PL-3.1: instructions of the whole nest; outside contractions, those that the trace counted when there are any.
double numInstructions(const NestFacts &facts, const profile::NestProfile &profile) {
  const OperationCounts &operations = facts.operations;
  double trips = innermostTrips(facts);
  if (facts.isContraction())
    return trips * contractionTripInstructions + operations.stores;
  double inBody = operations.floatOps + operations.integerOps + operations.divisions + operations.conversions +
                  operations.loads + operations.stores;
  if (isTraced(profile)) // Never less than the body has: short traces count fewer loop instructions.
    return std::max(inBody, profile.cache.instructions - (double(facts.iterations) - trips) * tracedLoopInstructions);
  return inBody + operations.transcendentals * transcendentalInstructions + trips * loopInstructions;
}

/// PL-3.2: cycles in which an in-order core waits for a result. The iterations of one trip fill each other's waits, but
/// in a reduction every second operation waits for the one before it.
double latencyCycles(const NestFacts &facts, const MachineConfig &machine) {
  const CoreConfig &core = machine.core;
  const OperationCounts &operations = facts.operations;
  double perTrip = double(machine.l1d.hitCycles - 1) + double(core.branchTakenCycles);
  double cycles = innermostTrips(facts) * perTrip + operations.divisions * double(core.fpDivCycles - 1) +
                  operations.conversions * double(core.fpMoveCycles - 1) +
                  operations.transcendentals * transcendentalInstructions * polynomialChain *
                      double(core.fpFmaCycles - 1) / iterationsPerTrip(facts);
  if (!facts.isContraction())
    cycles += operations.floatOps / (facts.hasReduction ? 2 : iterationsPerTrip(facts)) * double(core.fpAddCycles - 1);
  return cycles;
}

/// PL-10: of the DPU with the most work, the longer of what its pipeline issues and what its DMA engine moves.
PimTimePrediction predictDpuTime(const DpuKernel &kernel, const dpu::DpuConfig &config) {
  PimTimePrediction prediction;
  double busy = double(std::min(kernel.items, kernel.tasklets));
  double rounds = std::ceil(double(kernel.items) / double(kernel.tasklets));
  prediction.coresUsed = double(kernel.dpus());
  prediction.imbalance = rounds * busy / double(kernel.items);
  prediction.issueCycles = (rounds * kernel.slotsPerItem + startSlots) * std::max(config.dispatchCycles, busy);
  prediction.stallCycles = kernel.dmaTransfers * config.dmaOccupancyCycles + kernel.dmaBytes * config.dmaCyclesPerByte;
  prediction.dramBytes = kernel.dmaBytes * double(kernel.dpus());
  prediction.computeNs = prediction.issueCycles / config.clockMHz * 1e3;
  prediction.bandwidthNs = prediction.stallCycles / config.clockMHz * 1e3;
  prediction.kernelNs = prediction.totalNs = std::max(prediction.computeNs, prediction.bandwidthNs);
  return prediction;
}

/// PL-3.3: lines that come from vaults. A PIM core's L1 misses as the host's does; but contractions run in blocks, each
/// of which reads a row and a column of its inputs for each row and column of results. All lines come once at least.
double numMisses(const NestFacts &facts, const profile::NestProfile &profile, double lineBytes) {
  double distinct = (facts.bytesRead + facts.bytesWritten) / lineBytes;
  double misses = isTraced(profile) ? profile.cache.l1Misses : distinct;
  if (!facts.isContraction())
    return misses;
  double resultsPerBlock = std::clamp(double(facts.parallelExtent) / contractionTasks, smallestBlock, largestBlock);
  double linesPerElement = double(bytesOf(facts.computeType)) / lineBytes;
  double ofBlocks = 2 * double(facts.iterations) / std::sqrt(resultsPerBlock) * linesPerElement;
  return std::max(distinct, isTraced(profile) ? std::min(misses, ofBlocks) : ofBlocks);
}

} // namespace

PimTimePrediction predictPimTime(const NestFacts &facts, const profile::NestProfile &profile,
                                 const MachineConfig &machine, const DpuKernel *dpuKernel) {
  if (machine.dpus)
    return dpuKernel ? predictDpuTime(*dpuKernel, *machine.dpus) : PimTimePrediction{};
  PimTimePrediction prediction;
  // Tasks of the schedule where they are known: a core takes whole tasks.
  double tasks = double(std::max<int64_t>(1, profile.parallelTasks > 0 ? profile.parallelTasks : facts.parallelExtent));
  prediction.coresUsed = std::min(double(machine.core.count), tasks);
  prediction.imbalance = std::ceil(tasks / prediction.coresUsed) / (tasks / prediction.coresUsed);
  prediction.issueCycles = numInstructions(facts, profile) + latencyCycles(facts, machine);

  // PL-3.3: a core waits for each line, in a bank with another row open.
  const DramConfig &dram = machine.dram;
  double lineBytes = double(machine.l1d.lineBytes);
  double missNs = double(dram.nRP + dram.nRCD + dram.nCL) * dram.tCkNs + lineBytes / dram.vaultBandwidthGBs;
  double misses = numMisses(facts, profile, lineBytes);
  prediction.stallCycles = misses * missNs * machine.core.clockGHz;

  // PL-3.4: every missed line comes from a vault, every written line goes back once.
  prediction.dramBytes = misses * lineBytes + facts.bytesWritten;

  double perCore = (prediction.issueCycles + prediction.stallCycles) / prediction.coresUsed * prediction.imbalance;
  prediction.computeNs = perCore / machine.core.clockGHz;
  prediction.bandwidthNs = prediction.dramBytes / (double(dram.vaults) * dram.vaultBandwidthGBs);
  prediction.kernelNs = std::max(prediction.computeNs, prediction.bandwidthNs);
  prediction.totalNs = prediction.kernelNs + machine.coherence.launchNs + machine.coherence.returnNs;
  return prediction;
}

} // namespace nearbank::placement
