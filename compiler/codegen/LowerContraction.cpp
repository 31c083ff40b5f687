// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/LowerContraction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace nearbank::codegen {

bool isVectorizableContraction(linalg::GenericOp op) {
  return llvm::all_of(op.getBody()->without_terminator(), [](Operation &inner) {
    return OpTrait::hasElementwiseMappableTraits(&inner) && inner.getNumResults() == 1 &&
           isa<FloatType>(inner.getResult(0).getType());
  });
}

namespace {

/// Steps of the reduction between two increments of the pointers.
constexpr uint64_t unrolledSteps = 4;

/// Iterations of the outermost reduction loop in one trip.
int64_t outermostStep(const NestSchedule &schedule) {
  return schedule.blocks->blockedReduction == 0 ? schedule.blocks->blockedLength : 1;
}

class BlockedContractionEmitter {
public:
  BlockedContractionEmitter(OpBuilder &builder, linalg::GenericOp op, NestBody &body, const NestSchedule &schedule)
      : builder_(builder), op_(op), body_(body), schedule_(schedule), blocks_(*schedule.blocks),
        ranges_(op.getStaticLoopRanges()), loc_(op.getLoc()), row_(*schedule.rowDim), column_(*schedule.columnDim) {}

  void emit(Value status, SmallVector<Value> loops) {
    allocateScratch();
    readTripLimit(status);
    firstRow_ = loops[row_], firstColumn_ = loops[column_];
    numRows_ = lengthOf(row_, firstRow_, blocks_.rows);
    numColumns_ = lengthOf(column_, firstColumn_, blocks_.columns);
    visitBlock(loops, [&](Value i, Value j, SmallVector<Value> point) {
      Value start = body_.initialOutputs(builder_, loc_, point)[0];
      if (!start)
        start = arith::ConstantOp::create(builder_, loc_, builder_.getZeroAttr(resultType()));
      memref::StoreOp::create(builder_, loc_, start, results_, ValueRange{i, j});
    });
    emitOuterReductions(0, loops);
    visitBlock(loops, [&](Value i, Value j, SmallVector<Value> point) {
      Value value = memref::LoadOp::create(builder_, loc_, results_, ValueRange{i, j});
      body_.storeOutput(builder_, loc_, 0, value, point);
    });
  }

private:
  using Right = ContractionBlocks::Right;

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder_, loc_, value); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder_, loc_, a, b); }
  Value multiply(Value a, int64_t factor) {
    return factor == 1 ? a : arith::MulIOp::create(builder_, loc_, a, constant(factor)).getResult();
  }

  Type elementType(unsigned operand) { return cast<MemRefType>(op_->getOperand(operand).getType()).getElementType(); }
  Type resultType() { return elementType(2); }

  /// Iterations of the block of `dim` that begins at `first`.
  Value lengthOf(unsigned dim, Value first, int64_t block) {
    if (ranges_[dim] % block == 0)
      return constant(block);
    Value rest = arith::SubIOp::create(builder_, loc_, constant(ranges_[dim]), first);
    return arith::MinUIOp::create(builder_, loc_, rest, constant(block));
  }

  void allocateScratch() {
    auto kernel = op_->getParentOfType<func::FuncOp>();
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(&kernel.getBody().front());
    // Vectors are aligned to themselves.
    auto alignment = builder_.getI64IntegerAttr(64);
    auto allocate = [&](ArrayRef<int64_t> shape, Type element) -> Value {
      return memref::AllocaOp::create(builder_, loc_, MemRefType::get(shape, element), alignment);
    };
    results_ = allocate({blocks_.rows, blocks_.columns}, resultType());
    if (blocks_.right == Right::Panel)
      panel_ = allocate({blocks_.depth, blocks_.columns}, elementType(1));
  }

  /// End of the outermost reduction loop: its range, or fewer iterations when the status word asks for that.
  void readTripLimit(Value status) {
    Value word = memref::LoadOp::create(builder_, loc_, status, constant(2));
    Value limit = arith::IndexCastOp::create(builder_, loc_, builder_.getIndexType(), word);
    Value range = constant(ranges_[schedule_.reductions.front()]);
    Value cut = arith::MinUIOp::create(builder_, loc_, range, multiply(limit, outermostStep(schedule_)));
    Value isWhole = arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::eq, limit, constant(0));
    outermostEnd_ = arith::SelectOp::create(builder_, loc_, isWhole, range, cut);
  }

  void loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(builder_, loc_, from, to, constant(step));
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  /// Visits the results of the task; `point` are the loop indices of result (i, j) of the block.
  void visitBlock(SmallVector<Value> loops, llvm::function_ref<void(Value, Value, SmallVector<Value>)> visit) {
    loop(constant(0), numRows_, 1, [&](Value i) {
      loop(constant(0), numColumns_, 1, [&](Value j) {
        SmallVector<Value> point = loops;
        point[row_] = add(firstRow_, i);
        point[column_] = add(firstColumn_, j);
        visit(i, j, point);
      });
    });
  }

  /// Reduction loops outside of the block: those before the blocked one, then that one in steps.
  void emitOuterReductions(size_t depth, SmallVector<Value> loops) {
    unsigned dim = schedule_.reductions[depth];
    bool isBlocked = depth == blocks_.blockedReduction;
    int64_t step = isBlocked ? blocks_.blockedLength : 1;
    loop(constant(0), depth == 0 ? outermostEnd_ : constant(ranges_[dim]), step, [&](Value first) {
      SmallVector<Value> inner = loops;
      inner[dim] = first;
      if (!isBlocked)
        return emitOuterReductions(depth + 1, inner);
      firstDepth_ = first;
      blockedCount_ = lengthOf(dim, first, blocks_.blockedLength);
      if (blocks_.right == Right::Panel)
        emitPanel(inner);
      emitTiles(inner);
    });
  }

  /// Visits the reduction points of the block; `depth` is the row of the panel.
  void visitReductions(SmallVector<Value> loops, llvm::function_ref<void(Value, SmallVector<Value>)> visit) {
    visitReductionsFrom(blocks_.blockedReduction, loops, {}, {},
                        [&](Value depth, SmallVector<Value> point, ValueRange) {
                          visit(depth, point);
                          return SmallVector<Value>();
                        });
  }

  using ReductionFn = llvm::function_ref<SmallVector<Value>(Value, SmallVector<Value>, ValueRange)>;
  SmallVector<Value> visitReductionsFrom(size_t level, SmallVector<Value> loops, Value depth,
                                         SmallVector<Value> carried, ReductionFn step) {
    if (level == schedule_.reductions.size())
      return step(depth, loops, carried);
    unsigned dim = schedule_.reductions[level];
    bool isBlocked = level == blocks_.blockedReduction;
    Value count = isBlocked ? blockedCount_ : constant(ranges_[dim]);
    auto loop = scf::ForOp::create(builder_, loc_, constant(0), count, constant(1), carried);
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    loops[dim] = isBlocked ? add(firstDepth_, i) : i;
    Value position = isBlocked ? i : add(multiply(depth, ranges_[dim]), i);
    SmallVector<Value> arguments(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    SmallVector<Value> next = visitReductionsFrom(level + 1, loops, position, arguments, step);
    if (!carried.empty())
      scf::YieldOp::create(builder_, loc_, next);
    return SmallVector<Value>(loop.getResults().begin(), loop.getResults().end());
  }

  /// Copies the block of the second input to the panel, rows of which are contiguous along the columns.
  void emitPanel(SmallVector<Value> loops) {
    auto copy = [&](Value depth, Value j, SmallVector<Value> point) {
      point[column_] = add(firstColumn_, j);
      Value value = body_.load(builder_, loc_, 1, point);
      memref::StoreOp::create(builder_, loc_, value, panel_, ValueRange{depth, j});
    };
    // Along the direction in which the input is contiguous.
    unsigned innermost = schedule_.reductions.back();
    if (strideAlong(op_, op_->getOpOperand(1), innermost) == 1)
      return loop(constant(0), numColumns_, 1, [&](Value j) {
        visitReductions(loops, [&](Value depth, SmallVector<Value> point) { copy(depth, j, point); });
      });
    visitReductions(loops, [&](Value depth, SmallVector<Value> point) {
      loop(constant(0), numColumns_, 1, [&](Value j) { copy(depth, j, point); });
    });
  }

  void emitTiles(SmallVector<Value> loops) {
    if (blocks_.right == Right::Dot)
      // Columns stay in the first-level cache while rows, which the second level holds, pass by.
      return loop(constant(0), numColumns_, blocks_.tileColumns(), [&](Value j) {
        SmallVector<Value> columns = lines(column_, firstColumn_, j, blocks_.tileVectors, blocks_.columns);
        loop(constant(0), numRows_, blocks_.tileRows, [&](Value i) {
          emitDotTile(loops, i, j, lines(row_, firstRow_, i, blocks_.tileRows, blocks_.rows), columns);
        });
      });
    loop(constant(0), numRows_, blocks_.tileRows, [&](Value i) {
      SmallVector<Value> rows = lines(row_, firstRow_, i, blocks_.tileRows, blocks_.rows);
      loop(constant(0), numColumns_, blocks_.tileColumns(), [&](Value j) { emitTile(loops, i, j, rows); });
    });
  }

  /// Rows or columns of a tile. Those beyond the last one repeat it; their results are never stored.
  SmallVector<Value> lines(unsigned dim, Value first, Value position, int64_t count, int64_t block) {
    SmallVector<Value> lines;
    for (int64_t i = 0; i < count; ++i) {
      Value line = add(add(first, position), constant(i));
      if (ranges_[dim] % count != 0 || block % count != 0)
        line = arith::MinUIOp::create(builder_, loc_, line, constant(ranges_[dim] - 1));
      lines.push_back(line);
    }
    return lines;
  }

  /// Position of tile element (row, vector) in the block of results.
  SmallVector<Value> tilePosition(Value i, Value j, int64_t row, int64_t vector) {
    return {add(i, constant(row)), add(j, constant(vector * blocks_.vectorLength))};
  }

  bool isVector() { return blocks_.vectorLength > 1; }
  Type vectorOf(Type element) { return isVector() ? VectorType::get({blocks_.vectorLength}, element) : element; }

  Value load(Value memory, ValueRange position) {
    Type element = cast<MemRefType>(memory.getType()).getElementType();
    if (!isVector())
      return memref::LoadOp::create(builder_, loc_, memory, position);
    return vector::LoadOp::create(builder_, loc_, cast<VectorType>(vectorOf(element)), memory, position);
  }

  void emitTile(SmallVector<Value> loops, Value i, Value j, ArrayRef<Value> rows) {
    SmallVector<Value> sums;
    for (int64_t r = 0; r < blocks_.tileRows; ++r)
      for (int64_t v = 0; v < blocks_.tileVectors; ++v)
        sums.push_back(load(results_, tilePosition(i, j, r, v)));
    auto step = [&](Value depth, SmallVector<Value> point, ValueRange carried) {
      SmallVector<Value> left, right, next;
      for (Value row : rows) {
        point[row_] = row;
        Value value = body_.load(builder_, loc_, 0, point);
        left.push_back(isVector() ? vector::BroadcastOp::create(builder_, loc_, vectorOf(value.getType()), value)
                                  : value);
      }
      for (int64_t v = 0; v < blocks_.tileVectors; ++v)
        right.push_back(loadRight(depth, add(j, constant(v * blocks_.vectorLength)), point));
      for (int64_t r = 0; r < blocks_.tileRows; ++r)
        for (int64_t v = 0; v < blocks_.tileVectors; ++v)
          next.push_back(combine(left[r], right[v], carried[r * blocks_.tileVectors + v], point));
      return next;
    };
    SmallVector<Value> totals = visitReductionsFrom(blocks_.blockedReduction, loops, {}, sums, step);
    for (int64_t r = 0; r < blocks_.tileRows; ++r)
      for (int64_t v = 0; v < blocks_.tileVectors; ++v) {
        Value total = totals[r * blocks_.tileVectors + v];
        SmallVector<Value> position = tilePosition(i, j, r, v);
        if (isVector())
          vector::StoreOp::create(builder_, loc_, total, results_, position);
        else
          memref::StoreOp::create(builder_, loc_, total, results_, position);
      }
    unrollReduction(totals.front());
  }

  Value loadRight(Value depth, Value column, SmallVector<Value> point) {
    if (blocks_.right == Right::Panel)
      return load(panel_, {depth, column});
    point[column_] = add(firstColumn_, column);
    return body_.loadVector(builder_, loc_, 1, point, cast<VectorType>(vectorOf(elementType(1))));
  }

  /// A tile of dot products: vectors of products along the block of the reduction, summed up at its end.
  void emitDotTile(SmallVector<Value> loops, Value i, Value j, ArrayRef<Value> rows, ArrayRef<Value> columns) {
    auto vector = VectorType::get({blocks_.vectorLength}, resultType());
    Value zero = arith::ConstantOp::create(builder_, loc_, builder_.getZeroAttr(vector));
    Value end = blockedCount_;
    bool hasRest = ranges_[schedule_.reductions.back()] % blocks_.vectorLength != 0;
    if (hasRest)
      end = arith::SubIOp::create(builder_, loc_, end,
                                  arith::RemUIOp::create(builder_, loc_, end, constant(blocks_.vectorLength)));
    SmallVector<Value> sums(rows.size() * columns.size(), zero);
    sums = emitDotLoop(loops, constant(0), end, blocks_.vectorLength, sums, rows, columns,
                       [&](unsigned operand, SmallVector<Value> point) {
                         return body_.loadVector(builder_, loc_, operand, point, vector);
                       });
    for (auto [position, sum] : llvm::enumerate(sums)) {
      Value result = memref::LoadOp::create(builder_, loc_, results_, resultPosition(i, j, position, columns.size()));
      sum = vector::ReductionOp::create(builder_, loc_, vector::CombiningKind::ADD, sum, result,
                                        arith::FastMathFlags::reassoc);
    }
    if (hasRest)
      sums = emitDotLoop(
          loops, end, blockedCount_, 1, sums, rows, columns,
          [&](unsigned operand, SmallVector<Value> point) { return body_.load(builder_, loc_, operand, point); });
    for (auto [position, sum] : llvm::enumerate(sums))
      memref::StoreOp::create(builder_, loc_, sum, results_, resultPosition(i, j, position, columns.size()));
  }

  SmallVector<Value> resultPosition(Value i, Value j, size_t position, size_t numColumns) {
    return {add(i, constant(position / numColumns)), add(j, constant(position % numColumns))};
  }

  /// Adds products of `rows` and `columns` to `sums` for iterations [from, to) of the block.
  SmallVector<Value> emitDotLoop(SmallVector<Value> loops, Value from, Value to, int64_t step, SmallVector<Value> sums,
                                 ArrayRef<Value> rows, ArrayRef<Value> columns,
                                 llvm::function_ref<Value(unsigned, SmallVector<Value>)> load) {
    auto loop = scf::ForOp::create(builder_, loc_, from, to, constant(step), sums);
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(loop.getBody());
    loops[schedule_.reductions.back()] = add(firstDepth_, loop.getInductionVar());
    SmallVector<Value> left, right, next;
    for (Value row : rows) {
      loops[row_] = row;
      left.push_back(load(0, loops));
    }
    for (Value column : columns) {
      loops[column_] = column;
      right.push_back(load(1, loops));
    }
    for (auto [position, sum] : llvm::enumerate(loop.getRegionIterArgs()))
      next.push_back(combine(left[position / columns.size()], right[position % columns.size()], sum, loops));
    scf::YieldOp::create(builder_, loc_, next);
    return SmallVector<Value>(loop.getResults().begin(), loop.getResults().end());
  }

  /// The body of the nest, on vectors where there are any.
  Value combine(Value left, Value right, Value sum, SmallVector<Value> point) {
    if (!isa<VectorType>(sum.getType()))
      return body_.emit(builder_, loc_, {left, right}, sum, point)[0];
    IRMapping mapping;
    mapping.map(op_.getBody()->getArguments(), ValueRange{left, right, sum});
    auto widened = [&](Value value) -> Value {
      Value mapped = mapping.lookupOrDefault(value);
      if (isa<VectorType>(mapped.getType()))
        return mapped;
      return vector::BroadcastOp::create(builder_, loc_, vectorOf(mapped.getType()), mapped);
    };
    for (Operation &inner : op_.getBody()->without_terminator()) {
      SmallVector<Value> operands = llvm::map_to_vector(inner.getOperands(), widened);
      OperationState state(loc_, inner.getName(), operands, {vectorOf(inner.getResult(0).getType())}, inner.getAttrs());
      mapping.map(inner.getResult(0), builder_.create(state)->getResult(0));
    }
    return widened(op_.getBody()->getTerminator()->getOperand(0));
  }

  OpBuilder &builder_;
  linalg::GenericOp op_;
  NestBody &body_;
  const NestSchedule &schedule_;
  const ContractionBlocks &blocks_;
  SmallVector<int64_t> ranges_;
  Location loc_;
  unsigned row_, column_;
  Value results_; ///< rows x columns of the block.
  Value panel_;   ///< depth x columns of the second input.
  Value outermostEnd_;
  Value firstRow_, firstColumn_, numRows_, numColumns_, firstDepth_, blockedCount_;
};

} // namespace

void emitBlockedContraction(OpBuilder &builder, linalg::GenericOp op, NestBody &body, const NestSchedule &schedule,
                            Value status, SmallVector<Value> loops) {
  BlockedContractionEmitter(builder, op, body, schedule).emit(status, loops);
}

void unrollReduction(Value total) {
  auto loop = total.getDefiningOp<scf::ForOp>();
  while (auto inner = loop.getBody()->getTerminator()->getOperand(0).getDefiningOp<scf::ForOp>())
    loop = inner;
  (void)loopUnrollByFactor(loop, unrolledSteps);
}

double outermostTrips(const NestSchedule &schedule, ArrayRef<int64_t> ranges) {
  return double(ranges[schedule.reductions.front()]) / double(outermostStep(schedule));
}

} // namespace nearbank::codegen
