// SPDX-License-Identifier: Apache-2.0
// The host side of an emitted nest: a program in C that shares operands out, launches the DPUs and collects results.
#pragma once

#include "runtime/DpuKernel.h"
#include "runtime/Program.h"

#include <string>

namespace nearbank::codegen {

/// Text of host.c, for the DPU program bin/dpu_code.
std::string emitUpmemHost(const DpuKernel &kernel, const NestKernel &nest);
/// Text of a Makefile in the manner of the SDK's examples.
std::string emitUpmemMakefile(const DpuKernel &kernel);

} // namespace nearbank::codegen
