// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/CompiledProgram.h"

#include "compiler/driver/DpuCode.h"
#include "compiler/driver/KernelCode.h"
#include "compiler/import/Import.h"
#include "compiler/loopnest/ExtractProgram.h"
#include "compiler/loopnest/Passes.h"
#include "compiler/placement/PimTimeModel.h"
#include "compiler/profile/HostProfiler.h"
#include "compiler/profile/ProfileDatabase.h"
#include "runtime/Error.h"
#include "sim/dpu/DpuDevice.h"
#include "sim/system/CallSampler.h"
#include "sim/system/SimulatedDevice.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace nearbank::driver {

/// Version of the generated code; profiles of another one are stale.
static constexpr int64_t codegenVersion = 1;

using Database = std::optional<profile::ProfileDatabase>;

struct CompiledProgram::Impl {
  mlir::DialectRegistry registry;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Program program;
  std::unique_ptr<KernelCode> code;
  std::map<std::string, profile::NestProfile> profiles; ///< By what they depend on.
  std::map<profile::SimulationKey, PimTiming> simulations;
  std::set<std::string> measured;             ///< Keys of profiles that this object measured.
  std::set<profile::SimulationKey> simulated; ///< Keys of simulations done for this object.
  Database database;                          ///< The one used last; open as long as the object lives.
  std::optional<Plan> plan;

  Impl(const std::string &text, const CompileOptions &options);
  /// No database when the path is empty.
  Database &openDatabase(const std::string &path);
  void report(const PlanOptions &options, const char *stage, int64_t done) const;
  profile::NestProfile profileKernel(uint32_t kernel, const PlanOptions &options, Database &database, Plan &plan);
  void profileAll(const PlanOptions &options, Database &database, Plan &plan);
  const SimulatedCode &codeFor(const MachineConfig &target, const PlanOptions &options);
  std::vector<std::optional<SimulationTask>> tasksOn(const MachineConfig &target, Simulation simulation,
                                                     const PlanOptions &options);
  std::optional<PimTiming> knownTiming(const profile::SimulationKey &key, Database &database);
  std::vector<std::optional<PimTiming>> simulateAll(const MachineConfig &target, Simulation simulation,
                                                    const PlanOptions &options, Database &database, Plan &plan);
  uint32_t firstNestOf(uint32_t kernel) const;
};

[[noreturn]] static void failLowering(const std::string &name, const std::string &diagnostics) {
  throw UserError({"NB0210", "the model cannot be lowered to loop nests", name,
                   "linalg on tensors of static shape in dialects that Nearbank knows", diagnostics,
                   "run this part in PyTorch (--on-unsupported=host does so by itself)"});
}

CompiledProgram::Impl::Impl(const std::string &text, const CompileOptions &options) {
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
  code = std::make_unique<KernelCode>(*module, program);
}

Database &CompiledProgram::Impl::openDatabase(const std::string &path) {
  if (database && database->path() != path)
    database.reset();
  if (!database && !path.empty())
    database.emplace(path);
  return database;
}

/// @throws UserError NB0408 when the caller wants to stop
void CompiledProgram::Impl::report(const PlanOptions &options, const char *stage, int64_t done) const {
  if (options.progress && !options.progress(stage, done, program.kernels.size()))
    throw UserError({"NB0408", "planning was interrupted", program.name, "", "", "run the same command to continue"});
}

uint32_t CompiledProgram::Impl::firstNestOf(uint32_t kernel) const {
  for (uint32_t nest = 0; nest < program.nests.size(); ++nest)
    if (program.nests[nest].kernel == kernel)
      return nest;
  return 0;
}

profile::NestProfile CompiledProgram::Impl::profileKernel(uint32_t kernel, const PlanOptions &options,
                                                          Database &database, Plan &plan) {
  profile::ProfileOptions profiling;
  profiling.threads = options.threads;
  profiling.codegenVersion = codegenVersion;
  profiling.indexBounds = program.kernels[kernel].facts.indexBounds;
  uint32_t nest = firstNestOf(kernel);
  // A modelled host is judged by its own caches.
  const HostConfig &host = options.host ? options.host->host : options.machine.host;
  profile::ProfileKey key;
  key.nest = program.kernels[kernel].key;
  key.host = profile::hostFingerprint();
  key.indexClass = profile::indexClassOf(program, nest, profiling);
  key.cacheConfig = profile::cacheConfigHash(host);
  key.threads = options.threads > 0 ? options.threads : static_cast<int64_t>(std::thread::hardware_concurrency());
  key.codegenVersion = codegenVersion;
  std::string memoryKey = fmt::format("{}/{}/{}/{}", key.nest, key.indexClass, key.cacheConfig, key.threads);
  auto known = profiles.find(memoryKey);
  if (known == profiles.end() && database)
    if (std::optional<profile::NestProfile> stored = database->find(key))
      known = profiles.emplace(memoryKey, *stored).first;
  if (known == profiles.end()) {
    report(options, "profile", kernel);
    code->requireNative({kernel}, /*isTrace=*/false);
    code->requireNative({kernel}, /*isTrace=*/true);
    profile::NestProfile profile = profile::profileNest(program, nest, code->native()[kernel], host, profiling);
    if (database)
      database->store(key, profile);
    measured.insert(memoryKey);
    known = profiles.emplace(memoryKey, profile).first;
  }
  (measured.count(memoryKey) ? plan.profiledKernels : plan.reusedKernels) += 1;
  return known->second;
}

void CompiledProgram::Impl::profileAll(const PlanOptions &options, Database &database, Plan &plan) {
  for (uint32_t kernel = 0; kernel < program.kernels.size(); ++kernel) {
    plan.profiles.push_back(profileKernel(kernel, options, database, plan));
  }
}

const SimulatedCode &CompiledProgram::Impl::codeFor(const MachineConfig &target, const PlanOptions &options) {
  return code->simulated(target, [&](int64_t done) { report(options, "compile", done); }, options.upmemHome);
}

std::optional<PimTiming> CompiledProgram::Impl::knownTiming(const profile::SimulationKey &key, Database &database) {
  if (auto known = simulations.find(key); known != simulations.end())
    return known->second;
  if (!database)
    return std::nullopt;
  std::optional<std::string> stored = database->findSimulation(key);
  if (!stored)
    return std::nullopt;
  return simulations[key] = parseTiming(*stored);
}

/// Simulations of all kernels that have code for `target`, by kernel index.
std::vector<std::optional<SimulationTask>>
CompiledProgram::Impl::tasksOn(const MachineConfig &target, Simulation simulation, const PlanOptions &options) {
  std::vector<std::optional<SimulationTask>> tasks(program.kernels.size());
  if (simulation == Simulation::None)
    return tasks;
  const SimulatedCode &compiled = codeFor(target, options);
  for (uint32_t kernel = 0; kernel < program.kernels.size(); ++kernel)
    if (!compiled.kernels[kernel].elf.empty())
      tasks[kernel].emplace(program, firstNestOf(kernel), compiled.kernels[kernel], target, simulation);
  return tasks;
}

std::vector<std::optional<PimTiming>> CompiledProgram::Impl::simulateAll(const MachineConfig &target,
                                                                         Simulation simulation,
                                                                         const PlanOptions &options, Database &database,
                                                                         Plan &plan) {
  std::vector<std::optional<PimTiming>> timings(program.kernels.size());
  std::vector<std::optional<SimulationTask>> tasks = tasksOn(target, simulation, options);
  for (uint32_t kernel = 0; kernel < program.kernels.size(); ++kernel) {
    if (!tasks[kernel])
      continue;
    const SimulationTask &task = *tasks[kernel];
    timings[kernel] = knownTiming(task.key(), database);
    if (!timings[kernel]) {
      report(options, "simulate", kernel);
      timings[kernel] = task.simulate(target, options.threads);
      simulations[task.key()] = *timings[kernel];
      simulated.insert(task.key());
      if (database)
        database->storeSimulation(task.key(), timingText(*timings[kernel]));
    }
    (simulated.count(task.key()) ? plan.simulatedKernels : plan.reusedSimulations) += 1;
  }
  return timings;
}

CompiledProgram::CompiledProgram(const std::string &mlirText, const CompileOptions &options)
    : impl_(std::make_unique<Impl>(mlirText, options)) {}

CompiledProgram::~CompiledProgram() = default;

const Program &CompiledProgram::program() const { return impl_->program; }
const Plan &CompiledProgram::lastPlan() const { return *impl_->plan; }

/// An unknown policy or selector is refused before the time-consuming part.
static placement::PlacementInput checkedInput(const Program &program, const PlanOptions &options) {
  placement::PlacementInput input{program, {}, options.machine, options.policy, options.pins, options.forbids, {}};
  input.isSimulated = options.simulation != Simulation::None;
  placement::checkRequest(input);
  return input;
}

/// Instructions that a simulation of this kernel executes, roughly: the issue cycles of PL-3.1, or what sampling takes
/// of them where the tasks of a core are many enough for its windows. Of DPUs, the slots that an estimate takes of
/// PL-10.
static double expectedInstructions(const NestFacts &facts, const profile::NestProfile &profile,
                                   const SimulationTask &task, const PlanOptions &options, const MachineConfig &target,
                                   Simulation simulation) {
  if (const DpuKernel *kernel = task.dpuKernel()) {
    double slots = static_cast<double>(kernel->items) * kernel->slotsPerItem;
    return std::min(slots, dpu::DpuDevice::wholeCycles) *
           static_cast<double>(std::min(kernel->dpus(), dpu::DpuDevice::estimatedDpus));
  }
  int64_t tasks = task.tasks();
  const MachineConfig &cores = options.machine.dpus ? target : options.machine;
  double whole = placement::predictPimTime(facts, profile, cores).issueCycles;
  if (simulation == Simulation::Exact || tasks < 1)
    return whole;
  sim::SamplingOptions sampling;
  if (target.kind != "host")
    return sim::expectedSample(whole, sampling);
  double busyCores = double(std::min(tasks, target.core.count));
  double length = std::max(1.0, std::ceil(double(sampling.windowInstructions) / (whole / double(tasks))));
  // Per window a warm-up of two lengths, and again with a measured length; the start of the block, and the pilot.
  double executed = (5.0 * double(sampling.windows) + 3) * length;
  bool isWhole = double(tasks) / busyCores < executed * sampling.leastGain;
  return isWhole ? whole : executed * busyCores * whole / double(tasks);
}

std::vector<PendingSimulation> CompiledProgram::prepare(const PlanOptions &options) {
  const Program &program = impl_->program;
  checkedInput(program, options);
  Database &database = impl_->openDatabase(options.database);
  Plan plan;
  impl_->profileAll(options, database, plan);
  std::vector<PendingSimulation> pending;
  auto add = [&](const MachineConfig &target, Simulation simulation, bool isOnHost) {
    std::vector<std::optional<SimulationTask>> tasks = impl_->tasksOn(target, simulation, options);
    for (uint32_t kernel = 0; kernel < program.kernels.size(); ++kernel) {
      if (!tasks[kernel] || impl_->knownTiming(tasks[kernel]->key(), database))
        continue;
      double instructions = expectedInstructions(program.kernels[kernel].facts, plan.profiles[kernel], *tasks[kernel],
                                                 options, target, simulation);
      pending.push_back({std::move(*tasks[kernel]), isOnHost, instructions});
    }
  };
  add(options.machine, options.simulation, false);
  if (options.host)
    add(*options.host, options.hostSimulation, true);
  return pending;
}

void CompiledProgram::addSimulation(const SimulationTask &task, const PimTiming &timing, const std::string &database) {
  impl_->simulations[task.key()] = timing;
  impl_->simulated.insert(task.key());
  if (Database &open = impl_->openDatabase(database))
    open->storeSimulation(task.key(), timingText(timing));
}

static std::vector<std::optional<double>> timesOf(const std::vector<std::optional<PimTiming>> &timings) {
  std::vector<std::optional<double>> times;
  for (const std::optional<PimTiming> &timing : timings)
    times.push_back(timing ? std::optional(timing->timeNs) : std::nullopt);
  return times;
}

const Plan &CompiledProgram::plan(const PlanOptions &options) {
  Plan plan;
  plan.options = options;
  plan.options.progress = nullptr;
  const Program &program = impl_->program;
  placement::PlacementInput input = checkedInput(program, options);
  Database &database = impl_->openDatabase(options.database);
  if (database)
    plan.databaseMessage = database->message();
  impl_->profileAll(options, database, plan);
  input.profiles = plan.profiles;
  std::vector<double> transferNs;
  if (options.policy != "cpu-only" || !options.pins.empty()) {
    const SimulatedCode &code = impl_->codeFor(options.machine, options);
    input.pimFailures = code.failures;
    if (options.machine.dpus) {
      for (const PimKernel &kernel : code.kernels)
        plan.dpuKernels.push_back(kernel.dpu);
      plan.transfers = transfersOfProgram(program, code.kernels, options.machine);
      for (size_t nest = 0; nest < program.nests.size(); ++nest)
        transferNs.push_back(plan.transfers->launchNs(nest));
      input.transferNs = transferNs;
      input.dpuKernels = plan.dpuKernels;
    }
  }
  plan.simulated = impl_->simulateAll(options.machine, options.simulation, options, database, plan);
  plan.simulatedHost.resize(program.kernels.size());
  if (options.host)
    plan.simulatedHost = impl_->simulateAll(*options.host, options.hostSimulation, options, database, plan);
  std::vector<std::optional<double>> simulatedNs = timesOf(plan.simulated), hostSimulatedNs;
  input.simulatedNs = simulatedNs;
  if (options.host) {
    hostSimulatedNs = timesOf(plan.simulatedHost);
    input.host = &*options.host;
    input.hostSimulatedNs = hostSimulatedNs;
  }
  plan.placement = placement::place(input);
  plan.sites = plan.placement.sites();
  plan.remarks = emitPlacementRemarks(*impl_->module, program, plan.placement.decisions);
  plan.crossings =
      modelCrossings(program, plan.sites, options.machine, plan.transfers ? &plan.transfers->perNest : nullptr);
  impl_->plan = std::move(plan);
  return *impl_->plan;
}

RunRecord CompiledProgram::execute(const std::vector<void *> &arguments, const std::vector<void *> &outputs,
                                   const ExecuteOptions &options) {
  if (!impl_->plan)
    throw InternalError({"NB0902", "the placed program is inconsistent", impl_->program.name, "a plan", "none",
                         "report this with the command that shows it"});
  const Plan &plan = *impl_->plan;
  std::vector<Site> sites = plan.sites;
  if (!options.simulates)
    std::fill(sites.begin(), sites.end(), Site::Host);
  std::set<uint32_t> kernels;
  for (size_t nest = 0; nest < sites.size(); ++nest)
    if (sites[nest] == Site::Host)
      kernels.insert(impl_->program.nests[nest].kernel);
  impl_->code->requireNative({kernels.begin(), kernels.end()}, /*isTrace=*/false);
  std::unique_ptr<PimDevice> device;
  std::vector<PimKernel> none(impl_->program.kernels.size());
  std::span<const PimKernel> simulated = none;
  if (std::find(sites.begin(), sites.end(), Site::Pim) != sites.end()) {
    const MachineConfig &machine = plan.options.machine;
    if (machine.dpus)
      device = std::make_unique<dpu::DpuDevice>(machine, options.threads);
    else
      device = std::make_unique<sim::NmcDevice>(machine, options.threads);
    simulated = impl_->code->simulated(plan.options.machine, nullptr).kernels;
  }
  ExecutorInput input{impl_->program, impl_->code->native(), simulated, sites, arguments,
                      outputs,        plan.options.machine};
  input.pim = device.get();
  input.transfers = plan.transfers ? &plan.transfers->perNest : nullptr;
  input.threads = options.threads;
  input.poisonPimOutputs = options.poisonsPimOutputs;
  return executeProgram(input);
}

std::vector<std::string> CompiledProgram::emitUpmem(const std::string &folder, const std::string &prefix) const {
  const Plan &plan = *impl_->plan;
  std::set<uint32_t> kernels;
  for (size_t nest = 0; nest < plan.sites.size(); ++nest)
    if (uint32_t kernel = impl_->program.nests[nest].kernel;
        plan.sites[nest] == Site::Pim && kernel < plan.dpuKernels.size() && plan.dpuKernels[kernel])
      kernels.insert(kernel);
  std::vector<std::string> names;
  for (uint32_t kernel : kernels) {
    names.push_back(prefix + impl_->program.kernels[kernel].name);
    writeUpmemProject(folder + "/" + names.back(), *plan.dpuKernels[kernel], impl_->program.kernels[kernel]);
  }
  return names;
}

std::string CompiledProgram::nestText() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  impl_->module->print(stream);
  return text;
}

} // namespace nearbank::driver
