// SPDX-License-Identifier: Apache-2.0
// One DPU of the simulator that runs the training kernel on its share of the rows.
#pragma once

#include "sgd/DeviceImage.h"
#include "sim/dpu/Engine.h"

#include <cstdint>
#include <memory>
#include <string>

namespace nearbank::sgd {

/// The training kernel as a program, the machine, and the engine that runs it.
class DpuSimulation {
public:
  /// An empty `translator` means the engine `exact`; otherwise it is the library that the engine `fast` needs.
  /// @throws UserError NB0801, DeviceError NB0812
  static std::shared_ptr<DpuSimulation> load(const std::string &programFile, const dpu::DpuConfig &machine,
                                             const std::string &translator);
  DpuSimulation(std::shared_ptr<const dpu::Program> program, const dpu::DpuConfig &machine,
                const std::string &translator);
  DpuSimulation(const DpuSimulation &) = delete;
  DpuSimulation &operator=(const DpuSimulation &) = delete;

  const dpu::Program &program() const { return *program_; }
  std::shared_ptr<const dpu::Program> sharedProgram() const { return program_; }
  /// The same with MRAM-WRAM transfers that take no time.
  const DpuSimulation &withoutDma() const;
  /// Thread-safe for different DPUs.
  void run(dpu::Dpu &dpu) const { engine_->run(dpu, {}); }

private:
  const std::shared_ptr<const dpu::Program> program_;
  const dpu::DpuConfig machine_;
  const std::string translator_;
  const std::unique_ptr<dpu::Engine> engine_;
  mutable std::unique_ptr<DpuSimulation> withoutDma_;
};

class SimulatedDpu : private DeviceMemory {
public:
  /// Puts program, rows [begin, end) and tables in.
  /// @throws UserError NB0709 when the kernel cannot take them
  SimulatedDpu(const DpuSimulation &simulation, const Settings &settings, const RowSource &source, int64_t begin,
               int64_t end);

  /// Steps of the epoch from `first` on, with the model in place.
  template <class A>
  void runSteps(int64_t first, int64_t count, typename A::Weight *weights, typename A::Bias &bias,
                const typename A::Weight *pull);
  /// Adds the gradient of step `step` at a model to `sum`, that of the bias behind the last feature.
  template <class A> void addGradient(int64_t step, const Model<A> &model, typename A::Sum *sum);

  /// @throws InternalError NB0712 when the last launch ended in fault.
  void checkFault() const;
  /// Of the last launch.
  const dpu::LaunchStats &stats() const { return dpu_.last; }
  /// Bytes that the host has moved to and from this DPU since rows and tables were loaded, arguments left out.
  int64_t movedBytes() const { return movedBytes_; }

private:
  void write(uint32_t at, const void *from, size_t size) override;
  void read(uint32_t at, void *to, size_t size) const override;
  void launch(int64_t first, int64_t count);

  const DpuSimulation &simulation_;
  DeviceImage image_;
  dpu::Dpu dpu_;
  uint32_t heap_ = 0; ///< Where the heap begins in MRAM.
  mutable int64_t movedBytes_ = 0;
};

} // namespace nearbank::sgd
