// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/dpu/Instruction.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nearbank::dpu {

/// Address of the first instruction of every program.
inline constexpr uint32_t TextBase = 0x80000000u;
inline constexpr uint32_t MramBase = 0x08000000u;
inline constexpr uint32_t AtomicBase = 0xf0000000u;
inline constexpr uint32_t WramBytes = 0x10000u;

/// Decodes RV32IM and custom-0; what is unknown becomes Op::Illegal.
std::vector<Instruction> decodeText(std::span<const uint32_t> words);

} // namespace nearbank::dpu
