// SPDX-License-Identifier: Apache-2.0
#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace nearbank::loopnest {
#define GEN_PASS_DEF_FOLDFILLSPASS
#include "compiler/loopnest/Passes.h.inc"

namespace {

/// The constant that `value` is filled with, or null.
TypedAttr constantFill(Value value) {
  auto fill = value.getDefiningOp<linalg::FillOp>();
  auto constant = fill ? fill.getInputs()[0].getDefiningOp<arith::ConstantOp>() : arith::ConstantOp();
  return constant ? constant.getValue() : TypedAttr();
}

/// Records constant initial values of `op` and frees its outputs from the fills.
void foldFills(linalg::GenericOp op, OpBuilder &builder) {
  SmallVector<Attribute> initial;
  bool isAnyFolded = false;
  for (OpOperand &output : op.getDpsInitsMutable()) {
    TypedAttr constant = op.getNumReductionLoops() > 0 ? constantFill(output.get()) : TypedAttr();
    if (!constant) {
      initial.push_back(builder.getUnitAttr());
      continue;
    }
    auto type = cast<RankedTensorType>(output.get().getType());
    output.set(tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType()));
    initial.push_back(constant);
    isAnyFolded = true;
  }
  if (isAnyFolded)
    op->setAttr(initAttr, builder.getArrayAttr(initial));
}

/// Gives every use of an uninitialised tensor one of its own. Shared ones, which CSE makes, tie unrelated nests
/// together in the alias analysis of bufferization, whose cost grows with the square of such a group.
void splitEmptyTensors(ModuleOp module) {
  SmallVector<tensor::EmptyOp> empties;
  module.walk([&](tensor::EmptyOp empty) { empties.push_back(empty); });
  for (tensor::EmptyOp empty : empties) {
    if (empty->hasOneUse())
      continue;
    for (OpOperand &use : llvm::make_early_inc_range(empty->getUses())) {
      OpBuilder builder(use.getOwner());
      use.set(builder.clone(*empty)->getResult(0));
    }
    empty->erase();
  }
}

struct FoldFills : impl::FoldFillsPassBase<FoldFills> {
  void runOnOperation() override {
    getOperation().walk([&](linalg::GenericOp op) {
      OpBuilder builder(op);
      foldFills(op, builder);
    });
    SmallVector<linalg::FillOp> dead;
    getOperation().walk([&](linalg::FillOp fill) {
      if (fill->use_empty())
        dead.push_back(fill);
    });
    for (linalg::FillOp fill : dead)
      fill->erase();
    splitEmptyTensors(getOperation());
  }
};

} // namespace
} // namespace nearbank::loopnest
