// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/KernelCode.h"

#include "compiler/codegen/CrashGuard.h"
#include "compiler/codegen/Lowering.h"
#include "compiler/codegen/PimCode.h"
#include "compiler/codegen/upmem/EmitUpmemC.h"
#include "compiler/driver/DpuCode.h"
#include "runtime/DpuKernel.h"
#include "runtime/Error.h"
#include "sim/dpu/DpuConfig.h"
#include "sim/dpu/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <fmt/format.h>

namespace nearbank::driver {

KernelCode::KernelCode(mlir::ModuleOp nests, const Program &program)
    : nests_(nests), program_(program), native_(program.kernels.size()) {}

void KernelCode::requireNative(const std::vector<uint32_t> &kernels, bool isTrace) {
  std::vector<std::string> names;
  std::vector<uint32_t> missing;
  for (uint32_t kernel : kernels)
    if (!(isTrace ? native_[kernel].trace : native_[kernel].run)) {
      names.push_back(program_.kernels[kernel].name);
      missing.push_back(kernel);
    }
  if (names.empty())
    return;
  codegen::Target target = isTrace ? codegen::Target::Trace : codegen::Target::Host;
  std::string diagnostics;
  std::unique_ptr<codegen::LoweredKernels> lowered;
  auto compile = [&] {
    lowered = codegen::lowerKernels(nests_, names, target, diagnostics);
    if (!lowered)
      return;
    std::map<std::string, int64_t> tasks = lowered->tasks;
    std::set<std::string> usingBlas = lowered->usingBlas;
    hostCode_.add(std::move(lowered), target);
    for (uint32_t index : missing)
      bindNative(index, target, tasks, usingBlas);
  };
  bool isAlive = codegen::survivesCrash(compile, diagnostics);
  if (!isAlive || !diagnostics.empty())
    throw InternalError({"NB0901", "generated host code was refused", program_.name,
                         isAlive ? "nests that lower to LLVM IR" : "a code generator that does not crash", diagnostics,
                         "report this with the model that caused it"});
}

void KernelCode::bindNative(uint32_t index, codegen::Target target, const std::map<std::string, int64_t> &tasks,
                            const std::set<std::string> &usingBlas) {
  HostKernel &kernel = native_[index];
  const std::string &name = program_.kernels[index].name;
  KernelFunction function = hostCode_.lookup(name, target);
  if (target == codegen::Target::Trace) {
    kernel.trace = function;
    kernel.traceTasks = tasks.at(name);
  } else {
    kernel.run = function;
    kernel.tasks = tasks.at(name);
    kernel.usesBlas = usingBlas.count(name) > 0;
  }
}

void KernelCode::compileSimulated(uint32_t kernel, const MachineConfig &machine, SimulatedCode &code) {
  const std::string &name = program_.kernels[kernel].name;
  bool isHost = machine.kind == "host";
  codegen::VectorUnit vector{machine.core.vectorBits};
  std::string diagnostics;
  auto compile = [&] {
    std::unique_ptr<codegen::LoweredKernels> lowered = codegen::lowerKernels(
        nests_, {name}, isHost ? codegen::Target::ModelledHost : codegen::Target::Pim, diagnostics, vector);
    if (lowered)
      code.kernels[kernel] = isHost ? codegen::compileModelledHost(*lowered, name, vector, diagnostics)
                                    : codegen::compilePim(*lowered, name, diagnostics, vector);
  };
  bool isAlive = codegen::survivesCrash(compile, diagnostics);
  if (!isAlive)
    diagnostics = "the RISC-V code generator crashed on this nest; " + diagnostics;
  if (code.kernels[kernel].elf.empty())
    code.failures[kernel] = diagnostics.empty() ? "no RISC-V code could be generated" : diagnostics;
}

void KernelCode::compileForDpus(uint32_t kernel, const MachineConfig &machine, const std::string &upmemHome,
                                SimulatedCode &code) {
  auto function = nests_.lookupSymbol<mlir::func::FuncOp>(program_.kernels[kernel].name);
  std::string reason;
  std::unique_ptr<DpuKernel> emitted = codegen::emitUpmemC(function, *machine.dpus, reason);
  if (!emitted) {
    code.failures[kernel] = reason;
    return;
  }
  PimKernel &target = code.kernels[kernel];
  target.elf = compileDpuProgram(emitted->source, emitted->tasklets, upmemHome);
  try {
    emitted->instructions = static_cast<int64_t>(dpu::Program::load(target.elf, "", *machine.dpus)->code.size());
  } catch (const UserError &error) {
    target.elf.clear();
    code.failures[kernel] =
        fmt::format("its program should have {}, and has {}", error.report().expected, error.report().actual);
    return;
  }
  target.tasks = emitted->items * emitted->dpus();
  target.dpu = std::move(emitted);
}

/// All that DPU programs and their splits depend on: transfers and their prices, too.
static std::string dpuCodeKey(const dpu::DpuConfig &config) {
  std::string key = fmt::format("upmem {}", config.numDpus);
  for (const MachineValue &value : config.values)
    if (value.path.rfind("placement.", 0) != 0)
      key += fmt::format(" {}={}", value.path, value.value);
  for (const dpu::TransferTable *table : {&config.toMram, &config.fromMram})
    for (const std::vector<double> *numbers : {&table->bytes, &table->ranks, &table->us})
      for (double number : *numbers)
        key += fmt::format(" {}", number);
  return key;
}

const SimulatedCode &KernelCode::simulated(const MachineConfig &machine, const std::function<void(int64_t)> &progress,
                                           const std::string &upmemHome) {
  std::string key =
      machine.dpus ? dpuCodeKey(*machine.dpus) : fmt::format("{} {}", machine.kind, machine.core.vectorBits);
  if (auto known = simulated_.find(key); known != simulated_.end())
    return known->second;
  SimulatedCode code;
  code.kernels.resize(program_.kernels.size());
  code.failures.resize(program_.kernels.size());
  for (uint32_t kernel = 0; kernel < program_.kernels.size(); ++kernel) {
    if (progress)
      progress(kernel);
    if (machine.dpus)
      compileForDpus(kernel, machine, upmemHome, code);
    else
      compileSimulated(kernel, machine, code);
  }
  return simulated_[key] = std::move(code);
}

} // namespace nearbank::driver
