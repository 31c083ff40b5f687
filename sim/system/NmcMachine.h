// SPDX-License-Identifier: Apache-2.0
// A machine of near-memory RV64 cores: executes a kernel SPMD over its cores and times it.
#pragma once

#include "sim/system/SimulatedMachine.h"

#include <memory>

namespace nearbank::sim {

/// Thread-safe for separate instances; one launch at a time per instance.
class NmcMachine : public SimulatedMachine {
public:
  /// @param simulatingThreads host threads; results are the same for any number
  explicit NmcMachine(const MachineConfig &config, int simulatingThreads = 0);
  ~NmcMachine() override;
  NmcMachine(const NmcMachine &) = delete;
  NmcMachine &operator=(const NmcMachine &) = delete;

  NmcLaunchStats launch(const NmcLaunch &launch) override;

  bool honoursCuts() const override { return true; }
  bool honoursCalls() const override { return true; }
  int64_t numCores() const override;
  int64_t l1dLines() const override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace nearbank::sim
