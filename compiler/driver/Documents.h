// SPDX-License-Identifier: Apache-2.0
// Renders programs, plans and run records as JSON; docs/reference/run.schema.json describes the result.
#pragma once

#include "compiler/driver/CompiledProgram.h"

#include <string>

namespace nearbank::driver {

/// Version of the LLVM that generates code.
std::string llvmVersion();

/// Inputs, outputs, nests and kernels of a program.
std::string describeJson(const Program &program);

/// {"nests": [...], "summary": {...}, "crossings": [...], "message": str} of a plan. Times carry their kind.
std::string planJson(const CompiledProgram &compiled, const Plan &plan);

/// {"launches": [...], "crossings": [...], "wallTime": Q} of a run.
std::string runJson(const Program &program, const RunRecord &record, const MachineConfig &machine);

} // namespace nearbank::driver
