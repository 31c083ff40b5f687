// SPDX-License-Identifier: Apache-2.0
// Translates regions when they are first entered, and keeps what was made of a program for all DPUs that run it.
#include "compiler/codegen/OptimizeModule.h"
#include "compiler/translate/ObjectStore.h"
#include "compiler/translate/RegionCode.h"

#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

namespace nearbank::translate {
namespace {

using namespace nearbank::dpu;

class HostCompiler;

class TranslatedProgram : public NativeProgram {
public:
  TranslatedProgram(HostCompiler &compiler, const Program &program, const DpuConfig &config,
                    llvm::orc::JITDylib &library)
      : NativeProgram(program.code.size()), compiler_(compiler), program_(program), config_(config), map_(program_),
        library_(library) {
    isSpinLoad = map_.spinLoads();
    hasSpinLoops = std::find(isSpinLoad.begin(), isSpinLoad.end(), true) != isSpinLoad.end();
    for (uint32_t pc = 0; pc < entries_.size(); ++pc)
      entries_[pc].store(map_.isEntry(pc) ? notYet() : nullptr, std::memory_order_relaxed);
  }

protected:
  NativeFunction compile(uint32_t pc) override;

private:
  HostCompiler &compiler_;
  Program program_; // Copies: what was given may be gone when the next region is translated.
  DpuConfig config_;
  CodeMap map_;
  llvm::orc::JITDylib &library_;
  std::mutex mutex_;
};

class HostCompiler : public Translator {
public:
  HostCompiler() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto builder = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
    builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
    machine_ = llvm::cantFail(builder.createTargetMachine());
    jit_ = llvm::cantFail(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create());
  }

  std::shared_ptr<NativeProgram> translate(const Program &program, const DpuConfig &config) override {
    uint64_t key = keyOf(program, config);
    std::lock_guard lock(mutex_);
    std::shared_ptr<NativeProgram> &made = programs_[key];
    if (!made)
      made = std::make_shared<TranslatedProgram>(*this, program, config,
                                                 newLibrary("program" + std::to_string(programs_.size())));
    return made;
  }

  /// A library for the functions of one program.
  llvm::orc::JITDylib &newLibrary(const std::string &name) {
    return jit_->getExecutionSession().createBareJITDylib(name);
  }

  /// Translates one region; null when LLVM refuses it.
  NativeFunction compile(llvm::orc::JITDylib &library, const Program &program, const CodeMap &map,
                         const DpuConfig &config, Region region) {
    std::lock_guard lock(mutex_);
    std::string name = "region" + std::to_string(region.begin);
    llvm::LLVMContext context;
    llvm::Module module(name, context);
    module.setDataLayout(jit_->getDataLayout());
    module.setTargetTriple(machine_->getTargetTriple());
    RegionCode(module, program, map, config, region).emit(name);
    auto address = add(library, module, name);
    if (!address) {
      llvm::consumeError(address.takeError());
      return nullptr;
    }
    return address->toPtr<NativeFunction>();
  }

private:
  llvm::Expected<llvm::orc::ExecutorAddr> add(llvm::orc::JITDylib &library, llvm::Module &module,
                                              const std::string &name) {
    std::string text = machine_->getTargetCPU().str() + machine_->getTargetFeatureString().str();
    llvm::raw_string_ostream(text) << module;
    std::unique_ptr<llvm::MemoryBuffer> object = store_.read(text);
    if (!object) {
      codegen::optimizeModule(module, *machine_, codegen::Optimization::Scalar);
      auto compiled = llvm::orc::SimpleCompiler(*machine_)(module);
      if (!compiled)
        return compiled.takeError();
      object = std::move(*compiled);
      store_.write(text, *object);
    }
    if (llvm::Error error = jit_->addObjectFile(library, std::move(object)))
      return error;
    return jit_->lookup(library, name);
  }

  static uint64_t keyOf(const Program &program, const DpuConfig &config) {
    std::string text;
    auto add = [&](auto value) { text.append(reinterpret_cast<const char *>(&value), sizeof value); };
    for (const Instruction &in : program.code) {
      add(in.op), add(in.rd), add(in.rs1), add(in.rs2), add(in.imm), add(in.slots), add(in.kind), add(in.routineSlots);
    }
    for (const auto &[name, symbol] : program.symbols)
      if (symbol.isFunction)
        add(symbol.address);
    for (const MemoryImage &image : program.wram)
      text.append(reinterpret_cast<const char *>(image.bytes.data()), image.bytes.size());
    add(config.multiplyCallSlots), add(config.divide32Slots);
    return llvm::xxh3_64bits(text);
  }

  std::mutex mutex_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  ObjectStore store_;
  std::map<uint64_t, std::shared_ptr<NativeProgram>> programs_;
};

NativeFunction TranslatedProgram::compile(uint32_t pc) {
  std::lock_guard lock(mutex_);
  if (NativeFunction other = entries_[pc].load(std::memory_order_acquire); other != notYet())
    return other; // Another thread was faster.
  Region region = map_.regionOf(pc);
  NativeFunction made = compiler_.compile(library_, program_, map_, config_, region);
  for (uint32_t i = region.begin; i < region.end; ++i)
    if (map_.isEntry(i))
      entries_[i].store(made, std::memory_order_release);
  return made;
}

} // namespace
} // namespace nearbank::translate

extern "C" __attribute__((visibility("default"))) nearbank::dpu::Translator *nearbankTranslator() {
  // Never destroyed: threads may still run its code when the process ends.
  static auto *translator = new nearbank::translate::HostCompiler;
  return translator;
}
