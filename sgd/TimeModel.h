// SPDX-License-Identifier: Apache-2.0
// Time of a round on a DPU machine (TM-1 to TM-6 in docs/model.md). Modelled, save where a caller gives simulated DPU
// times.
#pragma once

#include "sgd/Settings.h"
#include "sgd/Traffic.h"

#include <cstdint>
#include <optional>
#include <string>

namespace nearbank::sgd {

/// What the model needs to know of a machine; defaults are UPMEM's v1A with a source each in docs/model.md.
struct DpuMachine {
  int64_t numDpus = 2048;
  double clockMHz = 350;
  int64_t mramBytes = 64 << 20;
  int64_t pipelineDepth = 11; ///< Cycles between two instructions of one tasklet.
  double dmaReadCycles = 77;  ///< Fixed cost of an MRAM read.
  double dmaWriteCycles = 61; ///< Fixed cost of an MRAM write.
  double dmaCyclesPerByte = 0.5;
  double launchSeconds = 150e-6;  ///< Starting all DPUs and noticing that they are done.
  double hostBandwidthGBs = 19.2; ///< Of the host's memory while it adds up what DPUs sent.
  // Inter-DPU link; 0 GB/s: none.
  double linkGBs = 0;
  double linkLatencySeconds = 0;
  int64_t dpusPerChip = 8, dpusPerRank = 64;
};

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
  double total() const { return toDpu + launch + compute + movement + fromDpu + aggregation + link; }
};

/// Time of moving `bytesPerDpu` to or from `numDpus` DPUs at once: interpolated in a table measured on an UPMEM server.
double transferSeconds(bool isToDpu, int64_t bytesPerDpu, int64_t numDpus);

/// A round of a job. MRAM-WRAM movement is what DMA needs beyond what computing tasklets hide.
RoundTime roundTime(const Settings &settings, const DpuMachine &machine, const WorkShape &shape,
                    const WireSizes &sizes);

/// One-time seconds before the first round: rows, labels and tables to the DPUs.
double loadSeconds(const Settings &settings, const DpuMachine &machine, const WorkShape &shape, const WireSizes &sizes);

/// Bytes of MRAM that one DPU needs.
int64_t mramBytes(const Settings &settings, const WorkShape &shape, const WireSizes &sizes);

} // namespace nearbank::sgd
