// SPDX-License-Identifier: Apache-2.0
// When transfers between MRAM and WRAM end, and which issue cycles they take from the pipeline.
#pragma once

#include "sim/dpu/DpuConfig.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>

namespace nearbank::dpu {

/// DPU-3 and DPU-4 (docs/model.md): one transfer at a time; each double word takes the WRAM port for a cycle.
class DmaEngine {
public:
  explicit DmaEngine(const DpuConfig &config) : config_(config) {}

  /// Starts a transfer at `cycle` or when the engine is free; returns when the tasklet may go on.
  uint64_t start(uint64_t cycle, uint32_t bytes, bool isRead) {
    double begin = std::max(static_cast<double>(cycle), freeAt_);
    double move = config_.dmaCyclesPerByte * bytes;
    double occupied = config_.dmaOccupancyCycles + move;
    freeAt_ = begin + occupied;
    busy_ += occupied;
    if (config_.dmaBytesPerWramCycle > 0)
      addWindow({begin + config_.dmaOccupancyCycles, freeAt_, config_.dmaBytesPerWramCycle * config_.dmaCyclesPerByte});
    return static_cast<uint64_t>(std::ceil(begin + (isRead ? config_.dmaReadCycles : config_.dmaWriteCycles) + move));
  }

  /// Cycle of the next double word at the WRAM port; infinite when none is under way.
  double nextPort() const { return nextPort_; }
  /// Goes on to the double word after.
  void advancePort() {
    nextPort_ += windows_.front().interval;
    if (nextPort_ >= windows_.front().end) {
      windows_.pop_front();
      nextPort_ = windows_.empty() ? std::numeric_limits<double>::infinity() : windows_.front().begin;
    }
  }

  /// When double words of one transfer pass the WRAM port, one each `interval` cycles.
  struct Window {
    double begin, end, interval;
  };
  /// The window that ends first; none when no transfer is under way.
  const Window *window() const { return windows_.empty() ? nullptr : &windows_.front(); }
  void dropWindow() { windows_.pop_front(); }

  uint64_t busyCycles() const { return static_cast<uint64_t>(busy_); }

private:
  void addWindow(Window window) {
    if (windows_.empty())
      nextPort_ = window.begin;
    windows_.push_back(window);
  }

  const DpuConfig &config_;
  double freeAt_ = 0, busy_ = 0;
  double nextPort_ = std::numeric_limits<double>::infinity();
  std::deque<Window> windows_;
};

} // namespace nearbank::dpu
