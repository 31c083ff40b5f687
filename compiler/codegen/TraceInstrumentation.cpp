// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/TraceInstrumentation.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace nearbank::codegen {

/// Memory of the kernel's own stack frame lives in registers or the first-level cache and is left out.
static bool isLocal(Value *pointer) { return isa<AllocaInst>(getUnderlyingObject(pointer)); }

void instrumentAccesses(Module &module) {
  LLVMContext &context = module.getContext();
  Type *none = Type::getVoidTy(context), *word = Type::getInt32Ty(context), *count = Type::getInt64Ty(context);
  FunctionCallee access =
      module.getOrInsertFunction("nearbankTraceAccess", none, PointerType::getUnqual(context), word, word);
  FunctionCallee operations = module.getOrInsertFunction("nearbankTraceOperations", none, count);
  for (Function &function : module)
    for (BasicBlock &block : function) {
      int64_t others = 0;
      SmallVector<Instruction *> accesses;
      for (Instruction &instruction : block) {
        Value *pointer = getLoadStorePointerOperand(&instruction);
        if (pointer && !isLocal(pointer))
          accesses.push_back(&instruction);
        else if (!isa<PHINode, DbgInfoIntrinsic, GetElementPtrInst>(instruction))
          ++others;
      }
      for (Instruction *instruction : accesses) {
        IRBuilder<> builder(instruction);
        uint64_t bytes = module.getDataLayout().getTypeStoreSize(getLoadStoreType(instruction));
        builder.CreateCall(access, {getLoadStorePointerOperand(instruction), ConstantInt::get(word, bytes),
                                    ConstantInt::get(word, isa<StoreInst>(instruction))});
      }
      IRBuilder<> builder(block.getTerminator());
      builder.CreateCall(operations, ConstantInt::get(count, others));
    }
}

} // namespace nearbank::codegen
