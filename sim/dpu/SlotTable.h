// SPDX-License-Identifier: Apache-2.0
// How many issue slots a DPU spends where RV32IM needs a sequence of instructions.
#pragma once

#include "sim/dpu/DpuConfig.h"
#include "sim/dpu/Instruction.h"

#include <vector>

namespace nearbank::dpu {

/// Sets Instruction::slots by the table in docs/model.md (DPU-2). Sequences that a jump enters in the middle stay as
/// they are.
void assignSlots(std::vector<Instruction> &code, const DpuConfig &config);

} // namespace nearbank::dpu
