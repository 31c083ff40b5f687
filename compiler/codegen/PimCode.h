// SPDX-License-Identifier: Apache-2.0
// Compiles kernels to static RV64 executables for near-memory cores.
#pragma once

#include "compiler/codegen/Lowering.h"
#include "runtime/Program.h"

namespace nearbank::codegen {

/// Compiles one lowered kernel. On failure the ELF is empty and `failure` says why.
PimKernel compilePim(LoweredKernels &lowered, const std::string &kernel, std::string &failure);

} // namespace nearbank::codegen
