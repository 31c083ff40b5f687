// SPDX-License-Identifier: Apache-2.0
// A machine of kind upmem: its DPUs and what the host pays to reach them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nearbank::dpu {

/// Times in us by bytes for each DPU and full ranks.
struct TransferTable {
  std::vector<double> bytes;
  std::vector<double> ranks;
  std::vector<double> us; ///< Row-major, bytes x ranks.
  /// Interpolates between logarithms; beyond the ends times grow with bytes, and with ranks as at the last step.
  double at(double bytesPerDpu, double numRanks) const;
};

struct DpuConfig {
  std::string name, file;
  // system
  double modules = 0, ranksPerModule = 0, chipsPerRank = 0, dpusPerChip = 0;
  // dpu
  double clockMHz = 0, tasklets = 0, dispatchCycles = 0, iramInstructions = 0, iramMargin = 0;
  // dma
  double dmaReadCycles = 0, dmaWriteCycles = 0, dmaCyclesPerByte = 0, dmaOccupancyCycles = 0, dmaBytesPerWramCycle = 0;
  // slots
  double multiplyCallSlots = 0, divide32Slots = 0, wideMultiplySlots = 0, divide64Slots = 0, floatAddSlots = 0,
         floatSubSlots = 0, floatMulSlots = 0, floatDivSlots = 0, doubleAddSlots = 0, doubleSubSlots = 0,
         doubleMulSlots = 0, doubleDivSlots = 0;
  // host
  double launchUs = 0, loadUs = 0, broadcastSpeedup = 0, serialShare = 0;
  // energy
  double dpuWatts = 0;
  TransferTable toMram, fromMram, toWram, fromWram;
  unsigned numDpus = 0; ///< All DPUs, or the N of upmem-N.

  unsigned dpusPerRank() const { return static_cast<unsigned>(chipsPerRank * dpusPerChip); }
};

/// Reads a machine file of kind upmem. `numDpus` 0 takes what the file's modules have.
/// @throws UserError NB0101 to NB0107 as for every machine file
DpuConfig readDpuConfig(const std::string &path, unsigned numDpus);

} // namespace nearbank::dpu
