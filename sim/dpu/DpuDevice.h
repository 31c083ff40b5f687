// SPDX-License-Identifier: Apache-2.0
// The DPUs of a machine as the runtime's PIM device: shares operands out, runs the kernel, collects results.
#pragma once

#include "runtime/DpuKernel.h"
#include "runtime/Executor.h"
#include "sim/dpu/Dpu.h"
#include "sim/dpu/DpuConfig.h"
#include "sim/dpu/Engine.h"

#include <memory>
#include <span>
#include <vector>

namespace nearbank::dpu {

class DpuDevice : public PimDevice {
public:
  /// Cycles up to which an estimate simulates a DPU whole: half a second of `exact`.
  static constexpr double wholeCycles = 20e6;
  /// DPUs that an estimate simulates, at most.
  static constexpr int64_t estimatedDpus = 3;

  /// @param machine of kind upmem
  /// @param threads host threads that simulate DPUs; 0 means all
  DpuDevice(const MachineConfig &machine, int threads);

  /// Runs every DPU that has work. @throws DeviceError NB0806 when one is in fault
  PimTiming execute(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                    std::span<const NestOperand> operands, KernelStatus &status) override;

  /// Times a kernel from a few DPUs: the first, the last and one between them, since DPUs with parts of one size do
  /// the same work; a long one from its first pieces of work (SA-5, docs/model.md). Leaves results unwritten.
  PimTiming estimate(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                     std::span<const NestOperand> operands);

private:
  struct Launch;
  PimTiming run(const Launch &launch, KernelStatus &status);

  std::shared_ptr<const DpuConfig> config_;
  std::unique_ptr<Engine> engine_;
  unsigned numThreads_;
};

/// CX-5 (docs/model.md): what a launch of a kernel pays besides its run, as crossings of nest `nest`.
/// @param isResident by operand of the nest: whether DPUs keep it from launch to launch
/// @param hostBandwidthGBs at which the host copies what does not lie as DPUs take it
std::vector<CrossingRecord> transfersOf(const DpuKernel &kernel, const DpuConfig &config, uint32_t nest,
                                        std::span<const NestOperand> operands, const std::vector<bool> &isResident,
                                        double hostBandwidthGBs);

} // namespace nearbank::dpu
