// SPDX-License-Identifier: Apache-2.0
// Timing of an out-of-order core, HM-1 to HM-6 of docs/model.md: a window model. Each instruction of a tracing core's
// run is placed once, in program order: when it enters the window, when its sources and a port are ready, when its
// result is there, and when it retires. Memory answers at once with the time at which a line arrives.
//
// Cores that share memory are kept in order of time: run() returns before an access to a private second level that lies
// beyond the other cores' next ones, and is called again when its turn has come.
#pragma once

#include "sim/core/BranchPredictor.h"
#include "sim/core/OpPlan.h"
#include "sim/core/PortTimeline.h"
#include "sim/core/TracingCore.h"
#include "sim/memory/HostMemory.h"
#include "sim/memory/StreamPrefetcher.h"
#include "sim/memory/TimedCache.h"

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace nearbank::sim {

struct OutOfOrderStats {
  uint64_t l1dMisses = 0, l1iMisses = 0, l2Accesses = 0, l2Misses = 0, writebacks = 0;
  uint64_t dirtied = 0; ///< First-level lines that became dirty.
  uint64_t mispredictions = 0;
  uint64_t stallCycles = 0; ///< In which nothing retired because a load that had missed was not there yet.
};

class OutOfOrderCore {
public:
  /// run() returns it when the kernel has returned or trapped.
  static constexpr int64_t ended = std::numeric_limits<int64_t>::max();

  OutOfOrderCore(const MachineConfig &config, int64_t id, HostMemory &memory);

  /// Readies the core for a launch; `functional` has been started.
  /// @param startCycle when its first instruction may enter the window
  void start(TracingCore &functional, PlanTable &plans, uint64_t textBytes, int64_t startCycle);
  /// After start(): the L2 holds lines of earlier work (TimedCache::age).
  void age(double lines, double dirtyShare) {
    l2_.age(lines * static_cast<double>(l2_.lineBytes()) / static_cast<double>(l2_.capacityBytes()), dirtyShare);
  }
  /// After start(): the line is in both private levels.
  void warm(uint64_t address);
  /// After start(): the program's text is in the L1I, if it fits.
  void warmText() { isTextWarm_ = textFits_; }
  /// Goes on until an access beyond `horizon` must wait for its turn. @return the time of that access, or `ended`
  int64_t run(int64_t horizon);
  /// When the last instruction had retired and the last store had left. After the end.
  int64_t endCycle() const { return std::max(retire_, commit_); }
  const OutOfOrderStats &stats() const { return stats_; }
  int64_t id() const { return id_; }

private:
  bool nextBlock();
  bool fetch();
  bool step(const OpPlan &plan);
  void dispatch(const OpPlan &plan, size_t operation);
  int64_t startOf(const OpPlan &plan, int64_t cycle);
  int64_t takePort(PortTimeline &ports, int64_t cycle);
  int64_t takePorts(PortTimeline &first, PortTimeline &second, int64_t cycle);
  bool accessLines(const TracedAccess &access);
  bool load(const OpPlan &plan);
  bool store();
  void setShape(uint32_t elements, uint32_t type);
  void takeShape();
  void placeVector(const OpPlan &plan);
  void placePieces(const OpPlan &plan);
  void finishVector(const OpPlan &plan);
  int64_t accessOperations();
  int64_t groupReady(uint8_t first) const;
  void branch(const OpPlan &plan);
  void retire(const OpPlan &plan);
  bool reach(uint64_t address, bool isStore);
  bool isGranted(int64_t cycle);
  int64_t pass(PortTimeline &path, int64_t cycles, int64_t arrival);
  int64_t readSecond(uint64_t address, int64_t cycle, bool isData);
  void insertSecond(uint64_t address, int64_t cycle, int64_t readyAt);
  void evictFirst(const TimedCache::Line &victim, int64_t cycle);

  template <typename Visit> void forEachPort(Visit visit) {
    for (PortTimeline *port :
         {&intPorts_, &mulPorts_, &branchPorts_, &fpPorts_, &fpAddPorts_, &fpMulPorts_, &memoryPorts_, &loadPorts_,
          &storePorts_, &vectorLoadPorts_, &vectorStorePorts_, &firstPath_, &secondPath_})
      visit(*port);
  }

  int64_t toPs(int64_t cycle) const { return static_cast<int64_t>(static_cast<double>(cycle) * periodPs_); }
  /// First cycle that begins at or after `ps`.
  int64_t toCycle(int64_t ps) const {
    auto cycle = static_cast<int64_t>(static_cast<double>(ps) * cyclesPerPs_);
    return cycle + (toPs(cycle) < ps ? 1 : 0);
  }

  // The machine.
  OutOfOrderConfig config_;
  int64_t id_, l1Cycles_, l2Cycles_;
  double periodPs_, cyclesPerPs_;
  int64_t vectorBytes_, laneBytes_, elementsPerCycle_;
  HostMemory &memory_;
  TimedCache l1i_, l1d_, l2_;
  std::optional<StreamPrefetcher> prefetcher_;
  BranchPredictor predictor_;
  PortTimeline intPorts_, mulPorts_, branchPorts_, fpPorts_, fpAddPorts_, fpMulPorts_, memoryPorts_, loadPorts_,
      storePorts_, vectorLoadPorts_, vectorStorePorts_;
  PortTimeline firstPath_{1}, secondPath_{1};  ///< From the L2 to the L1s, and from the last level to the L2.
  int64_t firstPathCycles_, secondPathCycles_; ///< Of a line.

  // The launch.
  TracingCore *functional_ = nullptr;
  PlanTable *plans_ = nullptr;
  bool textFits_ = false, isTextWarm_ = false;
  std::vector<uint8_t> fetched_; ///< By block id: in the L1I for good.
  OutOfOrderStats stats_;

  // Place in the trace.
  enum class Phase : uint8_t { NextBlock, Fetch, Place, Access };
  Phase phase_ = Phase::NextBlock;
  size_t nextBlock_ = 0, access_ = 0, accessEnd_ = 0;
  const Block *block_ = nullptr;
  const std::vector<OpPlan> *plan_ = nullptr;
  size_t index_ = 0;           ///< Instruction of the block.
  uint64_t nextPc_ = 0;        ///< That follows the block.
  uint64_t resumeAddress_ = 0; ///< Where a fetch or an access of several lines goes on.
  int64_t horizon_ = 0, pausedAt_ = 0;
  bool hasTurn_ = false;

  // The window, in cycles.
  std::array<int64_t, 256> ready_{};                     ///< By register.
  std::vector<int64_t> retireOf_, loadFree_, storeFree_; ///< Rings over the entries of window and queues.
  size_t rob_ = 0, loadEntry_ = 0, storeEntry_ = 0;
  int64_t dispatch_ = 0, frontend_ = 0, lastTaken_ = 0, retire_ = 0, commit_ = 0;
  int64_t dispatched_ = 0, retired_ = 0, committed_ = 0;
  int64_t intDividerFree_ = 0, fpDividerFree_ = 0;
  std::vector<int64_t> missFree_; ///< When each miss buffer is free again.
  /// What vset* has set.
  struct Shape {
    uint32_t elements = 0, type = 0; ///< vl, low bits of vtype.
    int64_t pieces = 1, widePieces = 1, registers = 1;
  } shape_;
  // The instruction at hand.
  int64_t operations_ = 1;     ///< Of a vector instruction.
  bool isElementwise_ = false; ///< A vector access that goes element by element.
  int64_t start_ = 0, done_ = 0;
  int64_t lineAt_ = 0; ///< When all lines that it touches are in the L1D.
  bool hasMissed_ = false;
  /// Stores that may still be in the queue, by address of 8 B.
  struct Forward {
    uint64_t address = 0, bytes = 0;
    int64_t dataAt = 0, commitAt = 0;
  };
  std::array<Forward, 256> forwards_{};
  Forward *forward_ = nullptr; ///< Of the store at hand.
};

} // namespace nearbank::sim
