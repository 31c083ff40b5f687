// SPDX-License-Identifier: Apache-2.0
// The extension module nearbank._core: compiled programs, machines and versions, with JSON as the exchange form.
#include "compiler/driver/CompiledProgram.h"
#include "compiler/driver/Documents.h"
#include "python/RaisedErrors.h"
#include "runtime/Residency.h"
#include "sim/dpu/DpuMachine.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

namespace nb = nanobind;
using Json = nlohmann::json;
using namespace nearbank;

namespace {

/// Folder of the built-in machine files: `machines` beside this module, unless the caller names another.
std::string machineFolder() {
  return nb::cast<std::string>(nb::module_::import_("nearbank.machine_files").attr("folder")());
}

/// Folder of the commands for DPU programs. @throws DeviceError NB0809 when they are not built
std::string upmemFolder() {
  return nb::cast<std::string>(nb::str(nb::module_::import_("nearbank.upmem_home").attr("folder")()));
}

std::vector<std::pair<std::string, std::string>> overridesOf(const Json &sets) {
  std::vector<std::pair<std::string, std::string>> overrides;
  for (const Json &pair : sets)
    overrides.emplace_back(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
  return overrides;
}

/// A machine that can be simulated.
/// @throws UserError NB0114 when it cannot be, and as loadMachine()
MachineConfig simulatedMachine(const std::string &name, const Json &sets) {
  MachineConfig machine = dpu::loadAnyMachine(name, machineFolder(), overridesOf(sets));
  if (machine.dpus)
    dpu::chooseEngine(machine, upmemFolder());
  if (!driver::canSimulate(machine))
    throw UserError({"NB0114", "machine cannot be simulated", machine.file,
                     "a machine whose cores execute kernels, with a vector unit only where the simulator has one",
                     "kind " + machine.kind + ", core.vectorBits " + std::to_string(machine.core.vectorBits),
                     "name another machine; nearbank machines lists them"});
  return machine;
}

/// A machine that may stand for the host.
/// @throws UserError NB0115 when it may not, and as simulatedMachine()
MachineConfig modelledHost(const std::string &name) {
  MachineConfig machine = simulatedMachine(name, Json::array());
  if (machine.kind != "host")
    throw UserError({"NB0115", "machine is no host", "--host " + name, "native, or a machine of kind host",
                     "kind " + machine.kind, "name host-16, or a machine file of that kind"});
  return machine;
}

/// The machine that options name, with the values that they change.
MachineConfig machineOf(const Json &options) {
  return simulatedMachine(options.value("machine", "nmc-64"), options.value("set", Json::array()));
}

driver::Simulation simulationOf(const std::string &word) {
  return word == "exact"     ? driver::Simulation::Exact
         : word == "sampled" ? driver::Simulation::Sampled
                             : driver::Simulation::None;
}

/// Simulates one task that prepare() gave; needs no program, so that any process can do it.
std::string simulate(nb::bytes task, const std::string &optionsText) {
  Json options = Json::parse(optionsText);
  MachineConfig machine = machineOf(options);
  driver::SimulationTask parsed = driver::SimulationTask::parse(std::string(task.c_str(), task.size()));
  if (driver::simulatedMachineHash(machine) != parsed.key().machine)
    throw UserError({"NB0113", "machine file changed while it was in use", machine.file,
                     "the values that the plan began with", "other values", "run the same command again"});
  nb::gil_scoped_release release;
  return driver::timingText(parsed.simulate(machine, options.value("threads", 1)));
}

/// A compiled program as Python sees it; every call releases the interpreter lock while it works.
class PyProgram {
public:
  PyProgram(const std::string &mlirText, const std::string &optionsText) {
    Json options = Json::parse(optionsText);
    driver::CompileOptions compile;
    compile.name = options.value("name", "program");
    for (uint32_t index : options.value("parameters", std::vector<uint32_t>()))
      compile.parameters.insert(index);
    compile.argumentNames = options.value("argNames", std::vector<std::string>());
    for (const auto &[index, name] : options.value("indexClasses", Json::object()).items())
      compile.indexClasses[std::stoul(index)] = name.get<std::string>();
    nb::gil_scoped_release release;
    compiled_ = std::make_unique<driver::CompiledProgram>(mlirText, compile);
  }

  std::string describe() const { return driver::describeJson(compiled_->program()); }
  std::string nestText() const { return compiled_->nestText(); }

  /// Profiles and compiles for a plan with these options.
  /// @return one tuple (key, task, isOnHost, instructions) for each simulation that is neither in memory nor in the
  /// database: key
  ///   and task for simulate() and add_simulation(), whether it is on the modelled host, and roughly how many
  ///   instructions will be executed
  std::vector<std::tuple<nb::bytes, nb::bytes, bool, double>> prepare(const std::string &optionsText,
                                                                      nb::object progress) {
    driver::PlanOptions options = planOptions(optionsText, progress);
    std::vector<driver::PendingSimulation> pending;
    {
      nb::gil_scoped_release release;
      pending = compiled_->prepare(options);
    }
    std::vector<std::tuple<nb::bytes, nb::bytes, bool, double>> result;
    for (const driver::PendingSimulation &simulation : pending) {
      const profile::SimulationKey &key = simulation.task.key();
      std::string name;
      for (const std::string *part : {&key.code, &key.operands, &key.machine, &key.sampling, &key.simulator})
        name.append(*part).push_back('/');
      std::string task = simulation.task.serialize();
      result.emplace_back(nb::bytes(name.data(), name.size()), nb::bytes(task.data(), task.size()), simulation.isOnHost,
                          simulation.instructions);
    }
    return result;
  }

  /// Takes what simulate() returned for a task.
  void addSimulation(nb::bytes task, const std::string &timing, const std::string &database) {
    driver::SimulationTask parsed = driver::SimulationTask::parse(std::string(task.c_str(), task.size()));
    nb::gil_scoped_release release;
    compiled_->addSimulation(parsed, driver::parseTiming(timing), database);
  }

  /// @param progress called as progress(stage, done, all); a false result or an exception stops the plan
  std::string plan(const std::string &optionsText, nb::object progress) {
    driver::PlanOptions options = planOptions(optionsText, progress);
    nb::gil_scoped_release release;
    return driver::planJson(*compiled_, compiled_->plan(options));
  }

  std::string execute(const std::vector<uintptr_t> &arguments, const std::vector<uintptr_t> &outputs,
                      const std::string &optionsText) {
    Json options = Json::parse(optionsText);
    nb::gil_scoped_release release;
    driver::CompiledProgram::ExecuteOptions execute;
    execute.threads = options.value("threads", 0);
    execute.simulates = options.value("simulate", "exact") == "exact";
    execute.poisonsPimOutputs = options.value("poison", false);
    RunRecord record = compiled_->execute(pointers(arguments), pointers(outputs), execute);
    return driver::runJson(compiled_->program(), record, compiled_->lastPlan().options.machine);
  }

  /// Writes what the last plan placed on DPUs as UPMEM projects; returns their names.
  std::vector<std::string> emitUpmem(const std::string &folder, const std::string &prefix) const {
    return compiled_->emitUpmem(folder, prefix);
  }

private:
  static driver::PlanOptions planOptions(const std::string &text, const nb::object &progress) {
    Json options = Json::parse(text);
    driver::PlanOptions plan;
    plan.machine = machineOf(options);
    if (plan.machine.kind == "host")
      throw UserError({"NB0114", "machine cannot be simulated", plan.machine.file,
                       "a PIM machine; a host stands on the other side", "kind host", "name it with --host"});
    if (plan.machine.dpus)
      plan.upmemHome = upmemFolder();
    plan.policy = options.value("policy", "two-stage");
    plan.database = options.value("db", "");
    plan.threads = options.value("threads", 0);
    plan.pins = options.value("pin", std::vector<std::string>());
    plan.forbids = options.value("forbid", std::vector<std::string>());
    plan.simulation = simulationOf(options.value("simulate", "none"));
    plan.hostSimulation = simulationOf(options.value("simulateHost", "none"));
    if (std::string host = options.value("host", ""); !host.empty()) {
      plan.host = modelledHost(host);
      if (!plan.machine.dpus) // CX-5 prices what DPUs get and give.
        plan.machine.coherence = coherenceBeside(plan.machine.coherence, *plan.host);
    }
    if (!progress.is_none())
      // A pointer, because the function is copied without the interpreter lock.
      plan.progress = [progress = &progress](const std::string &stage, int64_t done, int64_t all) {
        nb::gil_scoped_acquire acquire;
        nb::object answer = (*progress)(stage, done, all);
        return answer.is_none() || nb::cast<bool>(answer);
      };
    return plan;
  }

  static std::vector<void *> pointers(const std::vector<uintptr_t> &addresses) {
    std::vector<void *> result;
    for (uintptr_t address : addresses)
      result.push_back(reinterpret_cast<void *>(address));
    return result;
  }

  std::unique_ptr<driver::CompiledProgram> compiled_;
};

std::string showMachine(const std::string &name, const std::string &sets) {
  MachineConfig machine =
      dpu::loadAnyMachine(name, machineFolder(), overridesOf(sets.empty() ? Json::array() : Json::parse(sets)));
  Json values = Json::array();
  for (const MachineValue &value : machine.values)
    values.push_back({{"path", value.path},
                      {"value", value.value},
                      {"unit", value.unit},
                      {"source", value.source},
                      {"layer", value.layer}});
  return Json{{"name", machine.name}, {"kind", machine.kind}, {"file", machine.file}, {"values", values}}.dump();
}

std::string versionInfo() { return Json{{"nearbank", "0.1.0"}, {"llvm", driver::llvmVersion()}}.dump(); }

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "Compiler, placement and simulation of Nearbank.";
  // torch.compile keeps compiled programs in caches that live until the interpreter is gone.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(raiseError);
  nb::class_<PyProgram>(m, "Program")
      .def(nb::init<const std::string &, const std::string &>(), nb::arg("mlir_text"), nb::arg("options"))
      .def("describe", &PyProgram::describe)
      .def("nest_text", &PyProgram::nestText)
      .def("prepare", &PyProgram::prepare, nb::arg("options"), nb::arg("progress") = nb::none())
      .def("add_simulation", &PyProgram::addSimulation, nb::arg("task"), nb::arg("timing"), nb::arg("db"))
      .def("plan", &PyProgram::plan, nb::arg("options"), nb::arg("progress") = nb::none())
      .def("emit_upmem", &PyProgram::emitUpmem, nb::arg("folder"), nb::arg("prefix") = "")
      .def("execute", &PyProgram::execute, nb::arg("arguments"), nb::arg("outputs"), nb::arg("options"));
  m.def("simulate", &simulate, nb::arg("task"), nb::arg("options"));
  m.def("list_machines", [] { return listMachines(machineFolder()); });
  m.def("show_machine", &showMachine, nb::arg("name"), nb::arg("sets") = "");
  m.def(
      "can_simulate",
      [](const std::string &name) { return driver::canSimulate(dpu::loadAnyMachine(name, machineFolder())); },
      nb::arg("machine"));
  m.def("version_info", &versionInfo);
}
