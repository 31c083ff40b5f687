// SPDX-License-Identifier: Apache-2.0
#include "compiler/loopnest/BufferRoot.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace nearbank::loopnest {

bool isViewOperation(Operation *op) {
  return isa_and_nonnull<memref::SubViewOp, memref::ExpandShapeOp, memref::CollapseShapeOp, memref::CastOp,
                         memref::ReinterpretCastOp, memref::TransposeOp>(op);
}

Value bufferRoot(Value view) {
  while (isViewOperation(view.getDefiningOp()))
    view = view.getDefiningOp()->getOperand(0);
  return view;
}

FailureOr<StaticLayout> staticLayout(MemRefType type) {
  StaticLayout layout;
  if (failed(type.getStridesAndOffset(layout.strides, layout.offset)))
    return failure();
  if (ShapedType::isDynamic(layout.offset) || llvm::any_of(layout.strides, ShapedType::isDynamic))
    return failure();
  return layout;
}

} // namespace nearbank::loopnest
