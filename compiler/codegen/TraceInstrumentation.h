// SPDX-License-Identifier: Apache-2.0
// Makes compiled kernels report their memory accesses and operation counts.
#pragma once

#include "llvm/IR/Module.h"

namespace nearbank::codegen {

/// Inserts a call of nearbankTraceAccess before every load and store of memory that outlives the kernel, and of
/// nearbankTraceOperations with the number of other instructions at the end of every basic block. Runs after
/// scalar optimisation, so that values kept in registers are not counted.
void instrumentAccesses(llvm::Module &module);

} // namespace nearbank::codegen
