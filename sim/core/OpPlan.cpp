// SPDX-License-Identifier: Apache-2.0
// What each instruction asks of an out-of-order core.
#include "sim/core/OpPlan.h"

#include <algorithm>

namespace nearbank::sim {
namespace {

bool isFpRegister(uint8_t number) { return number >= firstFloatRegister && number < discardRegister; }

} // namespace

OpPlan PlanTable::planOf(const Instruction &i) const {
  const CoreConfig &core = config_.core;
  const OutOfOrderConfig &window = config_.outOfOrder;
  const OpcodeInfo &info = infoOf(i.opcode);
  OpPlan plan{.rd = i.rd, .rs1 = i.rs1, .rs2 = i.rs2, .rs3 = i.rs3};
  if (info.format == Format::CsrImm)
    plan.rs2 = 0; // an immediate
  auto set = [&](OpKind kind, int64_t latency, int64_t interval = 1) {
    plan.kind = kind;
    plan.latency = static_cast<uint16_t>(std::clamp<int64_t>(latency, 1, 60000));
    plan.interval = static_cast<uint16_t>(std::clamp<int64_t>(interval, 1, 60000));
  };
  switch (info.unit) {
  case Unit::Mul:
    set(OpKind::IntMul, core.intMulCycles);
    break;
  case Unit::Div:
    set(OpKind::IntDiv, core.intDivCycles, core.intDivCycles);
    break;
  case Unit::Branch:
    set(OpKind::Branch, core.intAluCycles);
    if (i.opcode == Opcode::Jal)
      plan.kind = isLinkRegister(i.rd) ? OpKind::Call : OpKind::Jump;
    else if (i.opcode == Opcode::Jalr)
      plan.kind = i.rd == discardRegister && isLinkRegister(i.rs1) ? OpKind::Return : OpKind::IndirectJump;
    break;
  case Unit::Load:
    set(isFpRegister(i.rd) ? OpKind::FpLoad : OpKind::Load, isFpRegister(i.rd) ? window.fpLoadExtraCycles : 0);
    plan.latency = static_cast<uint16_t>(isFpRegister(i.rd) ? window.fpLoadExtraCycles : 0);
    break;
  case Unit::Store:
    set(isFpRegister(i.rs2) ? OpKind::FpStore : OpKind::Store, 1);
    break;
  case Unit::FAdd:
    set(OpKind::FpAdd, core.fpAddCycles);
    break;
  case Unit::FMul:
    set(OpKind::FpMul, core.fpMulCycles);
    break;
  case Unit::FFma:
    set(OpKind::FpMul, core.fpFmaCycles);
    break;
  case Unit::FDiv:
    set(OpKind::FpDiv, core.fpDivCycles, window.fpDivIntervalCycles);
    break;
  case Unit::FSqrt:
    set(OpKind::FpDiv, core.fpSqrtCycles, window.fpSqrtIntervalCycles);
    break;
  case Unit::FOther:
    set(OpKind::FpMove, core.fpMoveCycles);
    break;
  default:
    set(OpKind::Int, core.intAluCycles);
    if (info.format == Format::Vector)
      planVector(i, plan);
    break;
  }
  return plan;
}

void PlanTable::planVector(const Instruction &i, OpPlan &plan) const {
  const CoreConfig &core = config_.core;
  const OutOfOrderConfig &window = config_.outOfOrder;
  auto set = [&](VectorPart part, OpKind kind, int64_t latency, int64_t interval = 1) {
    plan.part = part;
    plan.kind = kind;
    plan.latency = static_cast<uint16_t>(std::clamp<int64_t>(latency, 0, 60000));
    plan.interval = static_cast<uint16_t>(std::clamp<int64_t>(interval, 1, 60000));
  };
  using enum VectorPart;
  switch (infoOf(i.opcode).unit) {
  case Unit::VSet:
    return set(Set, OpKind::Int, core.intAluCycles);
  case Unit::VLoad:
    return set(Memory, OpKind::VectorLoad, window.fpLoadExtraCycles);
  case Unit::VStore:
    return set(Memory, OpKind::VectorStore, 1);
  case Unit::VIntMul:
    set(Pieces, OpKind::FpMul, core.vectorIntMulCycles);
    break;
  case Unit::VIntDiv:
    set(DivideInt, OpKind::FpDiv, core.intDivCycles, core.intDivCycles);
    break;
  case Unit::VFAdd:
    set(Pieces, OpKind::FpAdd, core.vectorFpAddCycles);
    break;
  case Unit::VFMul:
    set(Pieces, OpKind::FpMul, core.vectorFpMulCycles);
    break;
  case Unit::VFFma:
    set(Pieces, OpKind::FpMul, core.vectorFpFmaCycles);
    break;
  case Unit::VFDiv:
    set(Divide, OpKind::FpDiv, core.vectorFpDivCycles, window.fpDivIntervalCycles);
    break;
  case Unit::VFSqrt:
    set(Divide, OpKind::FpDiv, core.vectorFpSqrtCycles, window.fpSqrtIntervalCycles);
    break;
  case Unit::VPermute:
    set(Permute, OpKind::FpMove, core.vectorPermuteCycles);
    break;
  case Unit::VReduce:
    // A fold moves one half beside the other and adds.
    set(Reduce, OpKind::FpAdd, core.vectorFpAddCycles + core.vectorPermuteCycles);
    break;
  case Unit::VInt:
    set(Pieces, OpKind::FpMove, core.vectorIntCycles);
    break;
  default:
    set(Pieces, OpKind::FpMove, core.vectorMoveCycles);
    break;
  }
  // The encoding (RVV 1.0, 10 and 19): OPMV and OPFV widen from funct6 0x30 on, but for their reductions; compares of
  // OPIV and OPFV give masks; VFUNARY0 converts to and from twice the width from vs1 8 on; vnsrl and vnsra narrow.
  auto word = static_cast<uint32_t>(i.imm);
  uint32_t funct3 = word >> 12 & 7, funct6 = word >> 26 & 63, vs1 = word >> 15 & 31;
  bool isFloat = funct3 == 1 || funct3 == 5, isMultiply = funct3 == 2 || funct3 == 6;
  plan.isWide = plan.part != Reduce && (isFloat && funct6 == 0x12 ? vs1 >= 8
                                        : isFloat || isMultiply   ? funct6 >= 0x30
                                                                  : funct6 == 0x2c || funct6 == 0x2d);
  plan.isMask = !isMultiply && funct6 >= 0x18 && funct6 <= 0x1f;
}

const std::vector<OpPlan> &PlanTable::planOf(const Block &block) {
  if (plans_.size() <= block.id)
    plans_.resize(block.id + 64);
  std::vector<OpPlan> &plan = plans_[block.id];
  if (plan.empty())
    for (const Instruction &instruction : block.instructions)
      plan.push_back(planOf(instruction));
  return plan;
}

} // namespace nearbank::sim
