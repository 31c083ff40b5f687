// SPDX-License-Identifier: Apache-2.0
// One model from MLIR text to decisions and execution: what the Python extension drives.
#pragma once

#include "compiler/driver/DpuTransfers.h"
#include "compiler/driver/PlacementRemarks.h"
#include "compiler/driver/SimulationTask.h"
#include "compiler/placement/Placement.h"
#include "compiler/profile/NestProfile.h"
#include "runtime/Executor.h"
#include "runtime/Machine.h"
#include "runtime/Program.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nearbank::driver {

struct CompileOptions {
  std::string name = "program";
  std::set<uint32_t> parameters;                ///< Argument indices that are model parameters.
  std::vector<std::string> argumentNames;       ///< May be shorter than the argument list.
  std::map<uint32_t, std::string> indexClasses; ///< Data class of index arguments.
};

struct PlanOptions {
  MachineConfig machine;
  std::optional<MachineConfig> host; ///< Modelled host; none when only the native host counts.
  std::string policy = "two-stage";
  std::string upmemHome; ///< Folder of the compiler driver for DPUs; for machines that have them.
  std::string database;  ///< Path of the profile database; empty keeps profiles in memory only.
  int threads = 0;       ///< Host threads; 0 means all.
  std::vector<std::string> pins, forbids;
  Simulation simulation = Simulation::None;     ///< How each distinct kernel is timed on the machine, on scratch data.
  Simulation hostSimulation = Simulation::None; ///< The same on the modelled host.
  /// Called before each kernel is profiled or simulated: stage, kernels done, kernels in all. Returning false
  /// stops the plan; what was profiled and simulated so far stays in the database.
  std::function<bool(const std::string &stage, int64_t done, int64_t all)> progress;
};

/// A simulation that a plan needs and nobody has done yet.
struct PendingSimulation {
  SimulationTask task;
  bool isOnHost = false;   ///< On the modelled host, not on the machine.
  double instructions = 0; ///< That the simulator will execute, predicted; for the time that is left.
};

/// What planning found, beside the placement itself.
struct Plan {
  PlanOptions options;
  std::vector<profile::NestProfile> profiles; ///< By kernel index; empty key when not profiled.
  placement::PlacementResult placement;
  std::vector<Site> sites; ///< By nest index.
  std::vector<CrossingRecord> crossings;
  std::vector<std::shared_ptr<const DpuKernel>> dpuKernels; ///< By kernel index; of machines with DPUs.
  std::optional<DpuTransfers> transfers;                    ///< Of machines with DPUs.
  std::vector<CollectedRemark> remarks;                     ///< One per nest, in program order.
  std::vector<std::optional<PimTiming>> simulated;          ///< By kernel index; on scratch data.
  std::vector<std::optional<PimTiming>> simulatedHost;      ///< The same on the modelled host.
  int64_t profiledKernels = 0; ///< Measured by this object; the others' profiles came from the database.
  int64_t reusedKernels = 0;
  int64_t simulatedKernels = 0; ///< Simulated for this object; the others' times came from the database.
  int64_t reusedSimulations = 0;
  std::string databaseMessage;
};

/// Not thread-safe; one object per model. Plans for other machines and policies reuse its code, profiles and simulated
/// times.
class CompiledProgram {
public:
  /// @throws UserError NB0210 when the text breaks the input contract or cannot be lowered to nests
  CompiledProgram(const std::string &mlirText, const CompileOptions &options);
  ~CompiledProgram();

  const Program &program() const;

  /// Profiles and compiles what plan() with the same options will need.
  /// @return the simulations that it will need and that neither this object nor the database has, each once
  std::vector<PendingSimulation> prepare(const PlanOptions &options);
  /// Takes the result of a pending simulation, for this object and its database.
  void addSimulation(const SimulationTask &task, const PimTiming &timing, const std::string &database);

  /// Profiles, simulates what is still pending, places and models crossings. The last plan is used by execute().
  const Plan &plan(const PlanOptions &options);
  const Plan &lastPlan() const;

  /// Runs the program once as last planned. Without simulation, nests placed on PIM run as host code and the record
  /// says so: their times are then no PIM times.
  struct ExecuteOptions {
    int threads = 0;                ///< Host threads; 0 means all.
    bool simulates = true;          ///< Execute PIM nests on the simulator.
    bool poisonsPimOutputs = false; ///< Tests: overwrite what PIM nests write before they run.
  };
  RunRecord execute(const std::vector<void *> &arguments, const std::vector<void *> &outputs,
                    const ExecuteOptions &options);

  /// Writes each distinct nest that the last plan placed on DPUs as a UPMEM project of its own: dpu.c, host.c,
  /// Makefile.
  /// @param prefix of the names of the folders in `folder`
  /// @return names of the folders; none for machines without DPUs
  /// @throws DeviceError NB0601 when they cannot be written
  std::vector<std::string> emitUpmem(const std::string &folder, const std::string &prefix) const;

  /// IR of the lifted nests, for the curious and for tests.
  std::string nestText() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace nearbank::driver
