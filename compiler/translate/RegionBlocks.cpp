// SPDX-License-Identifier: Apache-2.0
// The blocks of a region, and which registers have to be loaded before and stored after them.
#include "compiler/translate/RegionCode.h"

namespace nearbank::translate {

using namespace nearbank::dpu;

bool RegionCode::isForEngine(uint32_t pc) const { return dpu::isForEngine(code_[pc].op) || map_.spinLoads()[pc]; }

void RegionCode::findBlocks() {
  auto begin = [&](uint32_t pc) {
    if (pc >= region_.begin && pc < region_.end)
      blocks_[pc];
  };
  for (uint32_t pc = region_.begin; pc < region_.end; ++pc) {
    const Instruction &in = code_[pc];
    if (map_.isEntry(pc))
      begin(pc);
    if (isBranch(in.op) || in.op == Op::Jal)
      begin(static_cast<uint32_t>(in.imm));
    if (isBranch(in.op) || in.op == Op::Jal || in.op == Op::Jalr || isForEngine(pc))
      begin(pc + 1);
  }
}

uint32_t RegionCode::blockEnd(uint32_t first) const {
  auto next = blocks_.upper_bound(first);
  return next == blocks_.end() ? region_.end : next->first;
}

std::vector<uint32_t> RegionCode::successors(uint32_t first, uint32_t end) const {
  const Instruction &last = code_[end - 1];
  std::vector<uint32_t> all;
  auto add = [&](uint32_t pc) {
    if (blocks_.contains(pc))
      all.push_back(pc);
  };
  bool isCall = last.rd != DiscardRegister;
  if (isBranch(last.op) || (last.op == Op::Jal && !isCall))
    add(static_cast<uint32_t>(last.imm));
  if (last.op != Op::Jal && last.op != Op::Jalr && !isForEngine(end - 1))
    add(end);
  return all;
}

void RegionCode::findChangedRegisters() {
  for (bool isStable = false; !isStable;) {
    isStable = true;
    for (auto &[first, block] : blocks_) {
      uint32_t end = blockEnd(first);
      uint64_t after = block.changedBefore;
      for (uint32_t pc = first; pc < end; ++pc)
        if (!isForEngine(pc))
          after |= uint64_t{1} << written(code_[pc]);
      after &= ~(uint64_t{1} << DiscardRegister);
      for (uint32_t next : successors(first, end)) {
        uint64_t &before = blocks_[next].changedBefore;
        isStable = isStable && (after & ~before) == 0;
        before |= after;
      }
    }
  }
}

void RegionCode::findNeededRegisters() {
  for (bool isStable = false; !isStable;) {
    isStable = true;
    for (auto it = blocks_.rbegin(); it != blocks_.rend(); ++it) {
      auto &[first, block] = *it;
      uint32_t end = blockEnd(first);
      uint64_t definite = 0; // Registers written in this block so far.
      uint64_t needed = block.changedBefore;
      for (uint32_t pc = first; pc < end; ++pc) {
        for (uint8_t reg = 1; reg < DiscardRegister; ++reg)
          if (reads(code_[pc], reg))
            needed |= (uint64_t{1} << reg) & ~definite;
        definite |= uint64_t{1} << written(code_[pc]);
      }
      for (uint32_t next : successors(first, end))
        needed |= blocks_[next].needed & ~definite;
      isStable = isStable && needed == block.needed;
      block.needed = needed;
    }
  }
}

} // namespace nearbank::translate
