// SPDX-License-Identifier: Apache-2.0
// What `nearbank upmem check` is told: findings of all launches, each printed once.
#pragma once

#include "sim/dpu/Checker.h"
#include "upmem/host/System.h"

namespace nearbank::upmem {

class CheckLog {
public:
  static CheckLog &get();
  /// Whether NEARBANK_UPMEM_CHECK names a file.
  bool isOn() const { return !path_.empty(); }
  /// Warns of a program that may be too long for a DPU.
  void loaded(const dpu::Program &program, const dpu::DpuConfig &config);
  /// Prints what is new in the launch of `all`, watched by `checkers`, and renews the file.
  void launched(const std::vector<dpu_t *> &all, const std::vector<std::unique_ptr<dpu::Checker>> &checkers);

private:
  CheckLog();
  std::string path_;
  std::vector<dpu::Finding> known_;
  unsigned numLaunches_ = 0, numFindings_ = 0, numFaults_ = 0;
};

} // namespace nearbank::upmem
