// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/LowerBlas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace nearbank::codegen {

/// Products smaller than this many multiply-adds per call run faster in our own loops than through BLAS.
static constexpr int64_t smallestBlasProduct = 4096;
/// Pieces that a single matrix product is cut into at most, so that every host thread gets some.
static constexpr int64_t blasPieces = 16;
/// Rows or columns of a piece at least: smaller pieces repack more than they compute.
static constexpr int64_t shortestBlasPiece = 32;

bool isWorthBlas(const MatrixProduct &product, ArrayRef<int64_t> ranges) {
  int64_t rows = product.isRowVector ? 1 : ranges[product.mDim];
  return rows * ranges[product.nDim] * ranges[product.kDim] >= smallestBlasProduct;
}

namespace {

class BlasEmitter {
public:
  BlasEmitter(OpBuilder &builder, linalg::GenericOp op, const MatrixProduct &product, const BlasArguments &arguments)
      : builder_(builder), op_(op), product_(product), arguments_(arguments), ranges_(op.getStaticLoopRanges()),
        loc_(op.getLoc()) {}

  int64_t emit() {
    rows_ = product_.isRowVector ? 1 : ranges_[product_.mDim];
    if (product_.batchDims.empty())
      return emitSingle();
    int64_t batches = 1;
    for (unsigned dim : product_.batchDims)
      batches *= ranges_[dim];
    auto loop = scf::ForOp::create(builder_, loc_, arguments_.begin, arguments_.end, constant(1));
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> offsets(3, constant(0));
    Value rest = loop.getInductionVar();
    for (size_t i = product_.batchDims.size(); i-- > 0;) {
      unsigned dim = product_.batchDims[i];
      Value position = arith::RemUIOp::create(builder_, loc_, rest, constant(ranges_[dim]));
      rest = arith::DivUIOp::create(builder_, loc_, rest, constant(ranges_[dim]));
      for (unsigned operand = 0; operand < 3; ++operand)
        offsets[operand] = add(offsets[operand], scale(position, strideOf(operand, dim)));
    }
    call(offsets, constant(rows_), constant(ranges_[product_.nDim]));
    return batches;
  }

private:
  /// One product: tasks are pieces of its longer side, and neighbouring pieces are computed by one call.
  int64_t emitSingle() {
    bool splitsRows = rows_ > ranges_[product_.nDim];
    int64_t length = splitsRows ? rows_ : ranges_[product_.nDim];
    int64_t piece = std::max<int64_t>(shortestBlasPiece, llvm::alignTo(llvm::divideCeil(length, blasPieces), 16));
    Value limit = constant(length), size = constant(piece);
    Value first =
        arith::MinUIOp::create(builder_, loc_, arith::MulIOp::create(builder_, loc_, arguments_.begin, size), limit);
    Value last =
        arith::MinUIOp::create(builder_, loc_, arith::MulIOp::create(builder_, loc_, arguments_.end, size), limit);
    Value count = arith::SubIOp::create(builder_, loc_, last, first);
    unsigned dim = splitsRows ? product_.mDim : product_.nDim;
    SmallVector<Value> offsets;
    for (unsigned operand = 0; operand < 3; ++operand)
      offsets.push_back(scale(first, strideOf(operand, dim)));
    call(offsets, splitsRows ? count : constant(rows_), splitsRows ? constant(ranges_[product_.nDim]) : count);
    return llvm::divideCeil(length, piece);
  }

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder_, loc_, value); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder_, loc_, a, b); }
  Value scale(Value value, int64_t factor) { return arith::MulIOp::create(builder_, loc_, value, constant(factor)); }

  int64_t strideOf(unsigned operand, unsigned dim) { return strideAlong(op_, op_->getOpOperand(operand), dim); }

  Value address(unsigned operand, Value elementOffset) {
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(builder_, loc_, op_->getOperand(operand));
    return add(base, scale(elementOffset, product_.isDouble ? 8 : 4));
  }

  void call(ArrayRef<Value> offsets, Value rows, Value columns) {
    auto kernel = op_->getParentOfType<func::FuncOp>();
    StringRef name = product_.isDouble ? gemmF64Symbol : gemmF32Symbol;
    SmallVector<Type> types(gemmArguments, builder_.getIndexType());
    if (!kernel->getParentOfType<ModuleOp>().lookupSymbol(name)) {
      OpBuilder::InsertionGuard guard(builder_);
      builder_.setInsertionPoint(kernel);
      func::FuncOp::create(builder_, loc_, name, builder_.getFunctionType(types, {})).setPrivate();
    }
    int64_t outStride = product_.isRowVector ? ranges_[product_.nDim] : product_.outStrideM;
    SmallVector<Value> values = {address(0, offsets[0]),
                                 address(1, offsets[1]),
                                 address(2, offsets[2]),
                                 rows,
                                 columns,
                                 constant(ranges_[product_.kDim]),
                                 constant(product_.lhsStrideM),
                                 constant(product_.lhsStrideK),
                                 constant(product_.rhsStrideK),
                                 constant(product_.rhsStrideN),
                                 constant(outStride),
                                 constant(arguments_.accumulates)};
    func::CallOp::create(builder_, loc_, name, TypeRange(), values);
  }

  OpBuilder &builder_;
  linalg::GenericOp op_;
  const MatrixProduct &product_;
  const BlasArguments &arguments_;
  SmallVector<int64_t> ranges_;
  Location loc_;
  int64_t rows_ = 1;
};

} // namespace

int64_t emitBlas(OpBuilder &builder, linalg::GenericOp op, const MatrixProduct &product,
                 const BlasArguments &arguments) {
  return BlasEmitter(builder, op, product, arguments).emit();
}

} // namespace nearbank::codegen
