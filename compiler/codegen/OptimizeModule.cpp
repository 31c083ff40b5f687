// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/OptimizeModule.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

namespace nearbank::codegen {

void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine, Optimization optimization) {
  llvm::PipelineTuningOptions tuning;
  bool isVectorized = optimization != Optimization::Scalar;
  tuning.LoopVectorization = tuning.SLPVectorization = isVectorized;
  tuning.LoopUnrolling = isVectorized;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  // A trace must show every store, so none may become a library call there either.
  if (optimization != Optimization::Vectorized)
    library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  builder.buildPerModuleDefaultPipeline(isVectorized ? llvm::OptimizationLevel::O3 : llvm::OptimizationLevel::O2)
      .run(module, modules);
}

} // namespace nearbank::codegen
