// SPDX-License-Identifier: Apache-2.0
#include "compiler/loopnest/NestFacts.h"
#include "compiler/loopnest/BufferRoot.h"
#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace nearbank::loopnest {

FailureOr<ElementType> elementTypeOf(Type type) {
  if (type.isF64())
    return ElementType::F64;
  if (type.isF32())
    return ElementType::F32;
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isIndex() || type.isInteger(64))
    return ElementType::I64;
  if (type.isInteger(32))
    return ElementType::I32;
  if (type.isInteger(16))
    return ElementType::I16;
  if (type.isInteger(8))
    return ElementType::I8;
  if (type.isInteger(1))
    return ElementType::I1;
  return failure();
}

linalg::GenericOp nestOf(func::FuncOp kernel) {
  auto nests = kernel.getBody().front().getOps<linalg::GenericOp>();
  return nests.empty() ? linalg::GenericOp() : *nests.begin();
}

bool readsOutput(linalg::GenericOp op, unsigned index) {
  if (auto initial = op->getAttrOfType<ArrayAttr>(initAttr); initial && !isa<UnitAttr>(initial[index]))
    return false;
  return op.payloadUsesValueFromOperand(op.getDpsInitOperand(index));
}

/// Adds what one dynamic execution of `op` computes, `times` times.
static void countOperation(Operation *op, double times, OperationCounts &counts) {
  if (isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log1pOp, math::Log2Op, math::Log10Op,
          math::ErfOp, math::ErfcOp, math::TanhOp, math::SinOp, math::CosOp, math::TanOp, math::PowFOp, math::AtanOp,
          math::Atan2Op, math::SinhOp, math::CoshOp, math::AsinOp, math::AcosOp, math::CbrtOp>(op))
    counts.transcendentals += times;
  else if (isa<arith::DivFOp, arith::RemFOp, math::SqrtOp, math::RsqrtOp>(op))
    counts.divisions += times;
  else if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
               arith::MinNumFOp, arith::NegFOp, arith::CmpFOp, math::AbsFOp, math::FloorOp, math::CeilOp, math::RoundOp,
               math::RoundEvenOp, math::TruncOp, math::CopySignOp, math::FPowIOp>(op))
    counts.floatOps += times;
  else if (isa<math::FmaOp>(op))
    counts.floatOps += 2 * times;
  else if (auto select = dyn_cast<arith::SelectOp>(op))
    (isa<FloatType>(select.getType()) ? counts.floatOps : counts.integerOps) += times;
  else if (isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp,
               arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::BitcastOp>(op))
    counts.conversions += times;
  else if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
               arith::RemUIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::ShLIOp, arith::ShRSIOp,
               arith::ShRUIOp, arith::CmpIOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp,
               arith::FloorDivSIOp, arith::CeilDivSIOp, math::AbsIOp, math::IPowIOp>(op))
    counts.integerOps += times;
  else if (isa<memref::LoadOp>(op))
    counts.loads += times;
  else if (isa<memref::StoreOp>(op))
    counts.stores += times;
}

/// Product of the trip counts of the constant loops around `op` inside the kernel.
static double enclosingTrips(Operation *op) {
  double trips = 1;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>())
    if (auto count = loop.getStaticTripCount())
      trips *= count->getZExtValue();
  return trips;
}

/// True when a kernel argument is read at computed addresses only, by loads inside the nest's body.
static bool isGathered(BlockArgument argument) {
  return !argument.use_empty() && llvm::all_of(argument.getUsers(), [](Operation *user) {
    return isa<memref::LoadOp>(user) && user->getParentOfType<linalg::GenericOp>();
  });
}

/// Elements of a memref that differ in address: broadcast dimensions of stride zero count once.
static double distinctElements(MemRefType type) {
  FailureOr<StaticLayout> layout = staticLayout(type);
  double elements = 1;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (failed(layout) || layout->strides[dim] != 0)
      elements *= size;
  return elements;
}

static double distinctBytes(MemRefType type) {
  FailureOr<ElementType> element = elementTypeOf(type.getElementType());
  return succeeded(element) ? distinctElements(type) * bytesOf(*element) : 0;
}

static std::string kindOf(linalg::GenericOp op) {
  bool hasLoad = !op.getBody()->getOps<memref::LoadOp>().empty();
  if (op.getNumReductionLoops() > 0) {
    if (linalg::isaContractionOpInterface(op))
      return "contraction";
    bool isWindowed = llvm::any_of(op.getIndexingMapsArray(), [](AffineMap map) {
      return !map.isProjectedPermutation(/*allowZeroInResults=*/true);
    });
    if (isWindowed)
      return linalg::isaConvolutionOpInterface(op) && !op.getBody()->getOps<arith::MulFOp>().empty() ? "convolution"
                                                                                                     : "pooling";
    return "reduction";
  }
  if (hasLoad)
    return "gather";
  if (op.getBody()->getOperations().size() == 1) {
    auto forwarded = dyn_cast<BlockArgument>(op.getBody()->getTerminator()->getOperand(0));
    if (!forwarded || op.getNumDpsInputs() == 0 || forwarded.getArgNumber() >= op.getNumDpsInputs())
      return "fill";
    auto source = dyn_cast<MemRefType>(op.getDpsInputs()[forwarded.getArgNumber()].getType());
    if (!source)
      return "fill";
    return op.getMatchingIndexingMap(op.getDpsInputOperand(forwarded.getArgNumber())).isIdentity() ? "copy"
                                                                                                   : "transpose";
  }
  return "elementwise";
}

ArgumentAccess accessOf(func::FuncOp kernel, unsigned argument) {
  ArgumentAccess access;
  SmallVector<Value> aliases = {kernel.getArgument(argument)};
  for (size_t next = 0; next < aliases.size(); ++next)
    for (OpOperand &use : aliases[next].getUses()) {
      Operation *user = use.getOwner();
      if (isViewOperation(user)) {
        aliases.push_back(user->getResult(0));
      } else if (auto generic = dyn_cast<linalg::GenericOp>(user)) {
        if (generic.isDpsInput(&use)) {
          access.reads = true;
        } else {
          access.writes = true;
          access.reads |= readsOutput(generic, use.getOperandNumber() - generic.getNumDpsInputs());
        }
      } else if (isa<memref::LoadOp>(user)) {
        access.reads = true;
      } else if (isa<memref::StoreOp>(user)) {
        access.writes = true;
      } else if (isa<memref::CopyOp>(user)) {
        (use.getOperandNumber() == 0 ? access.reads : access.writes) = true;
      } else {
        access.reads = access.writes = true;
      }
    }
  return access;
}

/// Inputs of the body that `value` is computed from.
static void collectInputs(Value value, Block *body, SmallVectorImpl<unsigned> &inputs) {
  if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == body)
    inputs.push_back(argument.getArgNumber());
  else if (Operation *definition = value.getDefiningOp())
    for (Value operand : definition->getOperands())
      collectInputs(operand, body, inputs);
}

/// Bounds of the integer operands whose elements index other memory.
static std::map<uint32_t, int64_t> indexBoundsOf(linalg::GenericOp op) {
  std::map<uint32_t, int64_t> bounds;
  op.getBody()->walk([&](memref::LoadOp load) {
    for (auto [position, index] : llvm::enumerate(load.getIndices())) {
      SmallVector<unsigned> inputs;
      collectInputs(index, op.getBody(), inputs);
      int64_t size = load.getMemRefType().getDimSize(position);
      for (unsigned input : inputs)
        if (auto memory = dyn_cast<BlockArgument>(op->getOperand(input))) {
          auto [entry, isNew] = bounds.try_emplace(memory.getArgNumber(), size);
          entry->second = std::min(entry->second, size);
        }
    }
  });
  return bounds;
}

/// Fills in what only a linalg.generic tells: its loops, maps and body.
static void addNestFacts(linalg::GenericOp op, NestFacts &facts) {
  facts.kind = kindOf(op);
  for (auto [range, type] : llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
    facts.tripCounts.push_back(range);
    facts.iteratorTypes.push_back(type == utils::IteratorType::parallel ? "parallel" : "reduction");
    facts.iterations *= range;
    if (type == utils::IteratorType::parallel)
      facts.parallelExtent *= range;
  }
  facts.hasReduction = op.getNumReductionLoops() > 0;
  facts.indexBounds = indexBoundsOf(op);
  for (AffineMap map : op.getIndexingMapsArray()) {
    std::string text;
    llvm::raw_string_ostream(text) << map;
    facts.accessMaps.push_back(text);
  }
  double outer = enclosingTrips(op), iterations = static_cast<double>(facts.iterations);
  op.getBody()->walk([&](Operation *inner) { countOperation(inner, outer * iterations, facts.operations); });
  for (OpOperand *input : op.getDpsInputOperands())
    if (isa<MemRefType>(input->get().getType()) && op.payloadUsesValueFromOperand(input))
      facts.operations.loads += outer * iterations;
  // A reduction keeps its result in a register over the reduction loops.
  facts.operations.stores += outer * facts.parallelExtent * op.getNumDpsInits();
  for (unsigned index = 0; index < op.getNumDpsInits(); ++index)
    if (readsOutput(op, index))
      facts.operations.loads += outer * facts.parallelExtent;
}

NestFacts computeFacts(func::FuncOp kernel) {
  NestFacts facts;
  Type compute;
  if (linalg::GenericOp op = nestOf(kernel)) {
    addNestFacts(op, facts);
    compute = cast<MemRefType>(op.getDpsInits()[0].getType()).getElementType();
  } else {
    bool hasLoop = false;
    kernel.walk([&](Operation *op) {
      hasLoop |= isa<scf::ForOp, scf::WhileOp, scf::ParallelOp>(op);
      countOperation(op, enclosingTrips(op), facts.operations);
    });
    facts.kind = hasLoop ? "general" : "scalar";
  }
  kernel.walk(
      [&](memref::LoadOp load) { facts.isDataDependent |= load->getParentOfType<linalg::GenericOp>() != nullptr; });
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = cast<MemRefType>(argument.getType());
    if (!compute)
      compute = type.getElementType();
    ArgumentAccess access = accessOf(kernel, argument.getArgNumber());
    double bytes = distinctBytes(type);
    // A gather reads at most one element of its table per iteration.
    if (isGathered(argument))
      bytes = std::min(bytes, bytes / std::max<double>(1, type.getNumElements()) * facts.iterations);
    facts.bytesRead += access.reads ? bytes : 0;
    facts.bytesWritten += access.writes ? distinctBytes(type) : 0;
  }
  if (FailureOr<ElementType> type = compute ? elementTypeOf(compute) : FailureOr<ElementType>(); succeeded(type))
    facts.computeType = *type;
  return facts;
}

} // namespace nearbank::loopnest
