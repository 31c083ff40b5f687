// SPDX-License-Identifier: Apache-2.0
// Lowers contractions to blocks that stay in a core's caches and tiles that stay in its registers, vectors if it has
// any.
#pragma once

#include "compiler/codegen/NestBody.h"
#include "compiler/codegen/NestSchedule.h"

namespace nearbank::codegen {

/// Whether the body can run on vectors along the columns: elementwise arithmetic on floats and nothing else.
bool isVectorizableContraction(mlir::linalg::GenericOp op);

/// Emits one task of a blocked contraction: the block of results whose first row and column `loops` holds. Scratch
/// memory is allocated at the entry of the kernel and shared by all tasks.
/// @param status buffer whose third word limits the trips of the outermost reduction loop when it is not zero
void emitBlockedContraction(mlir::OpBuilder &builder, mlir::linalg::GenericOp op, NestBody &body,
                            const NestSchedule &schedule, mlir::Value status, llvm::SmallVector<mlir::Value> loops);

/// Unrolls the innermost of the reduction loops that compute `total`; what is left over runs in a loop of its own.
void unrollReduction(mlir::Value total);

/// Trips of the outermost reduction loop of a blocked contraction: its iterations over those of one trip.
double outermostTrips(const NestSchedule &schedule, llvm::ArrayRef<int64_t> ranges);

} // namespace nearbank::codegen
