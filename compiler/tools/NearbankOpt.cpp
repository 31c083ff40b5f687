// SPDX-License-Identifier: Apache-2.0
// mlir-opt with Nearbank's passes: the text form of every compiler stage.
#include "compiler/codegen/Passes.h"
#include "compiler/import/Import.h"
#include "compiler/loopnest/Passes.h"

#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  nearbank::import::registerDialects(registry);
  mlir::registerAllPasses();
  nearbank::loopnest::registerLoopnestPasses();
  nearbank::codegen::registerCodegenPasses();
  nearbank::loopnest::registerNestPipeline();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Nearbank's compiler passes\n", registry));
}
