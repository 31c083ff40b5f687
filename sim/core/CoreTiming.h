// SPDX-License-Identifier: Apache-2.0
// Timing of the in-order scalar core, as far as it does not depend on memory: one instruction a cycle, each waits until
// its sources are ready.
//
// An instruction issues at the first cycle that is after its predecessor's, not before its sources are ready, not so
// early that its result would overtake an older one to the same register, and, for divisions and square roots, when the
// divider is free (dividers are not pipelined). Its result is ready `latency` cycles later. After a taken branch or a
// jump, branchTakenCycles pass before the next instruction issues.
//
// A cache miss ends this: the request leaves hitCycles after issue and the core stops until the line has arrived and
// every result in flight is complete. So what follows a miss starts from an empty pipeline, and the cycles from there
// to the next miss do not depend on how long any miss took.
#pragma once

#include "runtime/Machine.h"
#include "sim/isa/Instruction.h"
#include "sim/isa/Vector.h"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace nearbank::sim {

/// Registers plus the two dividers, the resources that an instruction may wait for.
inline constexpr uint8_t intDividerResource = numTimedRegisters, floatDividerResource = numTimedRegisters + 1;
inline constexpr size_t numResources = numTimedRegisters + 2;
/// Entry of a PipelineState that holds VectorType::packed() instead of cycles.
inline constexpr uint8_t vectorTypeEntry = numResources;

/// Cycles per unit.
struct LatencyTable {
  LatencyTable(const CoreConfig &core, const CacheConfig &l1d);
  std::array<uint32_t, numUnits> cycles{}; ///< By Unit; result latency.
  uint32_t branchTakenCycles = 0;
  int64_t vectorBits = 0, vectorLanesBits = 1, vectorElementsPerCycle = 1;
  uint32_t of(Opcode opcode) const { return cycles[static_cast<size_t>(infoOf(opcode).unit)]; }
};

/// Results in flight when an instruction may issue next: (resource, cycles until ready), sorted by resource; at the end
/// the vector type and length, once set.
using PipelineState = std::vector<std::pair<uint8_t, uint32_t>>;
/// Index of an interned PipelineState; 0 is the empty pipeline.
using StateId = uint32_t;

class StateTable {
public:
  StateTable() { intern({}); }
  StateId intern(const PipelineState &state);
  const PipelineState &operator[](StateId id) const { return states_[id]; }

private:
  std::map<PipelineState, StateId> ids_;
  std::vector<PipelineState> states_;
};

/// When an instruction of a block issues.
struct IssueTime {
  uint32_t cycle; ///< After the cycle at which the first instruction could issue at the earliest.
  uint32_t drain; ///< Cycles from then until all older results are complete.
};

/// Timing of a straight run of instructions from a given pipeline state.
struct RunTiming {
  uint32_t fallThroughCycles = 0, takenCycles = 0; ///< Until the next instruction may issue.
  PipelineState fallThroughState, takenState;
};

/// The vector type and length in a state; 0 when none is set.
uint32_t vectorTypeOf(const PipelineState &state);

/// Computes issue times of `instructions`; the last one is the only one that may branch or set the vector type (a state
/// after it still has the old one). A vector instruction keeps the issue stage for as many cycles as its elements need
/// to pass the datapath, or to be accessed one by one; there is no chaining.
RunTiming timeRun(std::span<const Instruction> instructions, const PipelineState &start, const LatencyTable &latency,
                  std::vector<IssueTime> &issueTimes);

} // namespace nearbank::sim
