// SPDX-License-Identifier: Apache-2.0
// A modelled host: out-of-order RV64 cores with private caches, shared last-level caches and DRAM channels. Executes a
// kernel SPMD over its cores and times it.
#pragma once

#include "sim/system/SimulatedMachine.h"

#include <memory>

namespace nearbank::sim {

/// Thread-safe for separate instances; one launch at a time per instance. A launch runs on the calling thread.
class HostMachine : public SimulatedMachine {
public:
  /// How the caches are found.
  enum class Start {
    Cold, ///< Empty.
    Warm ///< With the text and the operands, as far as they fit, as a host leaves them that runs the kernel repeatedly.
  };

  /// @param config of kind "host"
  explicit HostMachine(const MachineConfig &config, Start start = Start::Cold);
  ~HostMachine() override;
  HostMachine(const HostMachine &) = delete;
  HostMachine &operator=(const HostMachine &) = delete;

  /// Data that the kernel wrote stays in the caches at its end: the host is who reads it. A launch on more than one
  /// core takes the machine's fork and join times besides.
  NmcLaunchStats launch(const NmcLaunch &launch) override;

  bool honoursCuts() const override { return true; }
  int64_t numCores() const override;
  int64_t l1dLines() const override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace nearbank::sim
