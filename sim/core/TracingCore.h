// SPDX-License-Identifier: Apache-2.0
// A core that executes and leaves behind what it did, for a timing model that follows at its own pace: the blocks it
// entered and the addresses that its loads and stores touched.
#pragma once

#include "sim/core/Core.h"

#include <array>
#include <vector>

namespace nearbank::sim {

/// One access of an instruction; vector instructions may make several. What vset* has set is recorded as well: vl as
/// the address, the low bits of vtype as bytes.
struct TracedAccess {
  uint64_t address = 0;
  uint32_t bytes = 0;
  uint16_t index = 0; ///< Of the instruction in its block.
  bool isStore = false;
};

/// A block that ran whole.
struct TracedBlock {
  const Block *block = nullptr;
  uint32_t firstAccess = 0;                  ///< Into accesses(); they end where the next block's begin.
  uint32_t vectorLength = 0, vectorType = 0; ///< vl and the low bits of vtype at its start.
};

class TracingCore : public Core {
public:
  explicit TracingCore(const CoreParameters &parameters) : Core(parameters) {}

  void start(Translation &translation, const GuestMemory &memory, uint64_t pc, uint64_t haltPc);
  /// Forgets the trace and executes until it has `blockLimit` blocks, the kernel returns, or it traps. The host's
  /// floating-point environment must be the default one.
  void run(size_t blockLimit);

  const std::vector<TracedBlock> &blocks() const { return blocks_; }
  const std::vector<TracedAccess> &accesses() const { return accesses_; }
  /// First instruction after the traced blocks; 0 when the kernel has returned.
  uint64_t nextPc() const { return state == CoreState::Ready ? timed->block->pc : 0; }

  // Called by the interpreter.
  /// Records an access. @return its host address, or null when it traps
  char *trace(uint64_t address, unsigned bytes, bool isStore, unsigned index) {
    const Window &window = windows_[isStore][index % numWindows];
    uint64_t offset = address - window.begin;
    if (offset >= window.bytes || window.bytes - offset < bytes)
      return nullptr;
    accesses_.push_back({address, bytes, static_cast<uint16_t>(index), isStore});
    return reinterpret_cast<char *>(address + static_cast<uint64_t>(window.hostDelta));
  }
  /// As trace(), for any access; core.op and core.timed must be set.
  char *access(uint64_t address, unsigned bytes, bool isStore, unsigned index);
  /// Records a block; false when the trace is full.
  bool enter(TimedBlock *next) {
    if (blocks_.size() >= blockLimit_)
      return false;
    blocks_.push_back({next->block, static_cast<uint32_t>(accesses_.size()), static_cast<uint32_t>(vector.vl),
                       static_cast<uint32_t>(vector.vtype & 0xff)});
    return true;
  }
  /// Records what a vset* has set.
  void traceVector(unsigned index) {
    accesses_.push_back({vector.vl, static_cast<uint32_t>(vector.vtype & 0xff), static_cast<uint16_t>(index), false});
  }
  TimedBlock *follow(unsigned edge, uint64_t targetPc);

private:
  /// The memory range that an instruction touched last.
  struct Window {
    uint64_t begin = 0, bytes = 0;
    int64_t hostDelta = 0;
  };
  static constexpr size_t numWindows = 32;

  std::array<std::array<Window, numWindows>, 2> windows_{}; ///< By isStore, then instruction.
  size_t blockLimit_ = 0;
  std::vector<TracedBlock> blocks_;
  std::vector<TracedAccess> accesses_;
};

/// As interpreterHandlers and interpret (Interpreter.h), for tracing cores.
const void *const *tracingHandlers();
void interpret(TracingCore &core);

namespace tracingBaseline {
void run(TracingCore *core, const void *const **handlers);
}
namespace tracingFma {
void run(TracingCore *core, const void *const **handlers);
}

} // namespace nearbank::sim
