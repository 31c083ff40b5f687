// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/PimCode.h"
#include "compiler/codegen/HostCode.h"
#include "compiler/codegen/RiscvLink.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

namespace nearbank::codegen {

/// The instruction set of the near-memory cores; sim/isa implements exactly this.
static constexpr const char *pimTriple = "riscv64-unknown-elf";
static constexpr const char *pimFeatures = "+m,+a,+f,+d,+c,+zicsr,+zifencei,+zfhmin,+zfbfmin";
/// Scheduling model of an in-order core, the closest that LLVM has to the simulated one.
static constexpr const char *pimTune = "rocket";

static std::unique_ptr<llvm::TargetMachine> createPimMachine(std::string &failure) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeRISCVTargetInfo();
    LLVMInitializeRISCVTarget();
    LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
  });
  llvm::Triple triple(pimTriple);
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, failure);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  options.MCOptions.ABIName = "lp64d";
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(triple, "generic-rv64", pimFeatures, options,
                                                                          llvm::Reloc::Static, llvm::CodeModel::Medium,
                                                                          llvm::CodeGenOptLevel::Aggressive));
}

PimKernel compilePim(LoweredKernels &lowered, const std::string &kernel, std::string &failure) {
  PimKernel code;
  std::unique_ptr<llvm::TargetMachine> machine = createPimMachine(failure);
  if (!machine)
    return code;
  llvm::Module &module = *lowered.module;
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  for (llvm::Function &function : module) {
    function.addFnAttr("tune-cpu", pimTune);
    function.addFnAttr("target-features", pimFeatures);
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
  if (!code.elf.empty())
    code.tasks = lowered.tasks.at(kernel);
  return code;
}

} // namespace nearbank::codegen
