// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/MathExpansion.h"
#include "compiler/codegen/BranchFreeMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace nearbank::codegen {
namespace {

/// True when the operation works on f32 scalars.
bool isSingle(Operation *op) { return op->getNumResults() == 1 && op->getResult(0).getType().isF32(); }

/// 1/sqrt(x) by two correctly rounded operations, in any precision.
struct ExpandRsqrt : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::RsqrtOp op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<FloatType>(op.getType());
    if (!type)
      return failure();
    Value one = arith::ConstantOp::create(rewriter, op.getLoc(), rewriter.getFloatAttr(type, 1.0));
    Value root = math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand());
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, root);
    return success();
  }
};

class MathExpansion : public PassWrapper<MathExpansion, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MathExpansion)
  MathExpansion(bool expandsRounding, bool usesMaximumIntrinsic, bool avoidsSelects)
      : expandsRounding_(expandsRounding), usesMaximumIntrinsic_(usesMaximumIntrinsic), avoidsSelects_(avoidsSelects) {}
  StringRef getArgument() const override { return "nearbank-math-expansion"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect, vector::VectorDialect>();
  }

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet simplify(context);
    populateMathAlgebraicSimplificationPatterns(simplify);
    simplify.add<ExpandRsqrt>(context);
    math::populateExpansionPatterns(simplify,
                                    {"powf", "exp2f", "fpowi", "sinh", "cosh", "tan", "asinh", "acosh", "atanh"});
    if (expandsRounding_)
      math::populateExpansionPatterns(simplify, {"ceil", "ceilf", "round", "roundf", "roundeven"});
    if (failed(applyPatternsGreedily(getOperation(), std::move(simplify))))
      return signalPassFailure();
    RewritePatternSet approximate(context);
    if (avoidsSelects_)
      populateBranchFreeMath(approximate);
    static constexpr StringRef branchFree[] = {"math.exp", "math.erf", "math.tanh"};
    static constexpr StringRef names[] = {"math.atan",  "math.atan2", "math.tanh", "math.log",  "math.log2",
                                          "math.log1p", "math.erf",   "math.erfc", "math.exp",  "math.expm1",
                                          "math.cbrt",  "math.sin",   "math.cos",  "math.asin", "math.acos"};
    // Double precision keeps the C library's functions: the polynomials are made for f32.
    bool hasDouble = false;
    getOperation().walk([&](Operation *op) {
      hasDouble |= isa<math::MathDialect>(op->getDialect()) && op->getNumResults() == 1 && !isSingle(op) &&
                   isa<FloatType>(op->getResult(0).getType());
    });
    populateMathPolynomialApproximationPatterns(approximate, [&](StringRef name) {
      return !hasDouble && llvm::is_contained(names, name) && !(avoidsSelects_ && llvm::is_contained(branchFree, name));
    });
    if (failed(applyPatternsGreedily(getOperation(), std::move(approximate))))
      return signalPassFailure();
    if (usesMaximumIntrinsic_)
      useMaximumIntrinsic();
  }

private:
  /// LLVM vectorises reductions of its own maximum and minimum, not of the compares and selects that they expand to.
  /// Which zero wins between zeros of both signs is left open, as it is in PyTorch.
  void useMaximumIntrinsic() {
    auto flags = LLVM::FastmathFlags::nsz;
    getOperation().walk([&](Operation *op) {
      if (!isa<arith::MaximumFOp, arith::MinimumFOp>(op) || !isa<Float32Type, Float64Type>(op->getResult(0).getType()))
        return;
      OpBuilder builder(op);
      Value left = op->getOperand(0), right = op->getOperand(1), chosen;
      if (isa<arith::MaximumFOp>(op))
        chosen = LLVM::MaximumOp::create(builder, op->getLoc(), left.getType(), left, right, flags);
      else
        chosen = LLVM::MinimumOp::create(builder, op->getLoc(), left.getType(), left, right, flags);
      op->getResult(0).replaceAllUsesWith(chosen);
      op->erase();
    });
  }

  bool expandsRounding_, usesMaximumIntrinsic_, avoidsSelects_;
};

} // namespace

std::unique_ptr<Pass> createMathExpansionPass(bool expandsRounding, bool usesMaximumIntrinsic, bool avoidsSelects) {
  return std::make_unique<MathExpansion>(expandsRounding, usesMaximumIntrinsic, avoidsSelects);
}

} // namespace nearbank::codegen
