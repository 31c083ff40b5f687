// SPDX-License-Identifier: Apache-2.0
// Time of a round on a DPU machine (TM-1 to TM-8 in docs/model.md). Modelled, save where a caller gives simulated DPU
// times.
#pragma once

#include "sgd/Settings.h"
#include "sgd/Traffic.h"
#include "sim/dpu/DpuConfig.h"

#include <cstdint>
#include <optional>
#include <string>

namespace nearbank::sgd {

/// Shape of the DPUs' work.
struct WorkShape {
  int64_t features = 0;
  int64_t rowsPerDpu = 0; ///< Of the DPU that has most.
  int64_t entriesPerRow = 0;
  bool isSparse = false;
  bool hasValues = false;
};

/// Seconds of one round by kind.
struct RoundTime {
  double toDpu = 0, launch = 0, compute = 0, movement = 0, fromDpu = 0, aggregation = 0, link = 0;
  double dmaBytes = 0; ///< Between MRAM and WRAM of the DPU that has most rows; no time.
  double total() const { return toDpu + launch + compute + movement + fromDpu + aggregation + link; }
};

/// TM-1: time of moving `bytesPerDpu` to or from `numDpus` DPUs at once, spread evenly over the ranks of `jobDpus`.
double transferSeconds(const dpu::DpuConfig &machine, bool isToDpu, int64_t bytesPerDpu, int64_t numDpus,
                       int64_t jobDpus);
/// Whether the machine has the links that a job's way of synchronising needs.
bool hasLinks(const Settings &settings, const dpu::DpuConfig &machine);

/// A round of a job. MRAM-WRAM movement is what DMA needs beyond what computing tasklets hide.
RoundTime roundTime(const Settings &settings, const dpu::DpuConfig &machine, const WorkShape &shape,
                    const WireSizes &sizes);

/// TM-8: transfers of one rank's DPUs in a round, which asynchrony cannot hide: their MRAM is the host's meanwhile.
double ownTransferSeconds(const Settings &settings, const dpu::DpuConfig &machine, const WireSizes &sizes);

/// One-time seconds before the first round: the program and the sigmoid's table to the DPUs.
double setUpSeconds(const Settings &settings, const dpu::DpuConfig &machine);
/// One-time seconds before the first round: rows and labels to the DPUs.
double loadSeconds(const Settings &settings, const dpu::DpuConfig &machine, const WorkShape &shape,
                   const WireSizes &sizes);

/// Bytes of MRAM that one DPU needs.
int64_t mramBytes(const Settings &settings, const WorkShape &shape, const WireSizes &sizes);

} // namespace nearbank::sgd
