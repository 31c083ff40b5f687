// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/upmem/DpuMath.h"

#include "compiler/codegen/MathExpansion.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace nearbank::codegen {

OwningOpRef<ModuleOp> expandMath(func::FuncOp kernel) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  module->push_back(kernel.clone());
  PassManager manager(kernel.getContext());
  manager.addNestedPass<func::FuncOp>(math::createMathExtendToSupportedTypes());
  manager.addNestedPass<func::FuncOp>(createMathExpansionPass(/*expandsRounding=*/true,
                                                              /*usesMaximumIntrinsic=*/false,
                                                              /*avoidsSelects=*/false));
  manager.addPass(createCSEPass());
  if (failed(manager.run(*module)))
    return {};
  return module;
}

} // namespace nearbank::codegen
