// SPDX-License-Identifier: Apache-2.0
// Instructions that only change registers.
#include "compiler/translate/RegionCode.h"

#include "sim/dpu/Decode.h"

namespace nearbank::translate {

using namespace nearbank::dpu;

// DPU-2: a multiply takes a step for each bit of the smaller operand.
void RegionCode::emitMultiply(const Instruction &in) {
  llvm::Value *a = get(in.rs1), *b = get(in.rs2);
  set(in.rd, builder_.CreateMul(a, b));
  if (!in.slots)
    return;
  llvm::Value *least = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, a, b);
  llvm::Value *zeros =
      builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, builder_.CreateOr(least, number(1)), builder_.getTrue());
  auto most = static_cast<uint32_t>(config_.multiplyCallSlots) + 31;
  llvm::Value *extra = builder_.CreateZExt(builder_.CreateSub(number(most), zeros), builder_.getInt64Ty());
  for (unsigned i = 0; i < 2; ++i) {
    llvm::Value *sum = builder_.CreateLoad(builder_.getInt64Ty(), counts_[i]);
    builder_.CreateStore(builder_.CreateAdd(sum, builder_.CreateShl(extra, i == 0 ? 2 * CountBits : CountBits)),
                         counts_[i]);
  }
}

void RegionCode::emitDivide(const Instruction &in) {
  llvm::Value *a = get(in.rs1), *b = get(in.rs2);
  bool isSigned = in.op == Op::Div || in.op == Op::Rem, isQuotient = in.op == Op::Div || in.op == Op::Divu;
  llvm::Value *byZero = builder_.CreateICmpEQ(b, number(0)), *isSpecial = byZero;
  if (isSigned)
    isSpecial = builder_.CreateOr(byZero, builder_.CreateAnd(builder_.CreateICmpEQ(a, number(0x80000000u)),
                                                             builder_.CreateICmpEQ(b, number(~0u))));
  llvm::Value *divisor = builder_.CreateSelect(isSpecial, number(1), b), *result;
  if (isQuotient)
    result = isSigned ? builder_.CreateSDiv(a, divisor) : builder_.CreateUDiv(a, divisor);
  else
    result = isSigned ? builder_.CreateSRem(a, divisor) : builder_.CreateURem(a, divisor);
  set(in.rd, builder_.CreateSelect(byZero, isQuotient ? number(~0u) : a, result));
  charge(in, static_cast<uint32_t>(config_.divide32Slots) - 1);
  pending_.counts[1] -= 1; // The instruction itself is counted with its first slot.
}

void RegionCode::emitInstruction(uint32_t pc) {
  const Instruction &in = code_[pc];
  llvm::Value *immediate = number(static_cast<uint32_t>(in.imm));
  auto a = [&] { return get(in.rs1); };
  auto b = [&] { return get(in.rs2); };
  auto amount = [&] { return builder_.CreateAnd(get(in.rs2), number(31)); };
  auto flag = [&](llvm::Value *condition) { return builder_.CreateZExt(condition, builder_.getInt32Ty()); };
  auto highProduct = [&](bool isSignedA, bool isSignedB) {
    llvm::Type *wide = builder_.getInt64Ty();
    auto extend = [&](llvm::Value *value, bool isSigned) {
      return isSigned ? builder_.CreateSExt(value, wide) : builder_.CreateZExt(value, wide);
    };
    llvm::Value *product = builder_.CreateMul(extend(a(), isSignedA), extend(b(), isSignedB));
    return builder_.CreateTrunc(builder_.CreateLShr(product, 32), builder_.getInt32Ty());
  };
  if (isLoad(in.op))
    emitLoad(pc);
  if (isStore(in.op))
    emitStore(pc);
  if (in.op == Op::AddSp) {
    llvm::Value *pointer = builder_.CreateAdd(a(), immediate);
    if (in.imm < 0)
      leaveIf(builder_.CreateICmpULT(pointer, stackStart_), pc);
    set(2, pointer);
  }
  charge(in, in.slots);
  switch (in.op) {
  case Op::Li:
    return set(in.rd, immediate);
  case Op::Jal:
    set(in.rd, number(TextBase + 4 * (pc + 1)));
    if (in.rd == DiscardRegister)
      return emitJump(pc, static_cast<uint32_t>(in.imm));
    emitExit(immediate, NativeStop::GoOn);
    isDone_ = true;
    return;
  case Op::Jalr: {
    llvm::Value *target = builder_.CreateAdd(a(), immediate);
    set(in.rd, number(TextBase + 4 * (pc + 1)));
    emitExit(builder_.CreateLShr(builder_.CreateSub(target, number(TextBase)), 2), NativeStop::GoOn);
    isDone_ = true;
    return;
  }
  case Op::Beq:
  case Op::Bne:
  case Op::Blt:
  case Op::Bge:
  case Op::Bltu:
  case Op::Bgeu:
    return emitBranch(pc);
  case Op::Addi:
    return set(in.rd, builder_.CreateAdd(a(), immediate));
  case Op::Slti:
    return set(in.rd, flag(builder_.CreateICmpSLT(a(), immediate)));
  case Op::Sltiu:
    return set(in.rd, flag(builder_.CreateICmpULT(a(), immediate)));
  case Op::Xori:
    return set(in.rd, builder_.CreateXor(a(), immediate));
  case Op::Ori:
    return set(in.rd, builder_.CreateOr(a(), immediate));
  case Op::Andi:
    return set(in.rd, builder_.CreateAnd(a(), immediate));
  case Op::Slli:
    return set(in.rd, builder_.CreateShl(a(), immediate));
  case Op::Srli:
    return set(in.rd, builder_.CreateLShr(a(), immediate));
  case Op::Srai:
    return set(in.rd, builder_.CreateAShr(a(), immediate));
  case Op::Add:
    return set(in.rd, builder_.CreateAdd(a(), b()));
  case Op::Sub:
    return set(in.rd, builder_.CreateSub(a(), b()));
  case Op::Sll:
    return set(in.rd, builder_.CreateShl(a(), amount()));
  case Op::Slt:
    return set(in.rd, flag(builder_.CreateICmpSLT(a(), b())));
  case Op::Sltu:
    return set(in.rd, flag(builder_.CreateICmpULT(a(), b())));
  case Op::Xor:
    return set(in.rd, builder_.CreateXor(a(), b()));
  case Op::Srl:
    return set(in.rd, builder_.CreateLShr(a(), amount()));
  case Op::Sra:
    return set(in.rd, builder_.CreateAShr(a(), amount()));
  case Op::Or:
    return set(in.rd, builder_.CreateOr(a(), b()));
  case Op::And:
    return set(in.rd, builder_.CreateAnd(a(), b()));
  case Op::Mul:
    return emitMultiply(in);
  case Op::Mulh:
    return set(in.rd, highProduct(true, true));
  case Op::Mulhsu:
    return set(in.rd, highProduct(true, false));
  case Op::Mulhu:
    return set(in.rd, highProduct(false, false));
  case Op::Div:
  case Op::Divu:
  case Op::Rem:
  case Op::Remu:
    return emitDivide(in);
  case Op::MulByte: {
    auto part = [&](llvm::Value *value, unsigned which) {
      llvm::Value *byte = builder_.CreateTrunc(which & 1 ? builder_.CreateLShr(value, 8) : value, builder_.getInt8Ty());
      return which & 2 ? builder_.CreateZExt(byte, builder_.getInt32Ty())
                       : builder_.CreateSExt(byte, builder_.getInt32Ty());
    };
    auto variant = static_cast<unsigned>(in.imm);
    return set(in.rd, builder_.CreateMul(part(a(), variant >> 2), part(b(), variant & 3)));
  }
  default: // Loads, stores, the stack pointer: above. Nop.
    return;
  }
}

} // namespace nearbank::translate
