// SPDX-License-Identifier: Apache-2.0
// Compiles kernels for the machine that Nearbank runs on and keeps the code alive.
#pragma once

#include "compiler/codegen/Lowering.h"
#include "runtime/Program.h"

#include <memory>

namespace nearbank::codegen {

/// Native code of some kernels. Function pointers are valid as long as the object lives.
class HostCode {
public:
  HostCode();
  ~HostCode();

  /// Compiles kernels; those already compiled for the same target are skipped.
  /// @throws InternalError NB0901 when LLVM refuses the code
  void add(std::unique_ptr<LoweredKernels> lowered, Target target);

  KernelFunction lookup(const std::string &kernel, Target target) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace nearbank::codegen
