// SPDX-License-Identifier: Apache-2.0
// Watches the instructions of one launch for what hardware would not forgive.
#pragma once

#include "runtime/Error.h"
#include "sim/dpu/Instruction.h"
#include "sim/dpu/Race.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nearbank::dpu {

class Dpu;
class Program;
struct Tasklet;

struct Finding {
  enum Kind : uint8_t { UnalignedDma, EmptyDma, MramAsWram, Mutex, Race, OutOfBounds } kind = Race;
  uint32_t pc = 0; ///< Address of the instruction.
  unsigned tasklet = 0;
  uint32_t address = 0; ///< Of the access, or of the lock.
  bool isMram = false, isWrite = false;
  std::string detail; ///< What is wrong with this access.
  // Of a race: the access before.
  uint32_t otherPc = 0;
  unsigned otherTasklet = 0;
  bool otherIsWrite = false;

  /// Whether both are the same fault at the same place of the program.
  bool isLike(const Finding &other) const {
    return kind == other.kind && pc == other.pc && otherPc == other.otherPc && isMram == other.isMram;
  }
};

/// CH-1 (docs/model.md): tasklets are ordered by locks, and by who wakes whom; accesses that nothing orders are a race.
class Checker {
public:
  explicit Checker(Dpu &dpu);
  /// Looks at an instruction that is about to execute.
  void observe(uint32_t id, const Tasklet &tasklet, const Instruction &in, bool isTargetAsleep);
  /// One for each place of the program.
  const std::vector<Finding> &findings() const { return findings_; }

private:
  void access(uint32_t id, uint32_t pc, uint32_t address, uint32_t size, bool isMram, bool isWrite);
  void wramAccess(uint32_t id, uint32_t pc, uint32_t address, uint32_t size, bool isWrite);
  void dma(uint32_t id, const Tasklet &tasklet, const Instruction &in, uint32_t pc);
  void take(uint32_t id, const Instruction &in, uint32_t lock, uint32_t pc);
  bool isInRuntime(uint32_t pc) const;
  void add(Finding finding);

  Dpu &dpu_;
  Clocks clocks_;
  Shadow wram_, mram_;
  uint32_t heapStart_ = 0, heapPointer_ = 0, heapLock_ = ~0u;
  std::vector<std::pair<uint32_t, uint32_t>> waiters_; // Code that takes the locks inside barriers and semaphores.
  std::vector<Finding> findings_;
};

/// The finding with source lines, as errors are shown; `dpu` is where it was found.
ErrorReport describeFinding(const Program &program, const Finding &finding, const std::string &dpu);

} // namespace nearbank::dpu
