// SPDX-License-Identifier: Apache-2.0
#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace nearbank::loopnest {
#define GEN_PASS_DEF_NORMALIZEINPUTPASS
#include "compiler/loopnest/Passes.h.inc"

namespace {

/// Generalizes every named operation except fills, which carry initial values of reductions.
LogicalResult generalizeNamedOperations(ModuleOp module) {
  SmallVector<linalg::LinalgOp> named;
  module.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp, linalg::FillOp>(op))
      named.push_back(op);
  });
  IRRewriter rewriter(module.getContext());
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return op->emitOpError("cannot be written as linalg.generic");
  }
  return success();
}

struct NormalizeInput : impl::NormalizeInputPassBase<NormalizeInput> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet decompose(context);
    linalg::populateElementwiseToLinalgConversionPatterns(decompose);
    linalg::populateDecomposePadPatterns(decompose);
    tensor::populateDecomposeTensorConcatPatterns(decompose);
    if (failed(applyPatternsGreedily(getOperation(), std::move(decompose))) ||
        failed(generalizeNamedOperations(getOperation())))
      return signalPassFailure();

    RewritePatternSet fold(context);
    linalg::ControlDropUnitDims options;
    linalg::populateFoldUnitExtentDimsPatterns(fold, options);
    linalg::populateInlineConstantOperandsPatterns(fold);
    // Small constant powers are products, and are counted as such.
    populateMathAlgebraicSimplificationPatterns(fold);
    tensor::populateMergeConsecutiveInsertExtractSlicePatterns(fold);
    tensor::populateFoldTensorEmptyPatterns(fold);
    if (failed(applyPatternsGreedily(getOperation(), std::move(fold))))
      return signalPassFailure();
  }
};

} // namespace
} // namespace nearbank::loopnest
