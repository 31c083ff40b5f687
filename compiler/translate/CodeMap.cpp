// SPDX-License-Identifier: Apache-2.0
#include "compiler/translate/CodeMap.h"

#include "sim/dpu/Decode.h"

#include <algorithm>
#include <cstring>

namespace nearbank::translate {

using namespace nearbank::dpu;

namespace {
bool isJump(const Instruction &in) { return isBranch(in.op) || in.op == Op::Jal; }
bool isCall(const Instruction &in) { return (in.op == Op::Jal || in.op == Op::Jalr) && in.rd != DiscardRegister; }
uint32_t target(const Instruction &in) { return static_cast<uint32_t>(in.imm); }
} // namespace

CodeMap::CodeMap(const Program &program) : isEntry_(program.code.size()), isSpinLoad_(program.code.size()) {
  findEntries(program);
  const std::vector<Instruction> &code = program.code;
  for (uint32_t pc = 0; pc < code.size(); ++pc) {
    if (!isJump(code[pc]) || target(code[pc]) > pc)
      continue;
    isEntry_[target(code[pc])] = true;
    findSpinLoop(code, target(code[pc]), pc);
  }
  for (uint32_t pc = 0; pc + 1 < code.size(); ++pc)
    if (isSpinLoad_[pc])
      isEntry_[pc + 1] = true;
}

void CodeMap::findEntries(const Program &program) {
  const std::vector<Instruction> &code = program.code;
  std::vector<bool> isStart(code.size());
  auto mark = [&](std::vector<bool> &marks, size_t pc) {
    if (pc < code.size())
      marks[pc] = true;
  };
  mark(isStart, 0);
  for (const auto &[name, symbol] : program.symbols)
    if (symbol.isFunction && symbol.address >= TextBase)
      mark(isStart, (symbol.address - TextBase) / 4);
  for (uint32_t pc = 0; pc < code.size(); ++pc) {
    const Instruction &in = code[pc];
    if (in.routineSlots)
      mark(isStart, pc);
    if (in.op == Op::Jal && isCall(in))
      mark(isStart, target(in));
    if (isCall(in) || isForEngine(in.op))
      mark(isEntry_, pc + 1);
  }
  for (const MemoryImage &image : program.wram)
    for (size_t at = 0; at + 4 <= image.bytes.size(); at += 4) {
      uint32_t word;
      std::memcpy(&word, image.bytes.data() + at, 4);
      if (word >= TextBase && word % 4 == 0)
        mark(isEntry_, (word - TextBase) / 4);
    }
  for (uint32_t pc = 0; pc < code.size(); ++pc)
    if (isStart[pc]) {
      starts_.push_back(pc);
      isEntry_[pc] = true;
    }
}

// A loop spins when each of its passes does the same while memory does not change: it stores nothing, and no register
// carries a value from one pass to the next.
void CodeMap::findSpinLoop(const std::vector<Instruction> &code, uint32_t head, uint32_t last) {
  constexpr uint32_t longest = 24; // More instructions than a wait has.
  if (last - head >= longest || regionOf(head).begin != regionOf(last).begin)
    return;
  uint64_t writtenAnywhere = 0, writtenBefore = 0;
  bool isConditional = false, hasLoad = false;
  for (uint32_t pc = head; pc <= last; ++pc) {
    const Instruction &in = code[pc];
    bool jumpsBack = isJump(in) && target(in) <= pc;
    if (isStore(in.op) || isForEngine(in.op) || isCall(in) || in.op == Op::Jalr || (jumpsBack && pc != last))
      return;
    hasLoad = hasLoad || isLoad(in.op);
    writtenAnywhere |= uint64_t{1} << written(in);
  }
  for (uint32_t pc = head; pc <= last; ++pc) {
    const Instruction &in = code[pc];
    for (uint8_t reg = 1; reg < DiscardRegister; ++reg)
      if (reads(in, reg) && (writtenAnywhere & ~writtenBefore) >> reg & 1)
        return;
    if (!isConditional)
      writtenBefore |= uint64_t{1} << written(in);
    isConditional = isConditional || (isJump(in) && target(in) > pc && target(in) <= last);
  }
  if (hasLoad)
    for (uint32_t pc = head; pc <= last; ++pc)
      isSpinLoad_[pc] = isSpinLoad_[pc] || isLoad(code[pc].op);
}

Region CodeMap::regionOf(uint32_t pc) const {
  auto next = std::upper_bound(starts_.begin(), starts_.end(), pc);
  return {*std::prev(next), next == starts_.end() ? static_cast<uint32_t>(isEntry_.size()) : *next};
}

} // namespace nearbank::translate
