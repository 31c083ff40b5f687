// SPDX-License-Identifier: Apache-2.0
// Emitted C as projects for a Makefile, and as DPU programs, by the project's own compiler driver for DPUs.
#pragma once

#include "runtime/DpuKernel.h"
#include "runtime/Program.h"

#include <cstddef>
#include <string>
#include <vector>

namespace nearbank::driver {

/// @param upmemHome folder that holds bin/dpu-upmem-dpurte-clang
/// @throws DeviceError NB0809 without the driver, NB0813 when it fails
std::vector<std::byte> compileDpuProgram(const std::string &source, int64_t tasklets, const std::string &upmemHome);

/// Writes dpu.c, host.c and a Makefile. @throws DeviceError NB0601 when `folder` cannot be written
void writeUpmemProject(const std::string &folder, const DpuKernel &kernel, const NestKernel &nest);

} // namespace nearbank::driver
