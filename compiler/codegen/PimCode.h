// SPDX-License-Identifier: Apache-2.0
// Compiles kernels to static RV64 executables for the simulated cores.
#pragma once

#include "compiler/codegen/Lowering.h"
#include "runtime/Program.h"

namespace nearbank::codegen {

/// Compiles one kernel lowered for Target::Pim. On failure the ELF is empty and `failure` says why.
/// @param vector must be the one that it was lowered for
PimKernel compilePim(LoweredKernels &lowered, const std::string &kernel, std::string &failure, VectorUnit vector = {});

/// The same for Target::ModelledHost.
PimKernel compileModelledHost(LoweredKernels &lowered, const std::string &kernel, VectorUnit vector,
                              std::string &failure);

} // namespace nearbank::codegen
