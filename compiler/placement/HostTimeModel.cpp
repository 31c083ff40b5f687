// SPDX-License-Identifier: Apache-2.0

#include "compiler/placement/HostTimeModel.h"

#include "compiler/placement/TimeModel.h"

#include <algorithm>
#include <cmath>

namespace nearbank::placement {
namespace {

// Pointer increments, counter, compare and branch of one trip of an innermost loop.
constexpr double loopInstructions = 4;
// Results that one trip of a contraction's innermost loop adds to: 6 rows x 4 vectors, or 4 x 4 scalars.
constexpr double vectorTile = 24, scalarTile = 16;
// Loads of that trip: 6 scalars and 4 vectors, or 4 and 4 scalars.
constexpr double vectorTileLoads = 10, scalarTileLoads = 8;
// Rows of a block that share a copied panel, and instructions of copying one element.
constexpr double panelRows = 96, panelInstructions = 4;

/// Whether the innermost loop runs on vectors: not where addresses depend on data.
bool isVectorized(const NestFacts &facts) {
  return !facts.isDataDependent && facts.kind != "scan" && facts.kind != "scalar" && facts.kind != "general";
}

} // namespace

HostTimePrediction predictHostTime(const NestFacts &facts, const profile::NestProfile &profile,
                                   const MachineConfig &host) {
  HostTimePrediction prediction;
  const CoreConfig &core = host.core;
  const OutOfOrderConfig &ports = host.outOfOrder;
  const OperationCounts &operations = facts.operations;
  double tasks = double(std::max<int64_t>(1, profile.parallelTasks > 0 ? profile.parallelTasks : facts.parallelExtent));
  prediction.coresUsed = std::min(double(core.count), tasks);
  prediction.imbalance = std::ceil(tasks / prediction.coresUsed) / (tasks / prediction.coresUsed);
  double elementBits = 8.0 * double(bytesOf(facts.computeType));
  if (core.vectorBits > 0 && isVectorized(facts))
    prediction.lanes = double(core.vectorBits) / elementBits;

  // PL-9.1: instructions through the dispatcher, arithmetic through its ports.
  double vectors = double(facts.iterations) / prediction.lanes;
  double instructions, arithmetic;
  if (facts.isContraction()) {
    bool isVector = prediction.lanes > 1;
    double tile = isVector ? vectorTile : scalarTile, loads = isVector ? vectorTileLoads : scalarTileLoads;
    arithmetic = vectors / double(ports.fpMulPorts);
    instructions = vectors * (1 + (loads + loopInstructions / 4) / tile) +
                   double(facts.iterations) / panelRows * panelInstructions;
  } else {
    double polynomial = operations.transcendentals * transcendentalInstructions;
    double simple = operations.floatOps + operations.integerOps + operations.conversions + polynomial;
    arithmetic =
        (simple / double(ports.fpPorts) + operations.divisions * double(std::max<int64_t>(1, core.fpDivCycles / 3))) /
        prediction.lanes;
    arithmetic = std::max(arithmetic, (operations.loads + operations.stores) / prediction.lanes /
                                          double(std::max<int64_t>(1, ports.vectorLoadPorts)));
    instructions = (simple + operations.divisions + operations.loads + operations.stores) / prediction.lanes +
                   vectors * loopInstructions;
  }
  prediction.computeCycles = std::max(instructions / double(ports.dispatchWidth), arithmetic);

  // PL-9.2: a data-dependent address waits for memory; as many lines as the core has in flight wait together.
  double lineBytes = double(host.l1d.lineBytes);
  double latencyNs = host.dram.controllerNs + double(host.dram.nRCD + host.dram.nCL) * host.dram.tCkNs;
  if (facts.isDataDependent && profile.cache.l3Misses > 0)
    prediction.stallCycles = profile.cache.l3Misses * latencyNs * core.clockGHz / double(ports.outstandingMisses);

  // PL-9.3: caches begin empty, so every operand comes from DRAM once; more often where the profile says so.
  double distinct = facts.bytesRead + facts.bytesWritten, capacity = double(host.l3.sizeBytes);
  bool fits = distinct <= capacity * std::ceil(double(core.count) / double(std::max<int64_t>(1, host.l3SharedBy)));
  prediction.dramBytes =
      fits || facts.isContraction() ? distinct : std::max(distinct, profile.cache.l3Misses * lineBytes);

  prediction.computeNs =
      (prediction.computeCycles + prediction.stallCycles) / prediction.coresUsed * prediction.imbalance / core.clockGHz;
  prediction.bandwidthNs = prediction.dramBytes / (double(host.dram.vaults) * host.dram.vaultBandwidthGBs);
  prediction.timeNs = std::max(prediction.computeNs, prediction.bandwidthNs) + host.threads.forkNs +
                      (prediction.coresUsed > 1 ? host.threads.joinNs : 0);
  return prediction;
}

} // namespace nearbank::placement
