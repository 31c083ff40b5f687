// SPDX-License-Identifier: Apache-2.0
// Chooses which parallel loops of a nest are shared out among DPUs, and into how many parts.
#pragma once

#include "compiler/codegen/upmem/DpuNest.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace nearbank::codegen {

/// Of all ways to cut up to three parallel loops, the one with the least time for a kernel and its transfers (PL-10 of
/// docs/model.md, roughly) that fits MRAM.
/// @param place fills in the layout's operands for its splits
/// @return false when nothing fits; `reason` then says how many DPUs it would take
bool chooseSplits(DpuNest &nest, DpuKernel &layout, const dpu::DpuConfig &config,
                  llvm::function_ref<void(DpuNest &)> place, std::string &reason);

/// Issue slots of one iteration of the body, at published costs, with its loop (DPU-2 of docs/model.md).
double bodySlots(mlir::linalg::GenericOp op, const dpu::DpuConfig &config);

} // namespace nearbank::codegen
