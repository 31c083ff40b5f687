// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/HostCode.h"
#include "compiler/codegen/Gemm.h"
#include "compiler/codegen/OptimizeModule.h"
#include "compiler/codegen/TraceInstrumentation.h"
#include "compiler/profile/TraceSink.h"
#include "runtime/Error.h"

#include "llvm/ADT/bit.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <cmath>
#include <mutex>

namespace nearbank::codegen {

static Error codeError(const std::string &stage, llvm::Error error) {
  return InternalError({"NB0901", "generated host code was refused", stage, "code that LLVM accepts",
                        llvm::toString(std::move(error)), "report this with the model that caused it"});
}

struct HostCode::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::map<Target, llvm::orc::JITDylib *> libraries;
};

HostCode::HostCode() : impl_(std::make_unique<Impl>()) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    throw codeError("host detection", builder.takeError());
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  auto machine = builder->createTargetMachine();
  if (!machine)
    throw codeError("target machine", machine.takeError());
  impl_->machine = std::move(*machine);
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(*builder).create();
  if (!jit)
    throw codeError("just-in-time compiler", jit.takeError());
  impl_->jit = std::move(*jit);
}

HostCode::~HostCode() = default;

/// Rounds to bfloat16, to nearest even; returns the bits in the low half of the register, where the ABI has bfloat16.
static float truncateToBfloat16(float value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  bool isNan = (bits & 0x7fffffff) > 0x7f800000;
  uint32_t rounded = isNan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return llvm::bit_cast<float>(rounded);
}

/// Goes through a float32 rounded to odd, so that the second rounding cannot err.
static float truncateDoubleToBfloat16(double value) {
  float nearest = static_cast<float>(value);
  if (std::isnan(value) || nearest == value)
    return truncateToBfloat16(nearest);
  uint32_t bits = llvm::bit_cast<uint32_t>(nearest);
  bits -= std::fabs(double(nearest)) > std::fabs(value);
  return truncateToBfloat16(llvm::bit_cast<float>(bits | 1));
}

/// Symbols of this library that kernels call; it may be loaded locally, where a process-wide search finds nothing.
static llvm::orc::SymbolMap runtimeSymbols(llvm::orc::LLJIT &jit) {
  llvm::orc::SymbolMap symbols;
  auto add = [&](const char *name, auto *function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported};
  };
  add("nearbankGemmF32", &nearbankGemmF32);
  add("nearbankGemmF64", &nearbankGemmF64);
  add("nearbankTraceAccess", &nearbankTraceAccess);
  add("nearbankTraceOperations", &nearbankTraceOperations);
  // GCC 12's run-time library lacks them; LLVM calls them where the processor has no such instruction.
  add("__truncsfbf2", &truncateToBfloat16);
  add("__truncdfbf2", &truncateDoubleToBfloat16);
  return symbols;
}

void HostCode::add(std::unique_ptr<LoweredKernels> lowered, Target target) {
  llvm::orc::JITDylib *&library = impl_->libraries[target];
  if (!library) {
    auto created = impl_->jit->createJITDylib(target == Target::Trace ? "trace" : "host");
    if (!created)
      throw codeError("library", created.takeError());
    library = &*created;
    if (llvm::Error error = library->define(llvm::orc::absoluteSymbols(runtimeSymbols(*impl_->jit))))
      throw codeError("runtime symbols", std::move(error));
    auto process =
        llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(impl_->jit->getDataLayout().getGlobalPrefix());
    if (!process)
      throw codeError("process symbols", process.takeError());
    library->addGenerator(std::move(*process));
  }
  llvm::Module &module = *lowered->module;
  module.setDataLayout(impl_->jit->getDataLayout());
  module.setTargetTriple(impl_->machine->getTargetTriple());
  optimizeModule(module, *impl_->machine, target == Target::Trace ? Optimization::Scalar : Optimization::Vectorized);
  if (target == Target::Trace)
    instrumentAccesses(module);
  llvm::orc::ThreadSafeModule safe(std::move(lowered->module), std::move(lowered->context));
  if (llvm::Error error = impl_->jit->addIRModule(*library, std::move(safe)))
    throw codeError("module", std::move(error));
}

KernelFunction HostCode::lookup(const std::string &kernel, Target target) const {
  auto library = impl_->libraries.find(target);
  if (library == impl_->libraries.end())
    return nullptr;
  auto address = impl_->jit->lookup(*library->second, entryName(kernel));
  if (!address)
    throw codeError(kernel, address.takeError());
  return address->toPtr<KernelFunction>();
}

} // namespace nearbank::codegen
