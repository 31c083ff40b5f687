// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace nearbank::codegen {

/// Vectorising optimisation for a machine with a C library, the same for one without (no loop becomes a memset),
/// or scalar optimisation for address traces and for translated guest code.
enum class Optimization { Vectorized, Freestanding, Scalar };
void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine, Optimization optimization);

} // namespace nearbank::codegen
