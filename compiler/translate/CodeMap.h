// SPDX-License-Identifier: Apache-2.0
// Which parts a DPU program is translated in, and where native code may begin.
#pragma once

#include "sim/dpu/Program.h"

#include <cstdint>
#include <vector>

namespace nearbank::translate {

/// Instructions [begin, end) that become one native function; mostly a function of the source.
struct Region {
  uint32_t begin = 0, end = 0;
};

class CodeMap {
public:
  explicit CodeMap(const dpu::Program &program);

  /// The region that instruction `pc` lies in.
  Region regionOf(uint32_t pc) const;
  /// Whether other code, or the engine, may jump to `pc`: functions, instructions after calls and after what engines
  /// execute, heads of loops, and what tables in WRAM name.
  bool isEntry(uint32_t pc) const { return isEntry_[pc]; }
  /// By instruction: a load in a loop that only another tasklet's store can end.
  const std::vector<bool> &spinLoads() const { return isSpinLoad_; }

private:
  void findEntries(const dpu::Program &program);
  void findSpinLoop(const std::vector<dpu::Instruction> &code, uint32_t head, uint32_t last);
  std::vector<uint32_t> starts_; // Sorted.
  std::vector<bool> isEntry_, isSpinLoad_;
};

} // namespace nearbank::translate
