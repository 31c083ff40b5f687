// SPDX-License-Identifier: Apache-2.0
// One model from MLIR text to decisions and execution: what the Python extension drives.
#pragma once

#include "compiler/driver/PlacementRemarks.h"
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
  std::string policy = "two-stage";
  std::string database; ///< Path of the profile database; empty keeps profiles in memory only.
  int threads = 0;      ///< Host threads; 0 means all.
  std::vector<std::string> pins, forbids;
  bool simulates = false; ///< Simulate each distinct kernel once on scratch data.
  bool samples = false;   ///< Estimate long simulations from windows of their tasks.
  /// Called before each kernel is profiled or simulated: stage, kernels done, kernels in all. Returning false
  /// stops the plan; what was profiled so far stays in the database.
  std::function<bool(const std::string &stage, int64_t done, int64_t all)> progress;
};

/// What planning found, beside the placement itself.
struct Plan {
  PlanOptions options;
  std::vector<profile::NestProfile> profiles; ///< By kernel index; empty key when not profiled.
  placement::PlacementResult placement;
  std::vector<Site> sites; ///< By nest index.
  std::vector<CrossingRecord> crossings;
  std::vector<CollectedRemark> remarks;            ///< One per nest, in program order.
  std::vector<std::optional<PimTiming>> simulated; ///< By kernel index; on scratch data.
  int64_t profiledKernels = 0, reusedKernels = 0;
  std::string databaseMessage;
};

/// Not thread-safe; one object per model and machine.
class CompiledProgram {
public:
  /// @throws UserError NB0210 when the text breaks the input contract or cannot be lowered to nests
  CompiledProgram(const std::string &mlirText, const CompileOptions &options, MachineConfig machine);
  ~CompiledProgram();

  const Program &program() const;
  const MachineConfig &machine() const;

  /// Profiles, places and models crossings. The last plan is used by execute().
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

  /// IR of the lifted nests, for the curious and for tests.
  std::string nestText() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace nearbank::driver
