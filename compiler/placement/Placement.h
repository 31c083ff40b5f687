// SPDX-License-Identifier: Apache-2.0
// Decides for every nest whether it runs on the host or on PIM, and records the numbers that decided.
#pragma once

#include "compiler/profile/NestProfile.h"
#include "runtime/Executor.h"
#include "runtime/Machine.h"
#include "runtime/Program.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nearbank::placement {

enum class Status : uint8_t {
  Placed,       ///< Runs on PIM.
  KeptOnHost,   ///< The policy or the user preferred the host.
  NotCandidate, ///< No parallel loop to spread over cores.
  Failed        ///< Has no PIM code; runs on the host.
};
const char *nameOf(Status status);

/// One input of an equation.
struct EquationInput {
  std::string name;
  double value = 0;
  std::string unit;
  std::string provenance; ///< "MLIR", "host profile", "machine file" or "simulation".
};

/// One equation of docs/model.md with its numbers.
struct EquationRecord {
  std::string id;   ///< "PL-1".
  std::string text; ///< "work >= placement.workOperations".
  std::vector<EquationInput> inputs;
  double value = 0;
  double threshold = 0;
  bool isPassed = false;
  double margin =
      0; ///< Distance from the threshold in the unit of both, positive on the passing side; NaN without threshold.
  double ratio =
      0; ///< Value over threshold, inverted where small values pass: 1 is the border. Not shown where kinds differ.
};

struct NestDecision {
  Site site = Site::Host;
  Status status = Status::KeptOnHost;
  std::string reason;     ///< One sentence with the deciding numbers.
  std::string suggestion; ///< What the user could do; may be empty.
  std::string flip;       ///< What would flip the decision, with numbers.
  std::vector<EquationRecord> equations;
  double predictedPimNs = 0;      ///< PL-3 without launch and return; 0 when the nest has no profile.
  double predictedPimTotalNs = 0; ///< PL-3 with launch and return.
  double predictedHostNs = 0;     ///< PL-9; 0 without profile or modelled host.
};

struct PlacementInput {
  const Program &program;
  std::span<const profile::NestProfile> profiles; ///< By kernel index; an entry with an empty key is no profile.
  const MachineConfig &machine;
  std::string policy = "two-stage";
  std::vector<std::string> pins;    ///< Selectors of nests that go to PIM.
  std::vector<std::string> forbids; ///< Selectors of nests that stay on the host.
  std::vector<std::string>
      pimFailures;          ///< By kernel index: why it has no PIM code; empty text or empty vector when it has.
  bool isSimulated = false; ///< Whether place() gets simulated times; checkRequest() does without them.
  std::span<const std::optional<double>> simulatedNs =
      {}; ///< Simulated PIM time by kernel index, none where there is no PIM code. Only `oracle` reads it.
  const MachineConfig *host = nullptr; ///< Modelled host; null when the measured times of this host count.
  std::span<const std::optional<double>> hostSimulatedNs =
      {}; ///< Simulated time on the modelled host by kernel index. Only `oracle` reads it.
  /// Machines with DPUs: what each launch of a nest pays besides its kernel (CX-5), by nest index.
  std::span<const double> transferNs = {};
  std::span<const std::shared_ptr<const DpuKernel>> dpuKernels = {}; ///< Of the same machines, by kernel index.
};

struct PlacementResult {
  std::string policy;
  std::vector<NestDecision> decisions; ///< By nest index.
  std::vector<Site> sites() const;
};

/// Names of the policies, in the order of the documentation.
std::vector<std::string> policyNames();

/// Whether a policy reads profiles; a caller may skip profiling for one that does not.
bool needsProfiles(const std::string &policy);

/// Whether a policy decides on simulated PIM times.
bool needsSimulation(const std::string &policy);

/// Checks policy and selectors without deciding; needs no profiles. Lets a caller refuse a request before it profiles.
/// @throws as place()
void checkRequest(const PlacementInput &input);

/// Places every nest.
/// Selectors name a nest id ("n12"), a kernel, a source ("model.py:41") or a module path and what is below it.
/// @throws UserError NB0404 unknown policy, NB0405 selector that matches nothing, NB0406 nest pinned and forbidden,
///   NB0409 `oracle` without simulated times
PlacementResult place(const PlacementInput &input);

} // namespace nearbank::placement
