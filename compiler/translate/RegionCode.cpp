// SPDX-License-Identifier: Apache-2.0
#include "compiler/translate/RegionCode.h"

#include "sim/dpu/Decode.h"

#include "llvm/IR/MDBuilder.h"

namespace nearbank::translate {

using namespace nearbank::dpu;

RegionCode::RegionCode(llvm::Module &module, const Program &program, const CodeMap &map, const DpuConfig &config,
                       Region region)
    : module_(module), program_(program), code_(program.code), map_(map), config_(config), region_(region),
      builder_(module.getContext()) {
  const std::vector<bool> &loads = map.spinLoads();
  hasSpinLoops_ = std::find(loads.begin(), loads.end(), true) != loads.end();
}

void RegionCode::emit(const std::string &name) {
  findBlocks();
  findChangedRegisters();
  findNeededRegisters();
  llvm::Type *pointer = builder_.getPtrTy();
  auto *type = llvm::FunctionType::get(builder_.getInt32Ty(), {pointer, pointer}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addParamAttr(0, llvm::Attribute::NoAlias);
  function_->addParamAttr(1, llvm::Attribute::NoAlias);
  for (auto &[first, block] : blocks_)
    block.code = newBlock("i" + llvm::Twine(first));
  emitEntries();
  for (auto &[first, block] : blocks_)
    emitBlock(first);
}

llvm::BasicBlock *RegionCode::newBlock(const llvm::Twine &name) {
  return llvm::BasicBlock::Create(module_.getContext(), name, function_);
}

static llvm::Value *fieldOf(llvm::IRBuilder<> &builder, llvm::Value *structure, size_t offset) {
  return builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), structure, offset);
}

void RegionCode::emitEntries() {
  auto *start = llvm::BasicBlock::Create(module_.getContext(), "start", function_, &function_->front());
  builder_.SetInsertPoint(start);
  for (uint8_t reg = 1; reg < DiscardRegister; ++reg)
    registers_[reg] = builder_.CreateAlloca(builder_.getInt32Ty(), nullptr, "x" + llvm::Twine(reg));
  for (auto &sum : counts_)
    sum = builder_.CreateAlloca(builder_.getInt64Ty());
  llvm::Value *state = function_->getArg(0), *call = function_->getArg(1);
  auto field = [&](llvm::Type *type, size_t offset) {
    return builder_.CreateLoad(type, fieldOf(builder_, call, offset));
  };
  wram_ = field(builder_.getPtrTy(), offsetof(NativeCall, wram));
  limit_ = field(builder_.getInt64Ty(), offsetof(NativeCall, limit));
  stackStart_ = field(builder_.getInt32Ty(), offsetof(NativeCall, stackStart));
  if (hasSpinLoops_)
    watched_ = field(builder_.getPtrTy(), offsetof(NativeCall, watched));
  for (unsigned i = 0; i < 2; ++i)
    builder_.CreateStore(field(builder_.getInt64Ty(), offsetof(NativeCall, counts) + 8 * i), counts_[i]);
  llvm::Value *pc = field(builder_.getInt32Ty(), offsetof(NativeCall, pc));
  llvm::BasicBlock *never = newBlock("never");
  llvm::SwitchInst *entries = builder_.CreateSwitch(pc, never);
  builder_.SetInsertPoint(never);
  builder_.CreateUnreachable();
  for (const auto &[first, block] : blocks_) {
    if (!map_.isEntry(first))
      continue;
    llvm::BasicBlock *entry = newBlock();
    entries->addCase(builder_.getInt32(first), entry);
    builder_.SetInsertPoint(entry);
    for (uint8_t reg = 1; reg < DiscardRegister; ++reg)
      if (block.needed >> reg & 1)
        builder_.CreateStore(builder_.CreateLoad(builder_.getInt32Ty(), fieldOf(builder_, state, 4 * reg)),
                             registers_[reg]);
    builder_.CreateBr(block.code);
  }
}

llvm::Value *RegionCode::get(uint8_t reg) {
  return reg == 0 ? number(0) : builder_.CreateLoad(builder_.getInt32Ty(), registers_[reg]);
}
void RegionCode::set(uint8_t reg, llvm::Value *value) {
  if (reg == DiscardRegister)
    return;
  builder_.CreateStore(value, registers_[reg]);
  changed_ |= uint64_t{1} << reg;
}

void RegionCode::charge(const Instruction &in, uint32_t slots) {
  uint64_t count = slots;
  pending_.counts[0] += count << 2 * CountBits;
  if (in.kind == SlotKind::Arithmetic)
    pending_.counts[0] += count << CountBits;
  else if (in.kind == SlotKind::Memory)
    pending_.counts[0] += count;
  else if (in.kind == SlotKind::Control)
    pending_.counts[1] += count << 2 * CountBits;
  else if (in.kind == SlotKind::Multiply)
    pending_.counts[1] += count << CountBits;
  pending_.counts[1] += 1;
}

void RegionCode::flush() {
  for (unsigned i = 0; i < 2; ++i)
    if (pending_.counts[i])
      builder_.CreateStore(builder_.CreateAdd(builder_.CreateLoad(builder_.getInt64Ty(), counts_[i]),
                                              builder_.getInt64(pending_.counts[i])),
                           counts_[i]);
  pending_ = {};
}

void RegionCode::emitExit(llvm::Value *pc, NativeStop stop) {
  llvm::Value *state = function_->getArg(0), *call = function_->getArg(1);
  for (unsigned i = 0; i < 2; ++i) {
    llvm::Value *sum = builder_.CreateAdd(builder_.CreateLoad(builder_.getInt64Ty(), counts_[i]),
                                          builder_.getInt64(pending_.counts[i]));
    builder_.CreateStore(sum, fieldOf(builder_, call, offsetof(NativeCall, counts) + 8 * i));
  }
  for (uint8_t reg = 1; reg < DiscardRegister; ++reg)
    if (changed_ >> reg & 1)
      builder_.CreateStore(get(reg), fieldOf(builder_, state, 4 * reg));
  builder_.CreateStore(pc, fieldOf(builder_, call, offsetof(NativeCall, pc)));
  builder_.CreateRet(number(static_cast<uint32_t>(stop)));
}

void RegionCode::leaveIf(llvm::Value *isBad, uint32_t pc) {
  llvm::BasicBlock *bad = newBlock(), *good = newBlock();
  builder_.CreateCondBr(isBad, bad, good, llvm::MDBuilder(module_.getContext()).createBranchWeights(1, 1u << 20));
  builder_.SetInsertPoint(bad);
  emitExit(number(pc), NativeStop::Engine);
  builder_.SetInsertPoint(good);
}

void RegionCode::emitBlock(uint32_t first) {
  const Block &block = blocks_[first];
  builder_.SetInsertPoint(block.code);
  changed_ = block.changedBefore;
  pending_ = {};
  isDone_ = false;
  uint32_t end = blockEnd(first);
  for (uint32_t pc = first; pc < end && !isDone_; ++pc) {
    if (isForEngine(pc)) {
      emitExit(number(pc), NativeStop::Engine);
      isDone_ = true;
    } else {
      emitInstruction(pc);
    }
  }
  if (!isDone_)
    emitJump(end - 1, end);
}

llvm::BasicBlock *RegionCode::destination(uint32_t pc, uint32_t target) {
  auto inside = blocks_.find(target);
  if (inside != blocks_.end() && target > pc)
    return inside->second.code;
  llvm::IRBuilder<>::InsertPointGuard guard(builder_);
  llvm::BasicBlock *check = newBlock();
  builder_.SetInsertPoint(check);
  if (inside == blocks_.end()) {
    emitExit(number(target), NativeStop::GoOn);
    return check;
  }
  llvm::BasicBlock *leave = newBlock();
  llvm::Value *isSpent = builder_.CreateICmpUGE(builder_.CreateLoad(builder_.getInt64Ty(), counts_[0]), limit_);
  builder_.CreateCondBr(isSpent, leave, inside->second.code,
                        llvm::MDBuilder(module_.getContext()).createBranchWeights(1, 1u << 20));
  builder_.SetInsertPoint(leave);
  emitExit(number(target), NativeStop::Budget);
  return check;
}

void RegionCode::emitJump(uint32_t pc, uint32_t target) {
  flush();
  builder_.CreateBr(destination(pc, target));
  isDone_ = true;
}

void RegionCode::emitBranch(uint32_t pc) {
  const Instruction &in = code_[pc];
  llvm::Value *a = get(in.rs1), *b = get(in.rs2), *isTaken = nullptr;
  switch (in.op) {
  case Op::Beq:
    isTaken = builder_.CreateICmpEQ(a, b);
    break;
  case Op::Bne:
    isTaken = builder_.CreateICmpNE(a, b);
    break;
  case Op::Blt:
    isTaken = builder_.CreateICmpSLT(a, b);
    break;
  case Op::Bge:
    isTaken = builder_.CreateICmpSGE(a, b);
    break;
  case Op::Bltu:
    isTaken = builder_.CreateICmpULT(a, b);
    break;
  default:
    isTaken = builder_.CreateICmpUGE(a, b);
    break;
  }
  flush();
  llvm::BasicBlock *taken = destination(pc, static_cast<uint32_t>(in.imm)), *other = destination(pc, pc + 1);
  builder_.CreateCondBr(isTaken, taken, other);
  isDone_ = true;
}

llvm::Value *RegionCode::wramPointer(llvm::Value *address) {
  llvm::Value *offset = builder_.CreateAnd(address, number(WramBytes - 1));
  return builder_.CreateGEP(builder_.getInt8Ty(), wram_, builder_.CreateZExt(offset, builder_.getInt64Ty()));
}

// Outside WRAM, or unaligned. The first addresses of MRAM fall on WRAM.
llvm::Value *RegionCode::isOutside(llvm::Value *address, uint32_t bytes) {
  constexpr uint32_t wram = WramBytes - 1;
  static_assert((MramBase & (MramBase - 1)) == 0, "one bit more to let pass");
  return builder_.CreateICmpNE(builder_.CreateAnd(address, number(~(wram | MramBase) | (bytes - 1))), number(0));
}

static unsigned accessBytes(Op op) {
  switch (op) {
  case Op::Lw:
  case Op::Sw:
    return 4;
  case Op::Lh:
  case Op::Lhu:
  case Op::Sh:
    return 2;
  default:
    return 1;
  }
}

void RegionCode::emitLoad(uint32_t pc) {
  const Instruction &in = code_[pc];
  unsigned bytes = accessBytes(in.op);
  llvm::Value *address = builder_.CreateAdd(get(in.rs1), number(static_cast<uint32_t>(in.imm)));
  leaveIf(isOutside(address, bytes), pc);
  llvm::Type *type = builder_.getIntNTy(8 * bytes);
  llvm::Value *value = builder_.CreateAlignedLoad(type, wramPointer(address), llvm::Align(bytes));
  bool isSigned = in.op == Op::Lb || in.op == Op::Lh;
  set(in.rd,
      isSigned ? builder_.CreateSExt(value, builder_.getInt32Ty()) : builder_.CreateZExt(value, builder_.getInt32Ty()));
}

void RegionCode::emitStore(uint32_t pc) {
  const Instruction &in = code_[pc];
  unsigned bytes = accessBytes(in.op);
  llvm::Value *address = builder_.CreateAdd(get(in.rs1), number(static_cast<uint32_t>(in.imm)));
  leaveIf(isOutside(address, bytes), pc);
  if (hasSpinLoops_) {
    llvm::Value *doubleWord = builder_.CreateLShr(builder_.CreateAnd(address, number(WramBytes - 1)), 3);
    llvm::Value *index = builder_.CreateZExt(doubleWord, builder_.getInt64Ty());
    llvm::Value *mark =
        builder_.CreateLoad(builder_.getInt8Ty(), builder_.CreateGEP(builder_.getInt8Ty(), watched_, index));
    leaveIf(builder_.CreateICmpNE(mark, builder_.getInt8(0)), pc);
  }
  llvm::Value *value = builder_.CreateTrunc(get(in.rs2), builder_.getIntNTy(8 * bytes));
  builder_.CreateAlignedStore(value, wramPointer(address), llvm::Align(bytes));
}

} // namespace nearbank::translate
