// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/NestBody.h"
#include "compiler/loopnest/NestFacts.h"
#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace nearbank::codegen {

/// Status code of an index out of range; see KernelStatus.
static constexpr int64_t indexOutOfRange = 1;

SmallVector<Value> NestBody::indices(OpBuilder &builder, Location loc, unsigned operand, ValueRange loops) {
  AffineMap map = op_.getIndexingMapsArray()[operand];
  SmallVector<Value> result;
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      result.push_back(loops[dim.getPosition()]);
      continue;
    }
    SmallVector<OpFoldResult> operands(loops.begin(), loops.end());
    OpFoldResult folded =
        affine::makeComposedFoldedAffineApply(builder, loc, AffineMap::get(map.getNumDims(), 0, expr), operands);
    result.push_back(getValueOrCreateConstantIndexOp(builder, loc, folded));
  }
  return result;
}

Value NestBody::load(OpBuilder &builder, Location loc, unsigned operand, ValueRange loops) {
  Value source = op_->getOperand(operand);
  if (!isa<MemRefType>(source.getType()))
    return source;
  return memref::LoadOp::create(builder, loc, source, indices(builder, loc, operand, loops));
}

Value NestBody::loadVector(OpBuilder &builder, Location loc, unsigned operand, ValueRange loops, VectorType type) {
  return vector::LoadOp::create(builder, loc, type, op_->getOperand(operand), indices(builder, loc, operand, loops));
}

void NestBody::storeOutput(OpBuilder &builder, Location loc, unsigned output, Value value, ValueRange loops) {
  unsigned operand = op_.getNumDpsInputs() + output;
  memref::StoreOp::create(builder, loc, value, op_->getOperand(operand), indices(builder, loc, operand, loops));
}

SmallVector<Value> NestBody::loadInputs(OpBuilder &builder, Location loc, ValueRange loops) {
  SmallVector<Value> values;
  for (OpOperand *input : op_.getDpsInputOperands())
    values.push_back(op_.payloadUsesValueFromOperand(input) ? load(builder, loc, input->getOperandNumber(), loops)
                                                            : Value());
  return values;
}

SmallVector<Value> NestBody::initialOutputs(OpBuilder &builder, Location loc, ValueRange loops) {
  auto initial = op_->getAttrOfType<ArrayAttr>(loopnest::initAttr);
  SmallVector<Value> values;
  for (unsigned output = 0; output < op_.getNumDpsInits(); ++output) {
    if (initial && !isa<UnitAttr>(initial[output]))
      values.push_back(arith::ConstantOp::create(builder, loc, cast<TypedAttr>(initial[output])));
    else if (loopnest::readsOutput(op_, output))
      values.push_back(load(builder, loc, op_.getNumDpsInputs() + output, loops));
    else
      values.push_back(Value());
  }
  return values;
}

/// True when `value` depends on memory content rather than on loop variables and constants.
static bool dependsOnMemory(Value value) {
  Operation *definition = value.getDefiningOp();
  if (!definition)
    return false;
  if (isa<memref::LoadOp>(definition))
    return true;
  return llvm::any_of(definition->getOperands(), dependsOnMemory);
}

/// Stores a failure into the status buffer unless `holds`.
static void reportUnless(OpBuilder &builder, Location loc, Value holds, Value offender, Value status) {
  Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
  Value fails = arith::XOrIOp::create(builder, loc, holds, yes);
  auto branch = scf::IfOp::create(builder, loc, fails, /*withElseRegion=*/false);
  OpBuilder inside = branch.getThenBodyBuilder();
  auto store = [&](int64_t position, Value value) {
    Value index = arith::ConstantIndexOp::create(inside, loc, position);
    memref::StoreOp::create(inside, loc, value, status, index);
  };
  store(0, arith::ConstantIntOp::create(inside, loc, indexOutOfRange, 64));
  if (!offender)
    return;
  if (offender.getType().isIndex())
    offender = arith::IndexCastOp::create(inside, loc, inside.getI64Type(), offender);
  else if (offender.getType().getIntOrFloatBitWidth() < 64)
    offender = arith::ExtSIOp::create(inside, loc, inside.getI64Type(), offender);
  store(1, offender);
}

void reportAssertion(OpBuilder &builder, Location loc, Value holds, Value status) {
  auto compare = holds.getDefiningOp<arith::CmpIOp>();
  reportUnless(builder, loc, holds, compare ? compare.getLhs() : Value(), status);
}

void guardLoad(Operation *op, Value status) {
  auto load = cast<memref::LoadOp>(op);
  OpBuilder builder(load);
  Location loc = load.getLoc();
  for (auto [position, index] : llvm::enumerate(load.getIndices())) {
    if (!dependsOnMemory(index))
      continue;
    Value size = arith::ConstantIndexOp::create(builder, loc, load.getMemRefType().getDimSize(position));
    Value holds = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, index, size);
    reportUnless(builder, loc, holds, index, status);
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value safe = arith::SelectOp::create(builder, loc, holds, index, zero);
    load.getIndicesMutable()[position].set(safe);
  }
}

SmallVector<Value> NestBody::emit(OpBuilder &builder, Location loc, ValueRange inputs, ValueRange outputs,
                                  ValueRange loops) {
  Block *body = op_.getBody();
  IRMapping mapping;
  SmallVector<Value> values(inputs.begin(), inputs.end());
  llvm::append_range(values, outputs);
  for (auto [argument, value] : llvm::zip(body->getArguments(), values))
    if (value)
      mapping.map(argument, value);
  SmallVector<Operation *> loads;
  for (Operation &inner : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(index.getResult(), loops[index.getDim()]);
    } else if (auto assertion = dyn_cast<cf::AssertOp>(inner)) {
      reportAssertion(builder, loc, mapping.lookupOrDefault(assertion.getArg()), status_);
    } else {
      Operation *clone = builder.clone(inner, mapping);
      clone->walk([&](memref::LoadOp load) { loads.push_back(load); });
    }
  }
  for (Operation *load : loads)
    guardLoad(load, status_);
  SmallVector<Value> yielded;
  for (Value value : body->getTerminator()->getOperands())
    yielded.push_back(mapping.lookupOrDefault(value));
  return yielded;
}

} // namespace nearbank::codegen
