// SPDX-License-Identifier: Apache-2.0
// Reads the lifted module into the runtime's Program.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "runtime/Program.h"

#include <set>

namespace nearbank::loopnest {

struct ExtractOptions {
  std::string name;
  std::set<uint32_t> parameters;                ///< Argument indices that are model parameters.
  std::vector<std::string> argumentNames;       ///< May be shorter than the argument list.
  std::map<uint32_t, std::string> indexClasses; ///< Data class of index arguments.
};

/// Builds the program of a module that LiftNests has processed; fails with diagnostics on what cannot be represented.
llvm::FailureOr<Program> extractProgram(mlir::ModuleOp module, const ExtractOptions &options);

} // namespace nearbank::loopnest
