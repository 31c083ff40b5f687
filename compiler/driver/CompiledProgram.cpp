// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/CompiledProgram.h"

#include "compiler/codegen/CrashGuard.h"
#include "compiler/codegen/HostCode.h"
#include "compiler/codegen/Lowering.h"
#include "compiler/codegen/PimCode.h"
#include "compiler/import/Import.h"
#include "compiler/loopnest/ExtractProgram.h"
#include "compiler/loopnest/Passes.h"
#include "compiler/profile/HostProfiler.h"
#include "compiler/profile/ProfileDatabase.h"
#include "compiler/profile/ScratchArena.h"
#include "runtime/Error.h"
#include "sim/system/NmcDevice.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <thread>

namespace nearbank::driver {

/// Version of the generated code; profiles of another one are stale.
static constexpr int64_t codegenVersion = 1;

struct CompiledProgram::Impl {
  MachineConfig machine;
  mlir::DialectRegistry registry;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Program program;
  codegen::HostCode hostCode;
  std::vector<HostKernel> hostKernels;
  std::vector<PimKernel> pimKernels;
  std::vector<std::string> pimFailures; ///< By kernel; empty while not tried or when compiled.
  std::vector<bool> isPimTried;
  std::unique_ptr<sim::NmcDevice> device;
  std::map<std::string, profile::NestProfile> memory; ///< Profiles of this process, by kernel key.
  std::optional<Plan> plan;

  Impl(const std::string &text, const CompileOptions &options, MachineConfig config);
  void compileHost(const std::vector<uint32_t> &kernels, bool isTrace);
  void bindHostKernel(uint32_t index, codegen::Target target, const std::map<std::string, int64_t> &tasks,
                      const std::set<std::string> &usingBlas);
  void compilePim(uint32_t kernel);
  void requireHost(const std::vector<Site> &sites);
  profile::NestProfile profileKernel(uint32_t kernel, const profile::ProfileOptions &options,
                                     profile::ProfileDatabase *database, Plan &plan);
  void profileAll(const PlanOptions &options, Plan &plan);
  std::optional<PimTiming> simulate(uint32_t kernel, const PlanOptions &options);
  uint32_t firstNestOf(uint32_t kernel) const;
  profile::ProfileOptions profileOptions(uint32_t kernel, int threads) const;
  /// The simulated machine, with as many simulating threads as the host may use; results do not depend on them.
  sim::NmcDevice &pimDevice(int threads);
  int deviceThreads = 0;
};

[[noreturn]] static void failLowering(const std::string &name, const std::string &diagnostics) {
  throw UserError({"NB0210", "the model cannot be lowered to loop nests", name,
                   "linalg on tensors of static shape in dialects that Nearbank knows", diagnostics,
                   "run this part in PyTorch (--on-unsupported=host does so by itself)"});
}

CompiledProgram::Impl::Impl(const std::string &text, const CompileOptions &options, MachineConfig config)
    : machine(std::move(config)) {
  import::registerDialects(registry);
  context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  std::string diagnostics;
  module = import::importModule(*context, text, diagnostics);
  if (!module)
    failLowering(options.name, diagnostics);
  {
    llvm::raw_string_ostream stream(diagnostics);
    mlir::ScopedDiagnosticHandler handler(context.get(), [&](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
        stream << diagnostic.getLocation() << ": " << diagnostic << "\n";
      return mlir::success();
    });
    mlir::PassManager manager(context.get());
    loopnest::buildNestPipeline(manager);
    if (mlir::failed(manager.run(*module)))
      failLowering(options.name, diagnostics);
    loopnest::ExtractOptions extract{options.name, options.parameters, options.argumentNames, options.indexClasses};
    mlir::FailureOr<Program> extracted = loopnest::extractProgram(*module, extract);
    if (mlir::failed(extracted))
      failLowering(options.name, diagnostics);
    program = std::move(*extracted);
  }
  hostKernels.resize(program.kernels.size());
  pimKernels.resize(program.kernels.size());
  pimFailures.resize(program.kernels.size());
  isPimTried.resize(program.kernels.size());
}

void CompiledProgram::Impl::compileHost(const std::vector<uint32_t> &kernels, bool isTrace) {
  std::vector<std::string> names;
  std::vector<uint32_t> missing;
  for (uint32_t kernel : kernels)
    if (!(isTrace ? hostKernels[kernel].trace : hostKernels[kernel].run)) {
      names.push_back(program.kernels[kernel].name);
      missing.push_back(kernel);
    }
  if (names.empty())
    return;
  codegen::Target target = isTrace ? codegen::Target::Trace : codegen::Target::Host;
  std::string diagnostics;
  std::unique_ptr<codegen::LoweredKernels> lowered;
  auto compile = [&] {
    lowered = codegen::lowerKernels(*module, names, target, diagnostics);
    if (!lowered)
      return;
    std::map<std::string, int64_t> tasks = lowered->tasks;
    std::set<std::string> usingBlas = lowered->usingBlas;
    hostCode.add(std::move(lowered), target);
    for (uint32_t index : missing)
      bindHostKernel(index, target, tasks, usingBlas);
  };
  bool isAlive = codegen::survivesCrash(compile, diagnostics);
  if (!isAlive || !diagnostics.empty())
    throw InternalError({"NB0901", "generated host code was refused", program.name,
                         isAlive ? "nests that lower to LLVM IR" : "a code generator that does not crash", diagnostics,
                         "report this with the model that caused it"});
}

void CompiledProgram::Impl::bindHostKernel(uint32_t index, codegen::Target target,
                                           const std::map<std::string, int64_t> &tasks,
                                           const std::set<std::string> &usingBlas) {
  HostKernel &kernel = hostKernels[index];
  const std::string &name = program.kernels[index].name;
  KernelFunction function = hostCode.lookup(name, target);
  if (target == codegen::Target::Trace) {
    kernel.trace = function;
    kernel.traceTasks = tasks.at(name);
  } else {
    kernel.run = function;
    kernel.tasks = tasks.at(name);
    kernel.usesBlas = usingBlas.count(name) > 0;
  }
}

void CompiledProgram::Impl::compilePim(uint32_t kernel) {
  if (isPimTried[kernel])
    return;
  isPimTried[kernel] = true;
  const std::string &name = program.kernels[kernel].name;
  std::string diagnostics;
  auto compile = [&] {
    std::unique_ptr<codegen::LoweredKernels> lowered =
        codegen::lowerKernels(*module, {name}, codegen::Target::Pim, diagnostics);
    if (lowered)
      pimKernels[kernel] = codegen::compilePim(*lowered, name, diagnostics);
  };
  bool isAlive = codegen::survivesCrash(compile, diagnostics);
  if (!isAlive)
    diagnostics = "the RISC-V code generator crashed on this nest; " + diagnostics;
  if (pimKernels[kernel].elf.empty())
    pimFailures[kernel] = diagnostics.empty() ? "no RISC-V code could be generated" : diagnostics;
}

/// Compiles host code of every kernel that some nest runs on the host.
void CompiledProgram::Impl::requireHost(const std::vector<Site> &sites) {
  std::set<uint32_t> kernels;
  for (size_t nest = 0; nest < sites.size(); ++nest)
    if (sites[nest] == Site::Host)
      kernels.insert(program.nests[nest].kernel);
  compileHost({kernels.begin(), kernels.end()}, /*isTrace=*/false);
}

uint32_t CompiledProgram::Impl::firstNestOf(uint32_t kernel) const {
  for (uint32_t nest = 0; nest < program.nests.size(); ++nest)
    if (program.nests[nest].kernel == kernel)
      return nest;
  return 0;
}

profile::ProfileOptions CompiledProgram::Impl::profileOptions(uint32_t kernel, int threads) const {
  profile::ProfileOptions options;
  options.threads = threads;
  options.codegenVersion = codegenVersion;
  options.indexBounds = program.kernels[kernel].facts.indexBounds;
  return options;
}

profile::NestProfile CompiledProgram::Impl::profileKernel(uint32_t kernel, const profile::ProfileOptions &options,
                                                          profile::ProfileDatabase *database, Plan &plan) {
  uint32_t nest = firstNestOf(kernel);
  profile::ProfileKey key;
  key.nest = program.kernels[kernel].key;
  key.host = profile::hostFingerprint();
  key.indexClass = profile::indexClassOf(program, nest, options);
  key.cacheConfig = profile::cacheConfigHash(machine.host);
  key.threads = options.threads > 0 ? options.threads : static_cast<int64_t>(std::thread::hardware_concurrency());
  key.codegenVersion = codegenVersion;
  std::string memoryKey = key.nest + "/" + key.indexClass + "/" + std::to_string(key.threads);
  if (auto known = memory.find(memoryKey); known != memory.end()) {
    ++plan.reusedKernels;
    return known->second;
  }
  if (database)
    if (std::optional<profile::NestProfile> stored = database->find(key)) {
      ++plan.reusedKernels;
      return memory[memoryKey] = *stored;
    }
  compileHost({kernel}, /*isTrace=*/false);
  compileHost({kernel}, /*isTrace=*/true);
  profile::NestProfile profile = profile::profileNest(program, nest, hostKernels[kernel], machine.host, options);
  ++plan.profiledKernels;
  if (database)
    database->store(key, profile);
  return memory[memoryKey] = profile;
}

void CompiledProgram::Impl::profileAll(const PlanOptions &options, Plan &plan) {
  plan.profiles.resize(program.kernels.size());
  std::optional<profile::ProfileDatabase> database;
  if (!options.database.empty()) {
    database.emplace(options.database);
    plan.databaseMessage = database->message();
  }
  for (uint32_t kernel = 0; kernel < program.kernels.size(); ++kernel) {
    if (options.progress && !options.progress("profile", kernel, program.kernels.size()))
      throw UserError({"NB0408", "planning was interrupted", program.name, "", "", "run the same command to continue"});
    plan.profiles[kernel] =
        profileKernel(kernel, profileOptions(kernel, options.threads), database ? &*database : nullptr, plan);
  }
}

sim::NmcDevice &CompiledProgram::Impl::pimDevice(int threads) {
  if (!device || threads != deviceThreads)
    device = std::make_unique<sim::NmcDevice>(machine, threads);
  deviceThreads = threads;
  return *device;
}

std::optional<PimTiming> CompiledProgram::Impl::simulate(uint32_t kernel, const PlanOptions &options) {
  compilePim(kernel);
  if (pimKernels[kernel].elf.empty())
    return std::nullopt;
  const NestInstance &nest = program.nests[firstNestOf(kernel)];
  const NestFacts &facts = program.kernels[kernel].facts;
  profile::ScratchArena scratch(program, nest, facts, facts.indexBounds);
  // The scratch pointers become one region per program buffer, where a run would have them.
  std::vector<PimDevice::BoundBuffer> bound(program.buffers.size());
  std::vector<uint64_t> addresses = guestAddresses(program);
  for (size_t buffer = 0; buffer < bound.size(); ++buffer) {
    bound[buffer].guestBase = addresses[buffer];
    bound[buffer].bytes = program.buffers[buffer].bytes;
  }
  for (size_t i = 0; i < nest.operands.size(); ++i) {
    PimDevice::BoundBuffer &target = bound[nest.operands[i].buffer];
    target.host = static_cast<std::byte *>(scratch.operands()[i]) - nest.operands[i].byteOffset;
    target.isWritable |= nest.operands[i].writes;
  }
  sim::NmcDevice &machineDevice = pimDevice(options.threads);
  if (options.samples)
    return machineDevice.estimate(pimKernels[kernel], bound, nest.operands);
  KernelStatus status;
  return machineDevice.execute(pimKernels[kernel], bound, nest.operands, status);
}

CompiledProgram::CompiledProgram(const std::string &mlirText, const CompileOptions &options, MachineConfig machine)
    : impl_(std::make_unique<Impl>(mlirText, options, std::move(machine))) {}

CompiledProgram::~CompiledProgram() = default;

const Program &CompiledProgram::program() const { return impl_->program; }
const MachineConfig &CompiledProgram::machine() const { return impl_->machine; }
const Plan &CompiledProgram::lastPlan() const { return *impl_->plan; }

const Plan &CompiledProgram::plan(const PlanOptions &options) {
  Plan plan;
  plan.options = options;
  const Program &program = impl_->program;
  placement::PlacementInput input{program, {}, impl_->machine, options.policy, options.pins, options.forbids, {}};
  input.isSimulated = options.simulates;
  // An unknown policy or selector is refused before the time-consuming part.
  placement::checkRequest(input);
  impl_->profileAll(options, plan);
  if (options.policy != "cpu-only" || !options.pins.empty())
    for (uint32_t kernel = 0; kernel < program.kernels.size(); ++kernel) {
      if (options.progress)
        options.progress("compile", kernel, program.kernels.size());
      impl_->compilePim(kernel);
    }
  input.profiles = plan.profiles;
  input.pimFailures = impl_->pimFailures;
  plan.simulated.resize(program.kernels.size());
  if (options.simulates)
    for (uint32_t kernel = 0; kernel < program.kernels.size(); ++kernel) {
      if (options.progress)
        options.progress("simulate", kernel, program.kernels.size());
      plan.simulated[kernel] = impl_->simulate(kernel, options);
    }
  std::vector<std::optional<double>> simulatedNs;
  for (const std::optional<PimTiming> &timing : plan.simulated)
    simulatedNs.push_back(timing ? std::optional(timing->timeNs) : std::nullopt);
  input.simulatedNs = simulatedNs;
  plan.placement = placement::place(input);
  plan.sites = plan.placement.sites();
  plan.remarks = emitPlacementRemarks(*impl_->module, program, plan.placement.decisions);
  plan.crossings = modelCrossings(program, plan.sites, impl_->machine);
  impl_->plan = std::move(plan);
  return *impl_->plan;
}

RunRecord CompiledProgram::execute(const std::vector<void *> &arguments, const std::vector<void *> &outputs,
                                   const ExecuteOptions &options) {
  if (!impl_->plan)
    plan(PlanOptions());
  std::vector<Site> sites = impl_->plan->sites;
  if (!options.simulates)
    std::fill(sites.begin(), sites.end(), Site::Host);
  impl_->requireHost(sites);
  ExecutorInput input{impl_->program, impl_->hostKernels, impl_->pimKernels, sites, arguments, outputs, impl_->machine};
  input.pim = llvm::is_contained(sites, Site::Pim) ? &impl_->pimDevice(options.threads) : nullptr;
  input.threads = options.threads;
  input.poisonPimOutputs = options.poisonsPimOutputs;
  return executeProgram(input);
}

std::string CompiledProgram::nestText() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  impl_->module->print(stream);
  return text;
}

} // namespace nearbank::driver
