// SPDX-License-Identifier: Apache-2.0
// Follows a memref through views to the allocation, argument or constant that owns its memory.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace nearbank::loopnest {

/// True for operations that only reinterpret memory: subviews, reshapes, casts.
bool isViewOperation(mlir::Operation *op);

/// The value that owns the memory behind `view`.
mlir::Value bufferRoot(mlir::Value view);

/// Layout of a memref relative to its root, in elements. Fails when a stride or the offset is not static.
struct StaticLayout {
  int64_t offset = 0;
  llvm::SmallVector<int64_t> strides;
};
llvm::FailureOr<StaticLayout> staticLayout(mlir::MemRefType type);

} // namespace nearbank::loopnest
