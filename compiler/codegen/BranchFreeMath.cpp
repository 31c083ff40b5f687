// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/BranchFreeMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace nearbank::codegen {
namespace {

/// Builds f32 arithmetic at one place.
class Emitter {
public:
  Emitter(PatternRewriter &rewriter, Location loc) : rewriter_(rewriter), loc_(loc) {}

  Value real(float value) { return arith::ConstantOp::create(rewriter_, loc_, rewriter_.getF32FloatAttr(value)); }
  Value integer(int32_t value) {
    return arith::ConstantOp::create(rewriter_, loc_, rewriter_.getI32IntegerAttr(value));
  }
  Value bitsOf(Value real) { return arith::BitcastOp::create(rewriter_, loc_, rewriter_.getI32Type(), real); }
  Value realOf(Value bits) { return arith::BitcastOp::create(rewriter_, loc_, rewriter_.getF32Type(), bits); }
  Value fma(Value a, Value b, Value c) { return math::FmaOp::create(rewriter_, loc_, a, b, c); }
  template <typename Op> Value emit(Value a, Value b) { return Op::create(rewriter_, loc_, a, b); }

  /// Between -bound and bound; NaN becomes -bound. MLIR would expand its own maximum into a select.
  Value clamp(Value x, float bound) {
    Type type = x.getType();
    Value floored = LLVM::MaxNumOp::create(rewriter_, loc_, type, x, real(-bound));
    return LLVM::MinNumOp::create(rewriter_, loc_, type, floored, real(bound));
  }

  /// Horner's rule; coefficients from the constant one up.
  Value polynomial(ArrayRef<float> coefficients, Value x) {
    Value sum = real(coefficients.back());
    for (float coefficient : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, x, real(coefficient));
    return sum;
  }

  /// `result`, or NaN where `x` is NaN.
  Value keepNan(Value x, Value result) {
    constexpr int32_t quietNan = 0x7fc00000;
    Value isNan = arith::CmpFOp::create(rewriter_, loc_, arith::CmpFPredicate::UNO, x, x);
    Value mask = arith::ExtSIOp::create(rewriter_, loc_, rewriter_.getI32Type(), isNan);
    return realOf(emit<arith::OrIOp>(bitsOf(result), emit<arith::AndIOp>(mask, integer(quietNan))));
  }

  Value toInteger(Value real) { return arith::FPToSIOp::create(rewriter_, loc_, rewriter_.getI32Type(), real); }

private:
  PatternRewriter &rewriter_;
  Location loc_;
};

/// exp(x) = 2^n exp(r) with n the integer next to x / ln 2. 2^n is multiplied in two parts, each of them a normal
/// number.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    // Beyond +-150 the result is infinite or zero. Adding 1.5 x 2^23 rounds to an integer.
    constexpr float bound = 150, rounder = 12582912, log2e = 1.44269504f;
    constexpr float ln2High = 0.693145751953125f, ln2Low = 1.428606765330187e-06f;
    // (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2: own minimax fit, relative error of exp(r) 3.3e-9.
    constexpr float coefficients[] = {4.999999404e-01f, 1.666651517e-01f, 4.166845605e-02f, 8.369418792e-03f,
                                      1.381314476e-03f};
    Emitter e(rewriter, op.getLoc());
    Value x = e.clamp(op.getOperand(), bound);
    Value n = e.emit<arith::SubFOp>(e.fma(x, e.real(log2e), e.real(rounder)), e.real(rounder));
    Value r = e.fma(n, e.real(-ln2Low), e.fma(n, e.real(-ln2High), x));
    Value square = e.emit<arith::MulFOp>(r, r);
    Value power = e.emit<arith::AddFOp>(e.fma(e.polynomial(coefficients, r), square, r), e.real(1));
    Value exponent = e.toInteger(n);
    Value half = e.emit<arith::ShRSIOp>(exponent, e.integer(1));
    auto powerOfTwo = [&](Value n) {
      return e.realOf(e.emit<arith::ShLIOp>(e.emit<arith::AddIOp>(n, e.integer(127)), e.integer(23)));
    };
    power = e.emit<arith::MulFOp>(power, powerOfTwo(half));
    power = e.emit<arith::MulFOp>(power, powerOfTwo(e.emit<arith::SubIOp>(exponent, half)));
    rewriter.replaceOp(op, e.keepNan(op.getOperand(), power));
    return success();
  }
};

/// x P(x^2) / Q(x^2) up to `bound`, from where on the function is 1 in f32.
template <typename Op> struct ExpandOddRational : OpRewritePattern<Op> {
  ExpandOddRational(MLIRContext *context, float bound, ArrayRef<float> numerator, ArrayRef<float> denominator)
      : OpRewritePattern<Op>(context), bound_(bound), numerator_(numerator), denominator_(denominator) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    Emitter e(rewriter, op.getLoc());
    Value x = e.clamp(op.getOperand(), bound_);
    Value square = e.emit<arith::MulFOp>(x, x);
    Value quotient = e.emit<arith::DivFOp>(e.emit<arith::MulFOp>(x, e.polynomial(numerator_, square)),
                                           e.polynomial(denominator_, square));
    rewriter.replaceOp(op, e.keepNan(op.getOperand(), e.clamp(quotient, 1)));
    return success();
  }
  float bound_;
  ArrayRef<float> numerator_, denominator_;
};

// Own minimax fits of the relative error: 1.9e-8 and 1.3e-9 before rounding.
constexpr float erfNumerator[] = {1.128379107e+00f, 1.905845702e-01f, 5.276789889e-02f,
                                  3.772107186e-03f, 2.848256263e-04f, 2.045994279e-06f};
constexpr float erfDenominator[] = {
    1.0f, 5.022339225e-01f, 1.141787618e-01f, 1.498231478e-02f, 1.163735637e-03f, 3.804649532e-05f};
constexpr float tanhNumerator[] = {
    1.0f, 1.367988884e-01f, 3.868295578e-03f, 2.800679977e-05f, 3.058342202e-08f, -1.220228172e-11f};
constexpr float tanhDenominator[] = {1.0f, 4.701322019e-01f, 2.724572085e-02f, 3.938573936e-04f, 1.287320288e-06f};

} // namespace

void populateBranchFreeMath(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<ExpandExp>(context);
  patterns.add<ExpandOddRational<math::ErfOp>>(context, 3.925f, erfNumerator, erfDenominator);
  patterns.add<ExpandOddRational<math::TanhOp>>(context, 9.02f, tanhNumerator, tanhDenominator);
}

} // namespace nearbank::codegen
