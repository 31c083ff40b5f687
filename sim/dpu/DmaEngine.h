// SPDX-License-Identifier: Apache-2.0
// When transfers between MRAM and WRAM end, and which issue cycles they take from the pipeline.
#pragma once

#include "sim/dpu/DpuConfig.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>

namespace nearbank::dpu {

/// DPU-3 and DPU-4 (docs/model.md): one transfer at a time; each double word takes the WRAM port for a cycle.
class DmaEngine {
public:
  /// The cycle of a double word that never comes.
  static constexpr uint64_t NoPort = uint64_t{1} << 62;

  explicit DmaEngine(const DpuConfig &config)
      : config_(config), interval_(toTicks(config.dmaBytesPerWramCycle * config.dmaCyclesPerByte)) {}

  /// Starts a transfer at `cycle` or when the engine is free; returns when the tasklet may go on.
  uint64_t start(uint64_t cycle, uint32_t bytes, bool isRead) {
    double begin = std::max(static_cast<double>(cycle), freeAt_);
    double move = config_.dmaCyclesPerByte * bytes;
    double occupied = config_.dmaOccupancyCycles + move;
    freeAt_ = begin + occupied;
    busy_ += occupied;
    if (interval_ > 0) {
      auto count = static_cast<uint64_t>(std::ceil(static_cast<double>(bytes) / config_.dmaBytesPerWramCycle));
      windows_.push_back({toTicks(begin + config_.dmaOccupancyCycles), std::max(uint64_t{1}, count)});
      if (windows_.size() == 1)
        enterWindow();
    }
    return static_cast<uint64_t>(std::ceil(begin + (isRead ? config_.dmaReadCycles : config_.dmaWriteCycles) + move));
  }

  /// The first whole cycle of the next double word at the WRAM port; NoPort when none is under way.
  uint64_t nextPort() const { return nextPort_; }
  /// Goes on to the double word after.
  void advancePort() {
    nextTicks_ += interval_;
    nextPort_ = nextTicks_ / Tick;
    if (++port_ == numPorts_)
      leaveWindow();
  }
  /// Whole cycles that lie between double words of one transfer at least; where none pass, as many as one likes.
  unsigned portGap() const { return interval_ > 0 ? static_cast<unsigned>(interval_ / Tick) : 2; }

  /// How many double words pass the port until `cycle`.
  uint64_t portsUntil(uint64_t cycle) const {
    uint64_t count = 0, first = port_;
    for (const Window &window : windows_) {
      uint64_t until = portsUntil(window, cycle);
      count += until - std::min(until, first);
      if (until < window.count)
        break;
      first = 0;
    }
    return count;
  }
  /// Goes on from the next double word to others of the same transfer, until `cycle`, as long as `step` is true, which
  /// is called with the cycles from each to the next one.
  template <typename Step> void walkPorts(uint64_t cycle, Step step) {
    uint64_t ticks = nextTicks_, interval = interval_, last = cycle * Tick + (Tick - 1), now = nextPort_;
    uint64_t port = port_, numPorts = numPorts_;
    for (bool goesOn = true; goesOn && port + 1 < numPorts && (ticks += interval) <= last; ++port) {
      uint64_t next = ticks / Tick;
      goesOn = step(next - now);
      now = next;
    }
    passPorts(port - port_);
  }
  /// Goes on past the double words until `cycle`.
  void skipPorts(uint64_t cycle) {
    while (nextPort_ <= cycle)
      passPorts(portsUntil(windows_.front(), cycle) - port_);
  }
  /// Goes on past the double words that pass while a pipeline that is never idle takes `slots` slots after `cycle`;
  /// returns their number: so many cycles are lost. For a portGap() of 2 or more.
  uint64_t takePorts(uint64_t cycle, uint64_t slots) {
    uint64_t taken = 0, last;
    while (nextPort_ <= (last = cycle + slots + taken)) {
      // Each one delays the end of the slots by a cycle, so that one more may come before it.
      uint64_t count = std::min((last - nextPort_) * Tick / (interval_ - Tick) + 1, numPorts_ - port_);
      while ((nextTicks_ + (count - 1) * interval_) / Tick > last + count - 1)
        --count;
      passPorts(count);
      taken += count;
    }
    return taken;
  }

  uint64_t busyCycles() const { return static_cast<uint64_t>(busy_); }

private:
  /// Units of a cycle in which double words are timed.
  static constexpr uint64_t Tick = uint64_t{1} << 20;
  static uint64_t toTicks(double cycles) { return static_cast<uint64_t>(std::llround(cycles * Tick)); }

  /// Double words of one transfer, which pass the WRAM port at even intervals.
  struct Window {
    uint64_t beginTicks, count;
  };

  uint64_t portsUntil(const Window &window, uint64_t cycle) const {
    uint64_t ticks = cycle * Tick;
    return ticks < window.beginTicks ? 0 : std::min((ticks - window.beginTicks) / interval_ + 1, window.count);
  }
  void passPorts(uint64_t count) {
    port_ += count;
    nextTicks_ += count * interval_;
    nextPort_ = nextTicks_ / Tick;
    if (port_ == numPorts_)
      leaveWindow();
  }
  void leaveWindow() {
    windows_.pop_front();
    nextPort_ = NoPort;
    if (!windows_.empty())
      enterWindow();
  }
  void enterWindow() {
    port_ = 0;
    numPorts_ = windows_.front().count;
    nextTicks_ = windows_.front().beginTicks + (Tick - 1);
    nextPort_ = nextTicks_ / Tick;
  }

  const DpuConfig &config_;
  uint64_t interval_; // In ticks.
  double freeAt_ = 0, busy_ = 0;
  std::deque<Window> windows_; // Of transfers whose double words have not all passed.
  // Of the first one: the next double word, how many there are, when it comes, rounded up when it is divided.
  uint64_t port_ = 0, numPorts_ = 0, nextTicks_ = 0, nextPort_ = NoPort;
};

} // namespace nearbank::dpu
