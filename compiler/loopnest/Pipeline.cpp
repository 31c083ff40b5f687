// SPDX-License-Identifier: Apache-2.0
// The pass order from linalg on tensors to outlined nests, top to bottom.
#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace nearbank::loopnest {

/// Arguments keep their plain layout and are never written; results may be views of what the program computed.
static bufferization::OneShotBufferizePassOptions bufferizeOptions() {
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion = bufferization::LayoutMapOption::IdentityLayoutMap;
  options.allowReturnAllocsFromLoops = true;
  return options;
}

void buildBufferPipeline(OpPassManager &manager) {
  manager.addPass(createNormalizeInputPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createFuseNestsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createFoldFillsPass());
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  manager.addPass(bufferization::createOneShotBufferizePass(bufferizeOptions()));
  manager.addPass(memref::createFoldMemRefAliasOpsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // Equal views are one value by now, which shows copies of a buffer onto itself.
  manager.addPass(createCanonicalizerPass());
}

void buildNestPipeline(OpPassManager &manager) {
  buildBufferPipeline(manager);
  manager.addPass(createLiftNestsPass());
}

void registerNestPipeline() {
  PassPipelineRegistration<>("nearbank-buffers", "From linalg on tensors to fused nests on buffers",
                             buildBufferPipeline);
  PassPipelineRegistration<>("nearbank-nests", "From linalg on tensors to outlined loop nests", buildNestPipeline);
}

} // namespace nearbank::loopnest
