// SPDX-License-Identifier: Apache-2.0
// The simulated machine behind the C API: ranks, DPUs, clock and record of what happened.
#pragma once

#include "runtime/Error.h"
#include "sim/dpu/Engine.h"
#include "upmem/host/include/dpu_error.h"
#include "upmem/host/include/dpu_types.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#define NB_API extern "C" __attribute__((visibility("default")))

/// One DPU as the C API sees it.
struct dpu_t {
  nearbank::dpu::Dpu dpu;
  dpu_rank_t *rank = nullptr;
  unsigned id = 0;         ///< Number in the machine.
  unsigned indexInSet = 0; ///< Number in the set it was allocated with.
  void *transferBuffer = nullptr;
};

/// The DPUs of one rank that one set holds.
struct dpu_rank_t {
  unsigned id = 0;
  std::vector<std::unique_ptr<dpu_t>> dpus;
  double busyUntilUs = 0; ///< Simulated time at which its queued jobs end.
  bool hasFault = false;  ///< An asynchronous launch failed and nobody was told.
  uint32_t maxBlocks = 0; ///< Of a scatter-gather transfer and DPU; 0: none, the set was not allocated for them.
};

struct dpu_program_t {
  std::shared_ptr<const nearbank::dpu::Program> program;
};

namespace nearbank::upmem {

/// Simulated time. Between calls of the library it runs with the host; during a call it advances by what the call would
/// take on the machine.
class Clock {
public:
  static Clock &get();
  /// Time of `clock` in ns on this machine.
  static int64_t hostNs(int clock);
  bool isSimulated() const { return isSimulated_; }
  /// Time of `clock` in ns as the program sees it.
  int64_t nowNs(int clock) const;
  /// Simulated time since the program began.
  double nowUs() const;
  void enter();
  /// Ends a call that took `us` of simulated time.
  void leave(double us);

private:
  Clock();
  bool isSimulated_;
  int64_t startNs_, enteredNs_ = 0, offsetNs_ = 0;
  int depth_ = 0;
  double pendingUs_ = 0;
};

/// Wraps one call of the API: takes the lock, holds the clock.
class Call {
public:
  Call();
  ~Call();
  /// Simulated time so far.
  double nowUs() const;
  void spend(double us) { us_ += us; }
  /// Lets simulated time go on to `us`.
  void waitUntil(double us);

private:
  std::unique_lock<std::recursive_mutex> lock_;
  double us_ = 0;
};

/// One transfer or launch for reports.
struct Event {
  const char *what; ///< "launch", "load", "to", "from", "broadcast".
  const char *memory = "";
  std::string symbol{};
  double startUs = 0, us = 0;
  uint64_t bytesPerDpu = 0;
  unsigned dpus = 0, ranks = 0;
  dpu::LaunchStats stats{}; ///< Of a launch, summed over its DPUs.
  uint64_t maxCycles = 0, minCycles = 0;
  std::string program{};
};

class System {
public:
  static System &get();
  const dpu::DpuConfig &config() const { return config_; }
  dpu_error_t allocate(uint32_t numDpus, bool byRank, const char *profile, dpu_set_t *set);
  dpu_error_t release(dpu_set_t set);
  /// Runs `work(i)` for all i on the host's threads.
  void parallel(size_t count, const std::function<void(size_t)> &work) const;
  void record(Event event);
  double joules() const { return joules_; }
  void addJoules(double joules) { joules_ += joules; }
  /// Adds the processor time that simulating a launch took on this machine (measured).
  void addLaunchSeconds(double seconds) { launchCpuSeconds_ += seconds; }
  dpu::Engine &engine() const { return *engine_; }
  uint64_t timeoutCycles() const { return timeoutCycles_; }
  void writeStats();

private:
  System();
  dpu::DpuConfig config_;
  std::string engineName_;
  std::unique_ptr<dpu::Engine> engine_;
  std::vector<bool> isTaken_; // By rank.
  std::vector<Event> events_;
  std::string statsPath_;
  std::optional<ErrorReport> failure_; // Why nothing can be allocated.
  unsigned numThreads_ = 1;
  uint64_t timeoutCycles_ = 0;
  double joules_ = 0, launchCpuSeconds_ = 0;
};

/// All DPUs of a set, rank by rank.
std::vector<dpu_t *> dpusOf(const dpu_set_t &set);
std::vector<dpu_rank_t *> ranksOf(const dpu_set_t &set);
/// Prints why a call failed to stderr.
void explain(const ErrorReport &report);

} // namespace nearbank::upmem
