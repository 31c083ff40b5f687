// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/LowerBlas.h"
#include "compiler/codegen/LowerContraction.h"
#include "compiler/codegen/NestBody.h"
#include "compiler/codegen/NestSchedule.h"
#include "compiler/codegen/Passes.h"
#include "compiler/loopnest/NestFacts.h"
#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace nearbank::codegen {
#define GEN_PASS_DEF_LOWERNESTSPASS
#include "compiler/codegen/Passes.h.inc"

namespace {

/// Lets the optimiser contract multiply-adds everywhere, and reorder the sums that reductions carry.
void relaxFloatMath(linalg::GenericOp op) {
  MLIRContext *context = op.getContext();
  op.getBody()->walk([&](Operation *inner) {
    auto fastMath = dyn_cast<arith::ArithFastMathInterface>(inner);
    if (!fastMath)
      return;
    auto flags = arith::FastMathFlags::contract;
    bool isCarried = llvm::any_of(inner->getOperands(), [&](Value value) {
      auto argument = dyn_cast<BlockArgument>(value);
      return argument && argument.getOwner() == op.getBody() && argument.getArgNumber() >= op.getNumDpsInputs();
    });
    // LLVM's backend reorders a sum only where the sign of a zero is left open as well.
    if (op.getNumReductionLoops() > 0 && isCarried)
      flags = flags | arith::FastMathFlags::reassoc | arith::FastMathFlags::nsz;
    inner->setAttr(fastMath.getFastMathAttrName(), arith::FastMathFlagsAttr::get(context, flags));
  });
}

/// Rewrites one kernel function in place.
class KernelLowering {
public:
  KernelLowering(func::FuncOp kernel, bool allowsBlas, const ScheduleTarget &target)
      : kernel_(kernel), allowsBlas_(allowsBlas), target_(target), builder_(kernel) {}

  LogicalResult run() {
    addTaskArguments();
    int64_t tasks = 1;
    if (linalg::GenericOp op = loopnest::nestOf(kernel_)) {
      relaxFloatMath(op);
      loc_ = op.getLoc();
      op_ = op;
      ranges_ = op.getStaticLoopRanges();
      builder_.setInsertionPoint(op);
      body_.emplace(op, status_);
      std::optional<MatrixProduct> product = allowsBlas_ ? matchMatrixProduct(op) : std::nullopt;
      if (product && isWorthBlas(*product, ranges_) && startsFromZeroOrContent()) {
        tasks = emitBlasCall(*product);
      } else {
        schedule_ = scheduleNest(op, target_);
        tasks = schedule_.numTasks(ranges_);
        if (schedule_.blocks)
          kernel_->setAttr(reductionTripsAttr, builder_.getF64FloatAttr(outermostTrips(schedule_, ranges_)));
        emitTasks();
      }
      op.erase();
    } else {
      lowerGeneral();
    }
    kernel_->setAttr(tasksAttr, builder_.getI64IntegerAttr(tasks));
    return success();
  }

private:
  /// Simulated kernels have a third one: trips that cut reductions short.
  int64_t statusWords() const { return target_.blocksContractions ? 3 : 2; }

  /// Free offsets become zero, since callers pass adjusted pointers; begin, end and status are appended.
  void addTaskArguments() {
    Block &entry = kernel_.getBody().front();
    MLIRContext *context = kernel_.getContext();
    for (BlockArgument argument : entry.getArguments()) {
      auto type = cast<MemRefType>(argument.getType());
      if (auto strided = dyn_cast<StridedLayoutAttr>(type.getLayout())) {
        auto layout = StridedLayoutAttr::get(context, 0, strided.getStrides());
        argument.setType(MemRefType::get(type.getShape(), type.getElementType(), layout, type.getMemorySpace()));
      }
      if (!kernel_.getArgAttr(argument.getArgNumber(), loopnest::aliasAttr))
        kernel_.setArgAttr(argument.getArgNumber(), "llvm.noalias", builder_.getUnitAttr());
    }
    // Appending keeps the attributes of the memory arguments in place.
    Type index = builder_.getIndexType(), status = MemRefType::get({statusWords()}, builder_.getI64Type());
    unsigned count = entry.getNumArguments();
    for (Type type : {index, index, status})
      (void)kernel_.insertArgument(kernel_.getNumArguments(), type, {}, kernel_.getLoc());
    SmallVector<Type> types(entry.getArgumentTypes());
    kernel_.setFunctionType(FunctionType::get(context, types, {}));
    begin_ = entry.getArgument(count);
    end_ = entry.getArgument(count + 1);
    status_ = entry.getArgument(count + 2);
  }

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder_, loc_, value); }

  /// Emits the loop over tasks; `loops` of each task start at its tile's first iterations.
  void emitTasks() {
    auto loop = scf::ForOp::create(builder_, loc_, begin_, end_, constant(1));
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> loops(ranges_.size(), nullptr);
    SmallVector<int64_t> counts;
    for (const Tile &tile : schedule_.tasks)
      counts.push_back(llvm::divideCeil(ranges_[tile.dim], tile.length));
    Value rest = loop.getInductionVar();
    for (size_t i = schedule_.tasks.size(); i-- > 0;) {
      const Tile &tile = schedule_.tasks[i];
      Value position = rest;
      if (i > 0) {
        // Task numbers are non-negative, and unsigned division by a constant is cheap on every target.
        position = arith::RemUIOp::create(builder_, loc_, rest, constant(counts[i]));
        rest = arith::DivUIOp::create(builder_, loc_, rest, constant(counts[i]));
      }
      loops[tile.dim] = tile.length == 1
                            ? position
                            : arith::MulIOp::create(builder_, loc_, position, constant(tile.length)).getResult();
    }
    switch (schedule_.form) {
    case NestSchedule::Form::Blocked:
      return emitBlockedContraction(builder_, op_, *body_, schedule_, status_, loops);
    case NestSchedule::Form::Contraction:
      return emitContraction(loops);
    case NestSchedule::Form::Reduction:
      return emitReductionPoint(loops);
    case NestSchedule::Form::Parallel:
      return emitParallel(loops);
    }
  }

  /// End of the tile that starts at `first`: a constant when tiles divide the loop.
  Value tileEnd(Value first, const Tile &tile) {
    Value end = arith::AddIOp::create(builder_, loc_, first, constant(tile.length));
    if (ranges_[tile.dim] % tile.length == 0)
      return end;
    return arith::MinUIOp::create(builder_, loc_, end, constant(ranges_[tile.dim]));
  }

  using BodyFn = llvm::function_ref<void(SmallVector<Value> loops)>;

  /// Emits a loop over `dim` in [from, to) and calls `body` inside.
  void emitLoop(unsigned dim, Value from, Value to, SmallVector<Value> loops, BodyFn body) {
    auto loop = scf::ForOp::create(builder_, loc_, from, to, constant(1));
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(loop.getBody());
    loops[dim] = loop.getInductionVar();
    body(loops);
  }

  /// Emits reduction loops from `depth` on that carry `accumulators`.
  using StepFn = llvm::function_ref<SmallVector<Value>(SmallVector<Value> loops, ValueRange accumulators)>;
  SmallVector<Value> emitReductionLoops(size_t depth, SmallVector<Value> loops, SmallVector<Value> accumulators,
                                        StepFn step) {
    if (depth == schedule_.reductions.size())
      return step(loops, accumulators);
    unsigned dim = schedule_.reductions[depth];
    auto loop = scf::ForOp::create(builder_, loc_, constant(0), constant(ranges_[dim]), constant(1), accumulators);
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(loop.getBody());
    loops[dim] = loop.getInductionVar();
    SmallVector<Value> carried(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    SmallVector<Value> next = emitReductionLoops(depth + 1, loops, carried, step);
    // A loop that carries nothing has its terminator already.
    if (!accumulators.empty())
      scf::YieldOp::create(builder_, loc_, next);
    return SmallVector<Value>(loop.getResults().begin(), loop.getResults().end());
  }

  /// Start values for accumulators; an output whose start is never read starts as zero.
  SmallVector<Value> startValues(ValueRange loops) {
    SmallVector<Value> values = body_->initialOutputs(builder_, loc_, loops);
    for (auto [output, value] : llvm::enumerate(values))
      if (!value) {
        Type element = cast<MemRefType>(op_.getDpsInits()[output].getType()).getElementType();
        value = arith::ConstantOp::create(builder_, loc_, builder_.getZeroAttr(element));
      }
    return values;
  }

  /// One point of a nest whose reductions run in registers.
  void emitReductionPoint(SmallVector<Value> loops) {
    SmallVector<Value> results =
        emitReductionLoops(0, loops, startValues(loops), [&](SmallVector<Value> inner, ValueRange accumulators) {
          return body_->emit(builder_, loc_, body_->loadInputs(builder_, loc_, inner), accumulators, inner);
        });
    storeAll(results, loops);
  }

  void emitParallel(SmallVector<Value> loops) {
    if (schedule_.tasks.empty()) // A nest without loops.
      return emitPoint(loops);
    const Tile &tile = schedule_.tasks.back();
    Value first = loops[tile.dim], last = tileEnd(first, tile);
    if (schedule_.reductions.empty())
      return emitTile(schedule_.tasks, loops);
    emitLoop(tile.dim, first, last, loops, [&](SmallVector<Value> inner) {
      for (auto [output, value] : llvm::enumerate(body_->initialOutputs(builder_, loc_, inner)))
        if (value)
          body_->storeOutput(builder_, loc_, output, value, inner);
    });
    emitReductionLoops(0, loops, {}, [&](SmallVector<Value> outer, ValueRange) {
      emitLoop(tile.dim, first, last, outer, [&](SmallVector<Value> inner) {
        SmallVector<Value> outputs;
        for (unsigned output = 0; output < op_.getNumDpsInits(); ++output)
          outputs.push_back(body_->load(builder_, loc_, op_.getNumDpsInputs() + output, inner));
        storeAll(body_->emit(builder_, loc_, body_->loadInputs(builder_, loc_, inner), outputs, inner), inner);
      });
      return SmallVector<Value>();
    });
  }

  /// Visits the points of the tiles that `loops` holds the starts of.
  void emitTile(ArrayRef<Tile> tiles, SmallVector<Value> loops) {
    if (tiles.empty())
      return emitPoint(loops);
    const Tile &tile = tiles.front();
    if (tile.length == 1 && tiles.size() > 1)
      return emitTile(tiles.drop_front(), loops);
    Value first = loops[tile.dim];
    emitLoop(tile.dim, first, tileEnd(first, tile), loops,
             [&](SmallVector<Value> inner) { emitTile(tiles.drop_front(), inner); });
  }

  void emitPoint(SmallVector<Value> loops) {
    storeAll(body_->emit(builder_, loc_, body_->loadInputs(builder_, loc_, loops),
                         body_->initialOutputs(builder_, loc_, loops), loops),
             loops);
  }

  void storeAll(ValueRange values, ValueRange loops) {
    for (auto [output, value] : llvm::enumerate(values))
      body_->storeOutput(builder_, loc_, output, value, loops);
  }

  /// One side of the register tile: its loop, when it has one, and its length.
  struct Side {
    std::optional<unsigned> dim;
    int64_t length = 1;
  };

  Side sideAlong(std::optional<unsigned> dim) {
    for (const Tile &tile : schedule_.tasks)
      if (tile.dim == dim)
        return {dim, tile.length};
    return {};
  }

  bool isRagged(const Side &side) { return side.dim && ranges_[*side.dim] % side.length != 0; }

  void emitContraction(SmallVector<Value> loops) {
    Side rows = sideAlong(schedule_.rowDim), columns = sideAlong(schedule_.columnDim);
    if (!isRagged(rows) && !isRagged(columns))
      return emitRegisterTile(loops, rows, columns);
    Value isFull = arith::ConstantIntOp::create(builder_, loc_, 1, 1);
    for (const Side &side : {rows, columns}) {
      if (!side.dim)
        continue;
      Value end = arith::AddIOp::create(builder_, loc_, loops[*side.dim], constant(side.length));
      Value fits = arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::ule, end, constant(ranges_[*side.dim]));
      isFull = arith::AndIOp::create(builder_, loc_, isFull, fits);
    }
    auto branch = scf::IfOp::create(builder_, loc_, isFull, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(branch.thenBlock());
    emitRegisterTile(loops, rows, columns);
    builder_.setInsertionPointToStart(branch.elseBlock());
    emitAlongSide(rows, loops, [&](SmallVector<Value> inner) {
      emitAlongSide(columns, inner, [&](SmallVector<Value> point) { emitReductionPoint(point); });
    });
  }

  /// Visits the points of a ragged tile along one side.
  void emitAlongSide(const Side &side, SmallVector<Value> loops, BodyFn body) {
    if (!side.dim)
      return body(loops);
    Value first = loops[*side.dim];
    emitLoop(*side.dim, first, tileEnd(first, {*side.dim, side.length}), loops, body);
  }

  /// Loop indices of element (row, column) of the register tile.
  SmallVector<Value> tilePoint(SmallVector<Value> loops, const Side &rows, const Side &columns, int64_t row,
                               int64_t column) {
    for (auto [side, steps] : {std::pair(rows, row), std::pair(columns, column)})
      if (side.dim && steps > 0)
        loops[*side.dim] = arith::AddIOp::create(builder_, loc_, loops[*side.dim], constant(steps));
    return loops;
  }

  void emitRegisterTile(SmallVector<Value> loops, const Side &rows, const Side &columns) {
    SmallVector<Value> start;
    for (int64_t row = 0; row < rows.length; ++row)
      for (int64_t column = 0; column < columns.length; ++column)
        llvm::append_range(start, startValues(tilePoint(loops, rows, columns, row, column)));
    auto step = [&](SmallVector<Value> inner, ValueRange accumulators) {
      // Each row of the first input and each column of the second is loaded once per step.
      SmallVector<Value> left, right, next;
      for (int64_t row = 0; row < rows.length; ++row)
        left.push_back(body_->load(builder_, loc_, 0, tilePoint(inner, rows, columns, row, 0)));
      for (int64_t column = 0; column < columns.length; ++column)
        right.push_back(body_->load(builder_, loc_, 1, tilePoint(inner, rows, columns, 0, column)));
      for (int64_t row = 0; row < rows.length; ++row)
        for (int64_t column = 0; column < columns.length; ++column)
          llvm::append_range(next, body_->emit(builder_, loc_, {left[row], right[column]},
                                               accumulators[row * columns.length + column],
                                               tilePoint(inner, rows, columns, row, column)));
      return next;
    };
    SmallVector<Value> results = emitReductionLoops(0, loops, start, step);
    // A full tile has no registers left for more than one step; with a vector unit, LLVM vectorises the loop instead.
    if (target_.blocksContractions && target_.vector.bits == 0 && !rows.dim)
      unrollReduction(results.front());
    for (int64_t row = 0; row < rows.length; ++row)
      for (int64_t column = 0; column < columns.length; ++column)
        body_->storeOutput(builder_, loc_, 0, results[row * columns.length + column],
                           tilePoint(loops, rows, columns, row, column));
  }

  int64_t emitBlasCall(const MatrixProduct &product) {
    kernel_->setAttr(blasAttr, builder_.getUnitAttr());
    auto initial = op_->getAttrOfType<ArrayAttr>(loopnest::initAttr);
    BlasArguments arguments{begin_, end_, !initial};
    return emitBlas(builder_, op_, product, arguments);
  }

  /// BLAS starts from zero or from the output's content only.
  bool startsFromZeroOrContent() {
    auto initial = op_->getAttrOfType<ArrayAttr>(loopnest::initAttr);
    auto constant = initial ? dyn_cast<FloatAttr>(initial[0]) : FloatAttr();
    return !initial || (constant && constant.getValue().isZero());
  }

  /// General code has no task loop: it runs when the one task is in range.
  void lowerGeneral() {
    SmallVector<cf::AssertOp> assertions;
    kernel_.walk([&](cf::AssertOp op) { assertions.push_back(op); });
    for (cf::AssertOp assertion : assertions) {
      OpBuilder builder(assertion);
      reportAssertion(builder, assertion.getLoc(), assertion.getArg(), status_);
      assertion.erase();
    }
    Block &entry = kernel_.getBody().front();
    SmallVector<Operation *> moved;
    for (Operation &op : entry.without_terminator())
      moved.push_back(&op);
    OpBuilder builder(entry.getTerminator());
    Location loc = kernel_.getLoc();
    Value isOurs = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, begin_, end_);
    auto branch = scf::IfOp::create(builder, loc, isOurs, /*withElseRegion=*/false);
    for (Operation *op : moved)
      op->moveBefore(branch.thenBlock()->getTerminator());
    kernel_.walk([&](memref::LoadOp load) {
      if (load.getMemRef() != status_)
        guardLoad(load, status_);
    });
  }

  func::FuncOp kernel_;
  bool allowsBlas_;
  ScheduleTarget target_;
  OpBuilder builder_;
  Location loc_ = UnknownLoc::get(kernel_.getContext());
  linalg::GenericOp op_;
  SmallVector<int64_t> ranges_;
  std::optional<NestBody> body_;
  NestSchedule schedule_;
  Value begin_, end_, status_;
};

struct LowerNests : impl::LowerNestsPassBase<LowerNests> {
  using LowerNestsPassBase::LowerNestsPassBase;
  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    getOperation().walk([&](func::FuncOp function) {
      if (function->hasAttr(loopnest::kernelAttr))
        kernels.push_back(function);
    });
    if (auto main = getOperation().lookupSymbol<func::FuncOp>("main"))
      main.erase();
    ScheduleTarget schedule;
    if (target == "pim")
      schedule = pimTarget({vectorBits});
    else if (target == "modelled-host")
      schedule = modelledHostTarget({vectorBits});
    for (func::FuncOp kernel : kernels)
      if (failed(KernelLowering(kernel, target == "host", schedule).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace nearbank::codegen
