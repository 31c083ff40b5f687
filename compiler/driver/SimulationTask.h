// SPDX-License-Identifier: Apache-2.0
// One kernel to be simulated on scratch data, cut loose from its program: another process or machine can do it.
#pragma once

#include "compiler/profile/ProfileDatabase.h"
#include "runtime/Executor.h"
#include "runtime/Machine.h"
#include "runtime/Program.h"

#include <string>

namespace nearbank::driver {

/// How a time is simulated.
enum class Simulation : uint8_t {
  None,
  Sampled, ///< Long launches are estimated from windows of their tasks.
  Exact    ///< Every instruction is executed.
};

class SimulationTask {
public:
  /// Takes the kernel of `nest` with its operands, which get addresses that depend on the nest alone.
  SimulationTask(const Program &program, uint32_t nest, const PimKernel &code, const MachineConfig &machine,
                 Simulation simulation);

  const profile::SimulationKey &key() const { return key_; }
  const std::string &kernel() const { return program_.kernels.front().name; }
  int64_t tasks() const { return code_.tasks; }
  /// How DPUs share the kernel; null on other machines.
  const DpuKernel *dpuKernel() const { return code_.dpu.get(); }

  /// Simulates the kernel. Results depend on neither the process nor the number of threads.
  /// @param machine the machine that the task was made for, or one with the same values
  /// @param threads host threads; 0 means all
  /// @throws DeviceError NB05xx when the kernel traps, NB0407 when scratch memory is refused
  PimTiming simulate(const MachineConfig &machine, int threads) const;

  /// Bytes from which parse() makes the same task again.
  std::string serialize() const;
  static SimulationTask parse(const std::string &bytes);

private:
  SimulationTask() = default;

  Program program_; ///< The one nest, its kernel and its buffers, cut to the parts that it touches.
  PimKernel code_;
  Simulation simulation_ = Simulation::Exact;
  profile::SimulationKey key_;
};

/// Whether kernels can be compiled for a machine and simulated on it.
bool canSimulate(const MachineConfig &machine);

/// Hash of those values of a machine on which simulated times depend: not of its name, thresholds, energies, costs of
/// crossing, and the host and link of a PIM machine, which are applied to simulated times afterwards.
std::string simulatedMachineHash(const MachineConfig &machine);

/// A result as it is kept in the database, and back.
std::string timingText(const PimTiming &timing);
PimTiming parseTiming(const std::string &text);

} // namespace nearbank::driver
