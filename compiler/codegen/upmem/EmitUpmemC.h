// SPDX-License-Identifier: Apache-2.0
// Turns a nest into readable UPMEM C: a DPU program, and how the nest is shared out among DPUs.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/DpuKernel.h"
#include "sim/dpu/DpuConfig.h"

#include <memory>
#include <string>

namespace nearbank::codegen {

/// @param kernel an outlined nest; stays as it is
/// @return null when the nest cannot run on these DPUs; `reason` then says why
std::unique_ptr<DpuKernel> emitUpmemC(mlir::func::FuncOp kernel, const dpu::DpuConfig &config, std::string &reason);

} // namespace nearbank::codegen
