// SPDX-License-Identifier: Apache-2.0
// LLVM IR of one region of a DPU program: what its instructions do to registers and WRAM, and what they cost.
#pragma once

#include "compiler/translate/CodeMap.h"
#include "sim/dpu/NativeProgram.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

#include <map>
#include <string>

namespace nearbank::translate {

class RegionCode {
public:
  RegionCode(llvm::Module &module, const dpu::Program &program, const CodeMap &map, const dpu::DpuConfig &config,
             Region region);
  /// Adds a dpu::NativeFunction called `name` to the module.
  void emit(const std::string &name);

private:
  /// Counts that are known when translating and not yet added to the running sums.
  struct Pending {
    uint64_t counts[2] = {0, 0};
  };

  void findBlocks();
  void findChangedRegisters();
  void findNeededRegisters();
  bool isForEngine(uint32_t pc) const;
  uint32_t blockEnd(uint32_t first) const;
  /// Blocks of the region that may follow the block [first, end).
  std::vector<uint32_t> successors(uint32_t first, uint32_t end) const;

  void emitEntries();
  void emitBlock(uint32_t first);
  void emitInstruction(uint32_t pc);
  void emitMultiply(const dpu::Instruction &in);
  void emitDivide(const dpu::Instruction &in);
  void emitLoad(uint32_t pc);
  void emitStore(uint32_t pc);
  void emitBranch(uint32_t pc);
  void emitJump(uint32_t pc, uint32_t target);
  /// Where a jump from `pc` to `target` goes: a block, a check of the budget before a loop's head, or an exit.
  llvm::BasicBlock *destination(uint32_t pc, uint32_t target);
  /// Leaves at the place of the builder.
  void emitExit(llvm::Value *pc, dpu::NativeStop stop);
  /// Goes on in a new block when `isBad` is false; else leaves to the engine, before instruction `pc`.
  void leaveIf(llvm::Value *isBad, uint32_t pc);
  llvm::Value *isOutside(llvm::Value *address, uint32_t bytes);
  llvm::Value *wramPointer(llvm::Value *address);

  void charge(const dpu::Instruction &in, uint32_t slots);
  void flush();
  llvm::Value *get(uint8_t reg);
  void set(uint8_t reg, llvm::Value *value);
  llvm::Value *number(uint32_t value) { return builder_.getInt32(value); }
  llvm::BasicBlock *newBlock(const llvm::Twine &name = "");

  llvm::Module &module_;
  const dpu::Program &program_;
  const std::vector<dpu::Instruction> &code_;
  const CodeMap &map_;
  const dpu::DpuConfig &config_;
  Region region_;
  llvm::IRBuilder<> builder_;
  llvm::Function *function_ = nullptr;
  llvm::Value *wram_ = nullptr, *limit_ = nullptr, *watched_ = nullptr, *stackStart_ = nullptr;
  llvm::AllocaInst *registers_[dpu::DiscardRegister] = {};
  llvm::AllocaInst *counts_[2] = {};
  Pending pending_;
  bool isDone_ = false;  // The block being emitted has its end.
  uint64_t changed_ = 0; // Registers that may differ from what is stored, where the builder is.
  bool hasSpinLoops_;

  struct Block {
    llvm::BasicBlock *code = nullptr;
    uint64_t changedBefore = 0; ///< Registers that may have been written since the region was entered.
    uint64_t needed = 0;        ///< Registers that are read, or stored by an exit, before they are written.
  };
  std::map<uint32_t, Block> blocks_; // By first instruction.
};

} // namespace nearbank::translate
