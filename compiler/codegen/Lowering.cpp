// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/Lowering.h"
#include "compiler/codegen/MathExpansion.h"
#include "compiler/codegen/Passes.h"
#include "compiler/loopnest/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/IRBuilder.h"

using namespace mlir;

namespace nearbank::codegen {

std::string entryName(const std::string &kernel) { return "nearbank_entry_" + kernel; }

static bool isSimulated(Target target) { return target == Target::Pim || target == Target::ModelledHost; }

/// True when bf16 must be spelled out in integers: LLVM's RISC-V backend cannot select a sign copied from a bf16
/// value, which rounding functions contain, and x86 has no conversions at all.
static bool expandsBfloat(ModuleOp module, Target target) {
  WalkResult walk = module.walk([](Operation *op) {
    bool copiesSign =
        isa<math::RoundOp, math::RoundEvenOp, math::CeilOp, math::FloorOp, math::TruncOp, math::CopySignOp>(op);
    return copiesSign ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !isSimulated(target) || walk.wasInterrupted();
}

static const char *nameOf(Target target) {
  switch (target) {
  case Target::Host:
    return "host";
  case Target::Trace:
    return "trace";
  case Target::Pim:
    return "pim";
  case Target::ModelledHost:
    return "modelled-host";
  }
  return "";
}

/// The passes from outlined nests to the LLVM dialect, in order.
static void buildLowering(OpPassManager &manager, Target target, VectorUnit vector, bool expandsBfloat) {
  LowerNestsPassOptions nests;
  nests.target = nameOf(target);
  nests.vectorBits = vector.bits;
  manager.addPass(createLowerNestsPass(nests));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // Half precision is computed in f32 on every side.
  manager.addNestedPass<func::FuncOp>(math::createMathExtendToSupportedTypes());
  arith::ArithEmulateUnsupportedFloatsOptions halves;
  halves.sourceTypeStrs = {"bf16", "f16"};
  manager.addNestedPass<func::FuncOp>(arith::createArithEmulateUnsupportedFloats(halves));
  manager.addNestedPass<func::FuncOp>(
      createMathExpansionPass(isSimulated(target), target == Target::Host || vector.bits > 0, /*avoidsSelects=*/true));
  manager.addPass(createLowerAffinePass());
  manager.addPass(createSCFToControlFlowPass());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = expandsBfloat;
  manager.addPass(arith::createArithExpandOpsPass(expand));
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createConvertIndexToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  manager.addPass(createConvertFuncToLLVMPass(functions));
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createCanonicalizerPass());
}

/// Adds the entry point that unpacks the operand table and calls the kernel.
static void addEntryPoint(llvm::Module &module, const std::string &kernel) {
  llvm::Function *body = module.getFunction(kernel);
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *pointer = llvm::PointerType::getUnqual(context), *index = llvm::Type::getInt64Ty(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, index, index, pointer}, false);
  auto *entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage, entryName(kernel), module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", entry));
  llvm::SmallVector<llvm::Value *> arguments;
  for (unsigned i = 0; i + 3 < body->arg_size(); ++i)
    arguments.push_back(builder.CreateLoad(pointer, builder.CreateConstInBoundsGEP1_64(pointer, entry->getArg(0), i)));
  for (unsigned i = 1; i < 4; ++i)
    arguments.push_back(entry->getArg(i));
  builder.CreateCall(body, arguments);
  builder.CreateRetVoid();
  body->setLinkage(llvm::Function::InternalLinkage);
  body->addFnAttr(llvm::Attribute::AlwaysInline);
}

/// Copies the named kernels into a module of their own.
static OwningOpRef<ModuleOp> selectKernels(ModuleOp nests, const std::vector<std::string> &kernels) {
  OwningOpRef<ModuleOp> selected = ModuleOp::create(nests.getLoc());
  std::set<std::string> wanted(kernels.begin(), kernels.end());
  for (Operation &op : *nests.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (function && wanted.count(function.getName().str()))
      selected->push_back(function.clone());
  }
  return selected;
}

std::unique_ptr<LoweredKernels> lowerKernels(ModuleOp nests, const std::vector<std::string> &kernels, Target target,
                                             std::string &diagnostics, VectorUnit vector) {
  MLIRContext *context = nests.getContext();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = selectKernels(nests, kernels);
  PassManager manager(context);
  buildLowering(manager, target, vector, expandsBfloat(*module, target));
  auto lowered = std::make_unique<LoweredKernels>();
  if (failed(manager.run(*module)))
    return nullptr;
  for (Operation &op : *module->getBody()) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (auto tasks = op.getAttrOfType<IntegerAttr>(tasksAttr); symbol && tasks) {
      lowered->tasks[symbol.getName().str()] = tasks.getInt();
      if (auto trips = op.getAttrOfType<FloatAttr>(reductionTripsAttr))
        lowered->reductionTrips[symbol.getName().str()] = trips.getValueAsDouble();
      if (op.hasAttr(blasAttr))
        lowered->usingBlas.insert(symbol.getName().str());
    }
  }
  lowered->context = std::make_unique<llvm::LLVMContext>();
  lowered->module = translateModuleToLLVMIR(*module, *lowered->context);
  if (!lowered->module)
    return nullptr;
  for (const std::string &kernel : kernels)
    addEntryPoint(*lowered->module, kernel);
  return lowered;
}

} // namespace nearbank::codegen
