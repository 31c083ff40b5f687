// SPDX-License-Identifier: Apache-2.0
// Takes outlined nests to LLVM IR for one side. The pass order stands in Lowering.cpp.
#pragma once

#include "compiler/codegen/NestSchedule.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/IR/Module.h"

#include <map>
#include <memory>
#include <set>
#include <string>

namespace nearbank::codegen {

/// Host is the machine that Nearbank runs on, Trace its code with every access reported; the others are simulated.
enum class Target { Host, Trace, Pim, ModelledHost };

/// LLVM IR of some kernels, each with an entry point `entryName(kernel)` of type KernelFunction.
struct LoweredKernels {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::map<std::string, int64_t> tasks;         ///< Length of the task range, by kernel name.
  std::map<std::string, double> reductionTrips; ///< PimKernel::reductionTrips, by kernel name where not 0.
  std::set<std::string> usingBlas;
};

std::string entryName(const std::string &kernel);

/// Lowers the named kernels of a module that LiftNests made; the module itself stays as it is.
/// @param diagnostics receives what MLIR said when the result is empty
/// @param vector of the simulated core
std::unique_ptr<LoweredKernels> lowerKernels(mlir::ModuleOp nests, const std::vector<std::string> &kernels,
                                             Target target, std::string &diagnostics, VectorUnit vector = {});

} // namespace nearbank::codegen
