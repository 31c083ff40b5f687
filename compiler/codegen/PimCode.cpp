// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/PimCode.h"
#include "compiler/codegen/OptimizeModule.h"
#include "compiler/codegen/RiscvLink.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

#include <mutex>

namespace nearbank::codegen {

/// The scalar instruction set of all simulated cores; sim/isa implements exactly this, and V on top.
static constexpr const char *scalarFeatures = "+m,+a,+f,+d,+c,+zicsr,+zifencei,+zfhmin,+zfbfmin";
/// Scheduling models of cores that are close to the simulated ones: in order, and out of order with vectors.
static constexpr const char *inOrderTune = "rocket", *outOfOrderTune = "sifive-p670";

static std::string featuresOf(VectorUnit vector) {
  if (vector.bits == 0)
    return scalarFeatures;
  return std::string(scalarFeatures) + ",+v,+zvl" + std::to_string(vector.bits) + "b";
}

static std::unique_ptr<llvm::TargetMachine> createMachine(const std::string &features, std::string &failure) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeRISCVTargetInfo();
    LLVMInitializeRISCVTarget();
    LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
  });
  llvm::Triple triple("riscv64-unknown-elf");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, failure);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  options.MCOptions.ABIName = "lp64d";
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(triple, "generic-rv64", features, options,
                                                                          llvm::Reloc::Static, llvm::CodeModel::Medium,
                                                                          llvm::CodeGenOptLevel::Aggressive));
}

/// How often an innermost loop is unrolled, by the instructions of its body: register tiles, whose many values go round
/// the loop, have no registers left.
static unsigned unrollCount(const llvm::Loop &loop) {
  constexpr size_t smallBody = 24, largeBody = 64;
  constexpr ptrdiff_t mostValuesCarried = 4;
  size_t instructions = 0;
  for (const llvm::BasicBlock *block : loop.blocks())
    instructions += block->size();
  auto carried = loop.getHeader()->phis();
  if (instructions > largeBody || std::distance(carried.begin(), carried.end()) > mostValuesCarried)
    return 1;
  return instructions > smallBody ? 4 : 8;
}

/// An in-order core waits for each result and for each branch taken. With several iterations at hand, the scheduler
/// puts other work in between; LLVM unrolls nothing for such a core by itself.
static void unrollLoops(llvm::Module &module) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop *loop : loops.getLoopsInPreorder())
      if (unsigned count = loop->isInnermost() ? unrollCount(*loop) : 1; count > 1)
        llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.count", count);
  }
}

static PimKernel compile(LoweredKernels &lowered, const std::string &kernel, VectorUnit vector, const char *tune,
                         std::string &failure) {
  PimKernel code;
  std::string features = featuresOf(vector);
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(features, failure);
  if (!machine)
    return code;
  llvm::Module &module = *lowered.module;
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  for (llvm::Function &function : module) {
    function.addFnAttr("tune-cpu", tune);
    function.addFnAttr("target-features", features);
    // A register holds vscale times 64 bits; the length is known, so fixed-length vectors need no setting of it.
    if (unsigned scale = static_cast<unsigned>(vector.bits / 64))
      function.addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(module.getContext(), scale, scale));
  }
  optimizeModule(module, *machine, Optimization::Freestanding);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    failure = "the RISC-V backend cannot emit an object file";
    return code;
  }
  passes.run(module);
  code.elf = linkRiscv(llvm::StringRef(object.data(), object.size()), entryName(kernel), failure);
  if (code.elf.empty())
    return code;
  code.tasks = lowered.tasks.at(kernel);
  if (auto trips = lowered.reductionTrips.find(kernel); trips != lowered.reductionTrips.end())
    code.reductionTrips = trips->second;
  return code;
}

PimKernel compilePim(LoweredKernels &lowered, const std::string &kernel, std::string &failure, VectorUnit vector) {
  if (vector.bits == 0) // Else LLVM vectorises, and interleaves what it vectorises.
    unrollLoops(*lowered.module);
  return compile(lowered, kernel, vector, inOrderTune, failure);
}

PimKernel compileModelledHost(LoweredKernels &lowered, const std::string &kernel, VectorUnit vector,
                              std::string &failure) {
  return compile(lowered, kernel, vector, outOfOrderTune, failure);
}

} // namespace nearbank::codegen
