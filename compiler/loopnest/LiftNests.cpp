// SPDX-License-Identifier: Apache-2.0
#include "compiler/loopnest/BufferRoot.h"
#include "compiler/loopnest/NestFacts.h"
#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace nearbank::loopnest {
#define GEN_PASS_DEF_LIFTNESTSPASS
#include "compiler/loopnest/Passes.h.inc"

namespace {

/// Operations of `main` that are no nests: memory management, views, constants and scalar values used by nests.
bool staysInMain(Operation &op) {
  if (isViewOperation(&op) || isa<memref::AllocOp, memref::DeallocOp, memref::GetGlobalOp, func::ReturnOp>(op))
    return true;
  bool isScalar = llvm::none_of(op.getResultTypes(), [](Type type) { return isa<ShapedType>(type); });
  return isScalar && op.getNumResults() > 0 && op.getNumRegions() == 0 && (isPure(&op) || isa<memref::LoadOp>(op));
}

/// Kernel argument type of a memory operand: its static strides with a free offset, or the type itself.
MemRefType argumentType(MemRefType type) {
  if (type.getLayout().isIdentity())
    return type;
  FailureOr<StaticLayout> layout = staticLayout(type);
  if (failed(layout))
    return {};
  auto strided = StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, layout->strides);
  return MemRefType::get(type.getShape(), type.getElementType(), strided, type.getMemorySpace());
}

/// Rewrites copies and named operations on buffers as linalg.generic.
LogicalResult generalizeBufferOperations(func::FuncOp main) {
  IRRewriter rewriter(main.getContext());
  for (Operation &op : llvm::make_early_inc_range(main.getBody().front())) {
    rewriter.setInsertionPoint(&op);
    if (auto copy = dyn_cast<memref::CopyOp>(op)) {
      Value from = copy.getSource(), to = copy.getTarget();
      auto rank = cast<MemRefType>(to.getType()).getRank();
      AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
      SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
      linalg::GenericOp::create(
          rewriter, copy.getLoc(), ValueRange{from}, ValueRange{to}, ArrayRef<AffineMap>{identity, identity}, iterators,
          [](OpBuilder &nested, Location loc, ValueRange args) { linalg::YieldOp::create(nested, loc, args[0]); });
      rewriter.eraseOp(copy);
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op); linalgOp && !isa<linalg::GenericOp>(op)) {
      if (failed(linalg::generalizeNamedOp(rewriter, linalgOp)))
        return op.emitOpError("cannot be written as linalg.generic");
    }
  }
  return success();
}

/// Collects what `op` and its regions use from outside, in a fixed order.
llvm::SetVector<Value> capturedValues(Operation *op) {
  llvm::SetVector<Value> captured(op->operand_begin(), op->operand_end());
  llvm::SetVector<Value> above;
  getUsedValuesDefinedAbove(op->getRegions(), above);
  captured.insert(above.begin(), above.end());
  return captured;
}

/// Builds the kernel function of one nest.
class Outliner {
public:
  explicit Outliner(Operation *op) : op_(op), builder_(op->getContext()) {}

  /// Creates the function (detached) and the list of views to pass.
  FailureOr<func::FuncOp> outline() {
    // General code keeps its views inside and takes whole buffers, so that their types stay as they are.
    passesViews_ = isa<linalg::GenericOp>(op_);
    for (Value value : capturedValues(op_))
      if (failed(request(value)))
        return failure();
    SmallVector<Type> types;
    for (Value view : operands_)
      types.push_back(argumentType(cast<MemRefType>(view.getType())));
    auto function = func::FuncOp::create(op_->getLoc(), "kernel", builder_.getFunctionType(types, {}));
    function.setPrivate();
    Block *entry = function.addEntryBlock();
    IRMapping mapping;
    for (auto [view, argument] : llvm::zip(operands_, entry->getArguments()))
      mapping.map(view, argument);
    builder_.setInsertionPointToEnd(entry);
    for (Operation *scalar : inner_)
      builder_.clone(*scalar, mapping);
    builder_.clone(*op_, mapping);
    func::ReturnOp::create(builder_, op_->getLoc());
    markAliases(function);
    function->walk([&](Operation *inner) { inner->setLoc(builder_.getUnknownLoc()); });
    function->setAttr(kernelAttr, builder_.getUnitAttr());
    return function;
  }

  ArrayRef<Value> operands() const { return operands_.getArrayRef(); }

private:
  /// Makes `value` available inside: memory as argument, scalars and inner views by cloning what computes them.
  LogicalResult request(Value value) {
    Operation *definition = value.getDefiningOp();
    if (auto memory = dyn_cast<MemRefType>(value.getType())) {
      bool clonesView = !passesViews_ && isViewOperation(definition);
      if (!clonesView) {
        if (!argumentType(memory))
          return op_->emitError("nest uses memory of dynamic layout ") << memory;
        operands_.insert(value);
        return success();
      }
    }
    if (!definition)
      return op_->emitError("nest uses a block argument that is not memory");
    if (llvm::is_contained(inner_, definition))
      return success();
    for (Value operand : definition->getOperands())
      if (failed(request(operand)))
        return failure();
    inner_.push_back(definition);
    return success();
  }

  void markAliases(func::FuncOp function) {
    for (unsigned i = 0; i < operands_.size(); ++i)
      for (unsigned j = 0; j < operands_.size(); ++j)
        if (i != j && bufferRoot(operands_[i]) == bufferRoot(operands_[j]))
          function.setArgAttr(i, aliasAttr, builder_.getUnitAttr());
  }

  Operation *op_;
  OpBuilder builder_;
  bool passesViews_ = true;
  llvm::SetVector<Value> operands_;
  SmallVector<Operation *> inner_; ///< Scalar and view operations to clone, in dependence order.
};

/// Canonical text of a kernel: no locations, no name, maps in place.
std::string canonicalText(func::FuncOp function) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  function->print(stream, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
  return text;
}

std::string structuralKey(StringRef text) {
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(text));
  return llvm::utohexstr(hash.high64, /*LowerCase=*/true, 16) + llvm::utohexstr(hash.low64, true, 16);
}

std::string readableName(const NestFacts &facts) {
  std::string name = facts.kind;
  for (auto [index, trips] : llvm::enumerate(facts.tripCounts))
    name += (index == 0 ? "_" : "x") + std::to_string(trips);
  return name + "_" + nameOf(facts.computeType);
}

struct LiftNests : impl::LiftNestsPassBase<LiftNests> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto main = module.lookupSymbol<func::FuncOp>("main");
    if (!main)
      return;
    if (!main.getBody().hasOneBlock()) {
      main.emitError("control flow between nests cannot be lifted");
      return signalPassFailure();
    }
    if (failed(generalizeBufferOperations(main)))
      return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(main.getBody().front()))
      if (!staysInMain(op) && failed(lift(&op, module)))
        return signalPassFailure();
    eraseDeadScalars(main);
  }

private:
  LogicalResult lift(Operation *op, ModuleOp module) {
    if (op->getNumResults() > 0 && !op->use_empty())
      return op->emitOpError("yields a value that other nests use and cannot be lifted");
    Outliner outliner(op);
    FailureOr<func::FuncOp> outlined = outliner.outline();
    if (failed(outlined))
      return failure();
    func::FuncOp kernel = shareKernel(*outlined, module);
    OpBuilder builder(op);
    SmallVector<Value> arguments;
    for (auto [view, type] : llvm::zip(outliner.operands(), kernel.getArgumentTypes()))
      arguments.push_back(
          view.getType() == type ? view : memref::CastOp::create(builder, op->getLoc(), type, view).getResult());
    auto call = func::CallOp::create(builder, op->getLoc(), kernel, arguments);
    call->setAttr(idAttr, builder.getStringAttr("n" + std::to_string(numNests_++)));
    op->erase();
    return success();
  }

  /// Inserts the kernel into the module, or drops it for an equal one that is there.
  func::FuncOp shareKernel(func::FuncOp kernel, ModuleOp module) {
    std::string text = canonicalText(kernel);
    std::string key = structuralKey(text);
    if (auto existing = kernels_.find(key); existing != kernels_.end()) {
      kernel->erase();
      return existing->second;
    }
    OpBuilder builder(kernel.getContext());
    kernel->setAttr(keyAttr, builder.getStringAttr(key));
    std::string base = readableName(computeFacts(kernel)), name = base;
    for (int suffix = 2; module.lookupSymbol(name); ++suffix)
      name = base + "_v" + std::to_string(suffix);
    kernel.setName(name);
    module.push_back(kernel);
    kernels_[key] = kernel;
    return kernel;
  }

  void eraseDeadScalars(func::FuncOp main) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(main.getBody().front())))
      if (op.use_empty() && staysInMain(op) && !isa<func::ReturnOp, memref::DeallocOp>(op))
        op.erase();
  }

  llvm::StringMap<func::FuncOp> kernels_;
  int numNests_ = 0;
};

} // namespace
} // namespace nearbank::loopnest
