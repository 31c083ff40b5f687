// SPDX-License-Identifier: Apache-2.0
// Timing of straight runs of instructions on the in-order core.
#include "sim/core/CoreTiming.h"

#include <algorithm>

namespace nearbank::sim {
namespace {

size_t indexOf(Unit unit) { return static_cast<size_t>(unit); }

PipelineState stateAt(const std::array<uint64_t, numResources> &ready, uint64_t now) {
  PipelineState state;
  for (size_t r = 0; r < numResources; ++r)
    if (ready[r] > now)
      state.emplace_back(static_cast<uint8_t>(r), static_cast<uint32_t>(ready[r] - now));
  return state;
}

/// Cycles for which a vector instruction keeps the issue stage; 1 for others.
uint64_t occupancyOf(const Instruction &instruction, const VectorShape &shape, const LatencyTable &latency) {
  switch (infoOf(instruction.opcode).unit) {
  case Unit::VLoad:
  case Unit::VStore:
    if (isElementwise(instruction))
      return static_cast<uint64_t>(std::max<int64_t>(1, shape.elements(latency.vectorBits) /
                                                            std::max<int64_t>(1, latency.vectorElementsPerCycle)));
    break;
  case Unit::VReduce:
    return static_cast<uint64_t>(shape.folds(latency.vectorBits)) * latency.of(instruction.opcode);
  case Unit::VIntDiv:
    return static_cast<uint64_t>(shape.elements(latency.vectorBits)) * latency.of(instruction.opcode);
  case Unit::VInt:
  case Unit::VIntMul:
  case Unit::VFAdd:
  case Unit::VFMul:
  case Unit::VFFma:
  case Unit::VFDiv:
  case Unit::VFSqrt:
  case Unit::VMove:
  case Unit::VPermute:
    break;
  default:
    return 1;
  }
  return static_cast<uint64_t>(shape.pieces(latency.vectorBits, latency.vectorLanesBits));
}

uint8_t dividerOf(Unit unit) {
  return unit == Unit::Div ? intDividerResource
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

RunTiming timeRun(std::span<const Instruction> instructions, const PipelineState &start, const LatencyTable &latency,
                  std::vector<IssueTime> &issueTimes, VectorShape shape) {
  std::array<uint64_t, numResources> ready{};
  uint64_t next = 0, allReady = 0;
  for (auto [resource, cycles] : start) {
    ready[resource] = cycles;
    allReady = std::max<uint64_t>(allReady, cycles);
  }
  for (const Instruction &instruction : instructions) {
    const OpcodeInfo &info = infoOf(instruction.opcode);
    shape.follow(instruction);
    uint64_t occupancy = occupancyOf(instruction, shape, latency);
    uint64_t cycles = latency.of(instruction.opcode) + occupancy - 1;
    uint8_t divider = dividerOf(info.unit), rd = instruction.rd;
    uint64_t issue = std::max(next, ready[instruction.rs1]);
    if (info.format != Format::CsrImm)
      issue = std::max(issue, ready[instruction.rs2]);
    issue = std::max(issue, ready[instruction.rs3]);
    if (rd != discardRegister && ready[rd] > issue + cycles)
      issue = ready[rd] - cycles;
    if (divider != discardRegister)
      issue = std::max(issue, ready[divider]);
    issueTimes.push_back(
        {static_cast<uint32_t>(issue), static_cast<uint32_t>(allReady > issue ? allReady - issue : 0)});
    if (rd != discardRegister)
      ready[rd] = issue + cycles;
    if (divider != discardRegister)
      ready[divider] = issue + cycles;
    if (rd != discardRegister || divider != discardRegister)
      allReady = std::max(allReady, issue + cycles);
    next = issue + occupancy;
  }
  RunTiming out;
  out.fallThroughCycles = static_cast<uint32_t>(next);
  out.takenCycles = out.fallThroughCycles + latency.branchTakenCycles;
  out.fallThroughState = stateAt(ready, out.fallThroughCycles);
  out.takenState = stateAt(ready, out.takenCycles);
  return out;
}

} // namespace nearbank::sim
