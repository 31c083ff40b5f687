// SPDX-License-Identifier: Apache-2.0
// Turns the runtime's buffers and operands into guest memory, and a machine's statistics into a timing.
#include "sim/system/DeviceLaunch.h"

#include "sim/system/SampledLaunch.h"

#include <algorithm>

namespace nearbank::sim {
namespace {

constexpr std::array<const char *, numInstructionClasses> instructionClassCounters = {
    "intAluInstructions",   "intMulDivInstructions",  "branchInstructions",   "loadInstructions",
    "storeInstructions",    "floatAddInstructions",   "floatMulInstructions", "floatFmaInstructions",
    "floatDivInstructions", "floatOtherInstructions", "otherInstructions"};

PimTiming timingOf(const NmcLaunchStats &stats) {
  PimTiming timing;
  timing.timeNs = stats.timeNs;
  timing.instructions = stats.instructions;
  timing.coreCycles = stats.coreCycles;
  timing.dramBytes = stats.dramBytes;
  timing.l1dAccesses = stats.l1dAccesses;
  timing.l1dMisses = stats.l1dMisses;
  timing.coresUsed = stats.coresUsed;
  timing.counters.reserve(numInstructionClasses + 16);
  for (size_t i = 0; i < numInstructionClasses; ++i)
    timing.counters.emplace_back(instructionClassCounters[i], static_cast<double>(stats.instructionsByClass[i]));
  auto count = [&](const char *name, double value) { timing.counters.emplace_back(name, value); };
  count("l1iMisses", stats.l1iMisses);
  count("writebacks", stats.writebacks);
  count("dramReads", stats.dramReads);
  count("dramWrites", stats.dramWrites);
  count("rowHits", stats.rowHits);
  count("rowMisses", stats.rowMisses);
  count("rowConflicts", stats.rowConflicts);
  count("l2Accesses", stats.l2Accesses);
  count("l2Misses", stats.l2Misses);
  count("l3Accesses", stats.l3Accesses);
  count("l3Misses", stats.l3Misses);
  count("vectorLanes", stats.vectorLanes);
  count("mispredictions", stats.mispredictions);
  count("memoryStallCycles", stats.memoryStallCycles);
  count("vaultBusyShare", stats.vaultBusyShare);
  return timing;
}

} // namespace

GuestOperands::GuestOperands(std::span<const PimDevice::BoundBuffer> buffers, std::span<const NestOperand> operands) {
  std::vector<uint32_t> used;
  for (const NestOperand &operand : operands) {
    used.push_back(operand.buffer);
    addresses.push_back(buffers[operand.buffer].guestBase + operand.byteOffset);
  }
  // Guest addresses follow buffer order.
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (uint32_t buffer : used)
    regions.push_back(
        {buffers[buffer].guestBase, buffers[buffer].host, buffers[buffer].bytes, buffers[buffer].isWritable});
}

static NmcLaunch launchOf(const PimKernel &kernel, const GuestOperands &guest) {
  NmcLaunch launch;
  launch.elf = kernel.elf;
  launch.regions = guest.regions;
  launch.operandAddresses = guest.addresses;
  launch.tasks = kernel.tasks;
  launch.reductionTrips = kernel.reductionTrips;
  return launch;
}

PimTiming executeOn(SimulatedMachine &machine, const PimKernel &kernel, std::span<const PimDevice::BoundBuffer> buffers,
                    std::span<const NestOperand> operands, KernelStatus &status) {
  GuestOperands guest(buffers, operands);
  NmcLaunchStats stats = machine.launch(launchOf(kernel, guest));
  status = stats.status;
  return timingOf(stats);
}

PimTiming estimateOn(SimulatedMachine &machine, const PimKernel &kernel,
                     std::span<const PimDevice::BoundBuffer> buffers, std::span<const NestOperand> operands) {
  GuestOperands guest(buffers, operands);
  SampledTiming sampled = launchSampled(machine, launchOf(kernel, guest));
  PimTiming timing = timingOf(sampled.stats);
  timing.isSampled = !sampled.isExact;
  timing.lowNs = sampled.lowNs;
  timing.highNs = sampled.highNs;
  timing.counters.emplace_back("sampledShare", sampled.sampledShare);
  return timing;
}

} // namespace nearbank::sim
