// SPDX-License-Identifier: Apache-2.0
// Chooses the blocks of contractions for simulated cores.
#pragma once

#include "compiler/codegen/NestSchedule.h"

namespace nearbank::codegen {

/// Blocks that cost least for a contraction with rows and columns; nothing where the simple form does as well.
/// @param schedule has its rows, columns and reductions
std::optional<ContractionBlocks> chooseBlocks(mlir::linalg::GenericOp op, llvm::ArrayRef<int64_t> ranges,
                                              const NestSchedule &schedule, const ScheduleTarget &target);

} // namespace nearbank::codegen
