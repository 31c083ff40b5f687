// SPDX-License-Identifier: Apache-2.0
// Timing of straight runs of instructions on the in-order core.
#include "sim/core/CoreTiming.h"

#include <algorithm>
#include <bit>

namespace nearbank::sim {
namespace {

size_t indexOf(Unit unit) { return static_cast<size_t>(unit); }

PipelineState stateAt(const std::array<uint64_t, numResources> &ready, uint64_t now, uint32_t vectorType) {
  PipelineState state;
  for (size_t r = 0; r < numResources; ++r)
    if (ready[r] > now)
      state.emplace_back(static_cast<uint8_t>(r), static_cast<uint32_t>(ready[r] - now));
  if (vectorType != 0)
    state.emplace_back(vectorTypeEntry, vectorType);
  return state;
}

int64_t passes(int64_t amount, int64_t perPass) {
  return std::max<int64_t>(1, (amount + perPass - 1) / std::max<int64_t>(1, perPass));
}

/// Cycles that an instruction keeps the issue stage, and until its result is there.
struct Duration {
  uint64_t occupancy = 1, latency = 1;
};

Duration durationOf(const Instruction &instruction, const VectorWork &work, const LatencyTable &latency) {
  const OpcodeInfo &info = infoOf(instruction.opcode);
  uint64_t cycles = latency.of(instruction.opcode);
  if (info.format != Format::Vector || info.unit == Unit::VSet)
    return {1, cycles};
  auto pieces = static_cast<uint64_t>(work.isElementwise ? passes(work.elements, latency.vectorElementsPerCycle)
                                                         : passes(work.bytes * 8, latency.vectorLanesBits));
  switch (info.unit) {
  case Unit::VFDiv:
  case Unit::VFSqrt: // not pipelined
    return {pieces, pieces * cycles};
  case Unit::VIntDiv:
    return {pieces, static_cast<uint64_t>(std::max<int64_t>(1, work.elements)) * cycles};
  case Unit::VReduce: {
    // Each fold moves one half beside the other and adds.
    auto elements = static_cast<uint64_t>(std::max<int64_t>(1, work.elements));
    uint64_t folds = work.isOrdered ? elements : static_cast<uint64_t>(std::bit_width(elements - 1));
    uint64_t total = std::max<uint64_t>(1, folds) * cycles;
    return {total, total};
  }
  default:
    return {pieces, cycles + pieces - 1};
  }
}

uint8_t dividerOf(Unit unit) {
  return unit == Unit::Div || unit == Unit::VIntDiv ? intDividerResource
         : unit == Unit::FDiv || unit == Unit::FSqrt || unit == Unit::VFDiv || unit == Unit::VFSqrt
             ? floatDividerResource
             : discardRegister;
}

} // namespace

LatencyTable::LatencyTable(const CoreConfig &core, const CacheConfig &l1d) {
  auto set = [&](Unit unit, int64_t value) {
    cycles[indexOf(unit)] = static_cast<uint32_t>(std::clamp<int64_t>(value, 1, 100000));
  };
  set(Unit::Alu, core.intAluCycles);
  set(Unit::Mul, core.intMulCycles);
  set(Unit::Div, core.intDivCycles);
  set(Unit::Branch, core.intAluCycles); // the link register
  set(Unit::Load, l1d.hitCycles);
  set(Unit::Store, core.intAluCycles); // the result of a store-conditional
  set(Unit::FAdd, core.fpAddCycles);
  set(Unit::FMul, core.fpMulCycles);
  set(Unit::FFma, core.fpFmaCycles);
  set(Unit::FDiv, core.fpDivCycles);
  set(Unit::FSqrt, core.fpSqrtCycles);
  set(Unit::FOther, core.fpMoveCycles);
  set(Unit::Other, core.intAluCycles);
  set(Unit::VSet, core.intAluCycles);
  set(Unit::VLoad, l1d.hitCycles);
  set(Unit::VStore, core.intAluCycles);
  set(Unit::VInt, core.vectorIntCycles);
  set(Unit::VIntMul, core.vectorIntMulCycles);
  set(Unit::VIntDiv, core.intDivCycles);
  set(Unit::VFAdd, core.vectorFpAddCycles);
  set(Unit::VFMul, core.vectorFpMulCycles);
  set(Unit::VFFma, core.vectorFpFmaCycles);
  set(Unit::VFDiv, core.vectorFpDivCycles);
  set(Unit::VFSqrt, core.vectorFpSqrtCycles);
  set(Unit::VMove, core.vectorMoveCycles);
  set(Unit::VPermute, core.vectorPermuteCycles);
  set(Unit::VReduce, core.vectorFpAddCycles + core.vectorPermuteCycles);
  vectorBits = core.vectorBits, vectorLanesBits = core.vectorLanesBits;
  vectorElementsPerCycle = core.vectorElementsPerCycle;
  branchTakenCycles = static_cast<uint32_t>(std::clamp<int64_t>(core.branchTakenCycles, 0, 100000));
}

StateId StateTable::intern(const PipelineState &state) {
  auto [entry, isNew] = ids_.try_emplace(state, static_cast<StateId>(states_.size()));
  if (isNew)
    states_.push_back(state);
  return entry->second;
}

uint32_t vectorTypeOf(const PipelineState &state) {
  return !state.empty() && state.back().first == vectorTypeEntry ? state.back().second : 0;
}

RunTiming timeRun(std::span<const Instruction> instructions, const PipelineState &start, const LatencyTable &latency,
                  std::vector<IssueTime> &issueTimes) {
  std::array<uint64_t, numResources> ready{};
  uint64_t next = 0, allReady = 0;
  for (auto [resource, cycles] : start) {
    if (resource == vectorTypeEntry)
      continue;
    ready[resource] = cycles;
    allReady = std::max<uint64_t>(allReady, cycles);
  }
  uint32_t packed = vectorTypeOf(start);
  VectorType type = VectorType::unpack(packed, static_cast<unsigned>(latency.vectorBits / 8));
  // Calls visit(register) for a group; groups beyond one register are vectors'.
  auto forGroup = [](uint8_t first, uint8_t count, auto visit) {
    unsigned end = first < firstVectorRegister ? first + 1u : std::min<unsigned>(first + count, numTimedRegisters);
    for (unsigned r = first; r < end; ++r)
      visit(r);
  };
  for (const Instruction &instruction : instructions) {
    const OpcodeInfo &info = infoOf(instruction.opcode);
    VectorWork work;
    if (info.format == Format::Vector && info.unit != Unit::VSet)
      work = workOf(instruction, type);
    Duration duration = durationOf(instruction, work, latency);
    uint8_t divider = dividerOf(info.unit), rd = instruction.rd;
    uint64_t issue = next;
    auto waitFor = [&](unsigned r) { issue = std::max(issue, ready[r]); };
    forGroup(instruction.rs1, work.readsFirst, waitFor);
    if (info.format != Format::CsrImm)
      forGroup(instruction.rs2, work.readsSecond, waitFor);
    forGroup(instruction.rs3, work.readsThird, waitFor);
    if (rd != discardRegister)
      forGroup(rd, work.writes, [&](unsigned r) {
        if (ready[r] > issue + duration.latency)
          issue = ready[r] - duration.latency;
      });
    if (divider != discardRegister)
      issue = std::max(issue, ready[divider]);
    issueTimes.push_back(
        {static_cast<uint32_t>(issue), static_cast<uint32_t>(allReady > issue ? allReady - issue : 0)});
    uint64_t done = issue + duration.latency;
    if (rd != discardRegister)
      forGroup(rd, work.writes, [&](unsigned r) { ready[r] = done; });
    if (divider != discardRegister)
      ready[divider] = done;
    if (rd != discardRegister || divider != discardRegister)
      allReady = std::max(allReady, done);
    next = issue + duration.occupancy;
  }
  RunTiming out;
  out.fallThroughCycles = static_cast<uint32_t>(next);
  out.takenCycles = out.fallThroughCycles + latency.branchTakenCycles;
  out.fallThroughState = stateAt(ready, out.fallThroughCycles, packed);
  out.takenState = stateAt(ready, out.takenCycles, packed);
  return out;
}

} // namespace nearbank::sim
