// SPDX-License-Identifier: Apache-2.0
// A DPU program: decoded code, initial memory and the symbols that a host may use.
#pragma once

#include "sim/dpu/DpuConfig.h"
#include "sim/dpu/Instruction.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nearbank::dpu {

struct Symbol {
  uint32_t address = 0, size = 0;
  bool isForHost = false; ///< Lies in a section that hosts may reach: __host, __mram or __mram_noinit.
  bool isFunction = false;
};

struct MemoryImage {
  uint32_t address = 0;
  std::vector<std::byte> bytes;
};

class Program {
public:
  /// @throws UserError NB0801 when the file is no program for this machine, or does not fit
  static std::shared_ptr<const Program> load(std::span<const std::byte> file, const std::string &path,
                                             const DpuConfig &config);

  std::vector<Instruction> code;
  std::vector<MemoryImage> wram, mram;
  std::map<std::string, Symbol, std::less<>> symbols;
  unsigned numTasklets = 1;
  uint32_t stackStart[25] = {}; ///< Where the stack of each tasklet ends below; [i+1] is where that of i begins.
  std::string path;             ///< Empty when loaded from memory.

  const Symbol *find(std::string_view name) const;
  /// "function+0x10" for an address in the code.
  std::string describe(uint32_t address) const;
  /// "0x120 (variable+0x8)" for an address in WRAM, or an offset in MRAM.
  std::string describeData(uint32_t address, bool isMram) const;
};

} // namespace nearbank::dpu
