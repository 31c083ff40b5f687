// SPDX-License-Identifier: Apache-2.0
#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace nearbank::loopnest {
#define GEN_PASS_DEF_FUSENESTSPASS
#include "compiler/loopnest/Passes.h.inc"

namespace {

/// True when the body only forwards an input: transposes, broadcasts and copies.
bool isPureMovement(linalg::GenericOp op) {
  Block *body = op.getBody();
  return body->getOperations().size() == 1 && isa<BlockArgument>(body->getTerminator()->getOperand(0)) &&
         op.getNumResults() == 1;
}

/// True when the body reads memory at computed addresses; fusing it would repeat the bounds checks.
bool isGather(linalg::GenericOp op) { return !op.getBody()->getOps<tensor::ExtractOp>().empty(); }

/// How often each element of the operand is used per element of the iteration space: 1 when its map covers
/// every loop of extent above one.
bool isUsedOncePerIteration(OpOperand *operand, linalg::GenericOp consumer) {
  AffineMap map = consumer.getMatchingIndexingMap(operand);
  llvm::SmallBitVector covered(map.getNumDims());
  for (AffineExpr result : map.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(result))
      covered.set(dim.getPosition());
  SmallVector<int64_t> ranges = consumer.getStaticLoopRanges();
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
    if (!covered.test(dim) && ranges[dim] != 1)
      return false;
  return true;
}

/// Decides whether the producer of `operand` is fused into its user.
bool shouldFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !consumer)
    return false;
  // A transpose or broadcast costs nothing inside its reader, however many there are.
  if (isPureMovement(producer))
    return true;
  if (!producer->hasOneUse() || isGather(producer))
    return false;
  return isUsedOncePerIteration(operand, consumer);
}

/// Moves reshapes across operations that have only parallel loops and nothing else.
bool shouldMoveReshape(OpOperand *operand) {
  auto isParallel = [](Operation *op) {
    auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
    return generic && generic.getNumReductionLoops() == 0 && !isGather(generic);
  };
  Operation *producer = operand->get().getDefiningOp();
  if (!producer || !producer->hasOneUse())
    return false;
  // Bubbling past one operation only pays when a further parallel operation stands on the other side.
  if (isParallel(producer))
    return llvm::any_of(operand->getOwner()->getUsers(), isParallel);
  return isParallel(operand->getOwner()) &&
         llvm::any_of(producer->getOperands(), [&](Value value) { return isParallel(value.getDefiningOp()); });
}

struct FuseNests : impl::FuseNestsPassBase<FuseNests> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, shouldMoveReshape);
    linalg::populateConstantFoldLinalgOperations(patterns, [](OpOperand *) { return true; });
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::populateInlineConstantOperandsPatterns(patterns);
    tensor::populateReassociativeReshapeFoldingPatterns(patterns);
    tensor::populateFoldTensorEmptyPatterns(patterns);
    affine::AffineApplyOp::getCanonicalizationPatterns(patterns, context);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, context);
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
    context->getLoadedDialect<linalg::LinalgDialect>()->getCanonicalizationPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
  }
};

} // namespace
} // namespace nearbank::loopnest
