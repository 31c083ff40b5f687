// SPDX-License-Identifier: Apache-2.0
// Emits one MLIR remark per nest for its placement decision and collects what the engine reports.
#pragma once

#include "compiler/placement/Placement.h"
#include "runtime/Program.h"

#include <string>
#include <utility>
#include <vector>

namespace mlir {
class ModuleOp;
}

namespace nearbank::driver {

/// A remark as the engine delivered it.
struct CollectedRemark {
  std::string kind;     ///< "Passed", "Missed", "Analysis" or "Failure".
  std::string status;   ///< "Placed", "KeptOnHost", "NotCandidate" or "Failed".
  std::string nest;     ///< "n12".
  std::string location; ///< As MLIR prints it.
  std::string text;     ///< The whole remark on one line.
  std::vector<std::pair<std::string, std::string>> arguments;
};

/// Emits remarks of category "nearbank-placement" at the locations of the nests of `module`.
std::vector<CollectedRemark> emitPlacementRemarks(mlir::ModuleOp module, const Program &program,
                                                  const std::vector<placement::NestDecision> &decisions);

} // namespace nearbank::driver
