// SPDX-License-Identifier: Apache-2.0
// Machine code of a program's kernels for every machine that they run on, made when it is first asked for.
#pragma once

#include "compiler/codegen/HostCode.h"
#include "runtime/Machine.h"
#include "runtime/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace nearbank::driver {

/// Code for one kind of simulated core, by kernel index.
struct SimulatedCode {
  std::vector<PimKernel> kernels;    ///< Empty `elf` when there is no code.
  std::vector<std::string> failures; ///< Why; empty when there is code.
};

class KernelCode {
public:
  /// @param nests module that holds the nests; it and `program` outlive this object
  KernelCode(mlir::ModuleOp nests, const Program &program);

  /// Native code of all kernels; `run` and `trace` are null where nothing asked for them.
  const std::vector<HostKernel> &native() const { return native_; }
  /// Compiles native code where it is missing.
  /// @throws InternalError NB0901 when the code generator refuses a kernel
  void requireNative(const std::vector<uint32_t> &kernels, bool isTrace);

  /// Code of all kernels for the cores of a simulated machine.
  /// @param progress told how many kernels are done; may be null
  /// @param upmemHome folder of the compiler driver for DPUs; for machines that have them
  /// @throws DeviceError NB0809, NB0813 when DPU programs cannot be compiled here
  const SimulatedCode &simulated(const MachineConfig &machine, const std::function<void(int64_t)> &progress,
                                 const std::string &upmemHome = "");

private:
  void bindNative(uint32_t index, codegen::Target target, const std::map<std::string, int64_t> &tasks,
                  const std::set<std::string> &usingBlas);
  void compileSimulated(uint32_t kernel, const MachineConfig &machine, SimulatedCode &code);
  void compileForDpus(uint32_t kernel, const MachineConfig &machine, const std::string &upmemHome, SimulatedCode &code);

  mlir::ModuleOp nests_;
  const Program &program_;
  codegen::HostCode hostCode_;
  std::vector<HostKernel> native_;
  std::map<std::string, SimulatedCode> simulated_; ///< By what code depends on in a machine.
};

} // namespace nearbank::driver
