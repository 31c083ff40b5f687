// SPDX-License-Identifier: Apache-2.0
// One simulated core: registers, private caches, and the stream of memory events that its run produces.
//
// A core's instructions and cache contents do not depend on timing, so it runs ahead of the memory system and leaves
// behind events: line reads that block it, line writes that do not, and its end, each with the core cycles since the
// previous blocking event's completion. The weave (system/Weave.h) replays them against the vaults.
#pragma once

#include "sim/core/Translation.h"
#include "sim/isa/Vector.h"
#include "sim/memory/Cache.h"
#include "sim/memory/GuestMemory.h"
#include "sim/memory/Vault.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nearbank::sim {

enum class EventKind : uint16_t {
  Read,  ///< The core waits for the line.
  Write, ///< The line leaves the core's caches; nobody waits.
  Wait,  ///< Nothing but time passes: for gaps beyond 32 bits.
  Mark,  ///< A call of the kernel has ended, or a step of progress.
  End    ///< The core is done.
};

struct MemoryEvent {
  uint32_t gapCycles = 0; ///< Core cycles since the previous Read or Wait completed, or since the start.
  uint32_t row = 0;       ///< Where the line lies in the stack (AddressMap).
  uint16_t vault = 0, bank = 0;
  uint16_t drainCycles = 0; ///< Read: the core continues no earlier than this long after the request left.
  EventKind kind = EventKind::Read;
};

/// Why the interpreter returned.
enum class CoreState : uint8_t { Idle, Ready, Halted, Trapped };

enum class TrapKind : uint8_t {
  AccessOutside,
  WriteToReadOnly,
  IllegalInstruction,
  JumpOutside,
  EnvironmentCall,
  MisalignedAtomic
};

struct Trap {
  TrapKind kind = TrapKind::IllegalInstruction;
  uint64_t pc = 0;
  uint64_t address = 0; ///< Accessed address or jump target.
  uint32_t bytes = 0;
  Instruction instruction;
};

/// Cycles and sizes that all cores of a machine share.
struct CoreParameters {
  CacheConfig l1i, l1d;
  std::optional<CacheConfig> l2;
  DramConfig dram; ///< For its address mapping.
  int64_t vectorBits = 0, vectorLanesBits = 0, vectorElementsPerCycle = 1;
};

class Core {
public:
  explicit Core(const CoreParameters &parameters);

  /// Readies the core to run from `pc`. Registers are zero but for those the caller sets afterwards.
  void start(Translation &translation, const GuestMemory &memory, uint64_t pc, uint64_t haltPc);
  /// A further call of the kernel, for tasks [begin, end).
  struct Call {
    uint64_t begin = 0, end = 0;
    uint64_t waitCycles = 0; ///< Before it.
  };
  /// Has the core call the kernel again after the call that it was readied for. After start().
  void callAgain(std::vector<Call> calls);
  /// Has the core mark each time that it has made `step` cycles of its own, those not counted in which it waits for
  /// memory, and halt after about `limit` of them. Either may be 0: none. After start().
  void markProgress(uint64_t step, uint64_t limit);
  /// Runs until about `eventLimit` events are pending, the kernel returns, or it traps. The host's floating-point
  /// environment must be the default one (GuestFloatEnvironment); its rounding mode is left as the guest's.
  void run(size_t eventLimit);

  // Read and written by the interpreter.
  uint64_t registers[numTimedRegisters + 1] = {}; ///< Those of vectors have no value here; see `vector`.
  VectorState vector;
  uint64_t vectorLanes = 0;    ///< 64-bit lanes that vector arithmetic has filled since start().
  uint64_t vectorElement = 0;  ///< Where a vector access goes on that had to stop: element, or byte of a stream.
  const MicroOp *op = nullptr; ///< Next op; on a trap, the one that trapped.
  TimedBlock *timed = nullptr; ///< Block that runs.
  uint64_t cycle = 0;          ///< Core cycles from the last blocking event to the start of `timed`.
  uint32_t roundingMode = 0;   ///< frm.
  uint32_t softFlags = 0;      ///< fflags raised outside the host's floating-point unit.
  uint64_t reservation = ~uint64_t{0}, reservedValue = 0;
  CoreState state = CoreState::Idle;
  Cache l1d;
  std::vector<uint8_t> fetched; ///< By block id: its lines are in the L1I for good.

  /// Slow path of every access: misses, hits that are not the most recent line, unaligned and partial lines.
  /// @return host address, or null when the core must stop (state tells whether it trapped or ran out of event space)
  char *access(uint64_t address, unsigned bytes, bool isStore, unsigned index);
  /// Brings the lines of `timed`, about to be entered at its start, into the L1I.
  void fetch();
  /// Finds the block after `timed` along an edge; null when the core halts or traps.
  TimedBlock *follow(unsigned edge, uint64_t targetPc);
  /// Finds the block after `timed`, which has ended at a vset*; null when it traps.
  TimedBlock *followVset();
  void beginBeats() { vectorBeat_ = missBeat_ = 0, hasMissed_ = false; }
  /// Tells that the next access() is made by a vector access `bytes` of a stream, or `elements`, after its start.
  void beat(uint64_t bytes, uint64_t elements) {
    vectorBeat_ = static_cast<uint32_t>(bytes / lanesBytes_ + elements / elementsPerCycle_);
  }
  /// Ends a vector access of so many bytes of a stream, or elements: what it still had to do after its last miss.
  void endBeats(uint64_t bytes, uint64_t elements);
  /// Executes a CSR instruction; false when it traps.
  bool accessCsr(const MicroOp &op);
  void trap(TrapKind kind, uint64_t address, uint32_t bytes);

  const Trap &lastTrap() const { return trap_; }
  /// Host addresses of the scratch lines brought in since start(), repeats included, at most maxScratchLines of them.
  const std::vector<char *> &scratchLines() const { return scratchLines_; }
  /// With this many lines recorded, there may have been more.
  static constexpr size_t maxScratchLines = 1024;
  /// Events that wait to be replayed; whoever replays them erases them.
  std::vector<MemoryEvent> &events() { return events_; }
  uint64_t l1dMisses = 0, l1iMisses = 0, l2Misses = 0, writebacks = 0, splitAccesses = 0;

protected:
  const MemoryRange *findRange(uint64_t address);
  /// Brings in the line of `address`; instruction `index` of the block waits for it.
  CacheLine *fill(uint64_t address, unsigned index, IssueTime at, const MemoryRange &range);
  void coverBlocks();
  void evict(const CacheLine &victim, uint64_t gap);
  void miss(uint64_t address, uint64_t issueCycle, uint64_t drain, int64_t hitCycles);
  void finish();
  /// Starts the next call; null when there is none.
  TimedBlock *callNext(StateId state);
  /// Keeps `cycle` within the range of an event's gap.
  void settle();
  void post(EventKind kind, uint64_t gapCycles, uint64_t address, uint64_t drainCycles);

  Translation *translation_ = nullptr;
  const GuestMemory *memory_ = nullptr;
  uint64_t haltPc_ = 0;
  uint64_t entryPc_ = 0;
  std::vector<Call> calls_;              ///< Still to be made, last first.
  std::array<uint64_t, 32> arguments_{}; ///< Integer registers at the first call.
  size_t eventLimit_ = 0;
  uint64_t ownCycles_ = 0; ///< Since start(), up to the last blocking event.
  uint64_t markStep_ = 0, nextMark_ = 0, ownLimit_ = 0;
  bool textFitsL1i_ = true;
  std::array<const MemoryRange *, 4> recentRanges_{};
  size_t nextRecent_ = 0;
  Cache l1i_;
  std::optional<Cache> l2_;
  AddressMap map_;
  unsigned vectorBytes_;
  uint64_t lanesBytes_, elementsPerCycle_;
  uint32_t vectorBeat_ = 0; ///< Cycles from the issue of a vector access to the access at hand.
  uint32_t missBeat_ = 0;   ///< Those before its last miss.
  bool hasMissed_ = false;  ///< The vector access at hand.
  std::vector<MemoryEvent> events_;
  std::vector<char *> scratchLines_;
  Trap trap_;
};

} // namespace nearbank::sim
