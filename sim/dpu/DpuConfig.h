// SPDX-License-Identifier: Apache-2.0
// A machine of kind upmem: its DPUs and what the host pays to reach them.
#pragma once

#include "runtime/Machine.h"

#include <cstdint>
#include <string>
#include <utility>
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

/// A level of links between DPUs; 0 GB/s where there is none, as in all hardware that is known.
struct LinkLevel {
  double bandwidthGBs = 0, latencyNs = 0;
  /// Seconds that `bytes` take from one DPU to another.
  double seconds(double bytes) const { return bytes / (bandwidthGBs * 1e9) + latencyNs * 1e-9; }
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
  double launchUs = 0, loadUs = 0, broadcastSpeedup = 0, serialShare = 0, memoryGBs = 0;
  // link: within a chip, between the chips of a rank, between the ranks of a module, between modules
  LinkLevel chipLink, rankLink, moduleLink, systemLink;
  // energy
  double dpuWatts = 0;
  TransferTable toMram, fromMram, toWram, fromWram;
  PlacementThresholds thresholds;
  std::vector<MachineValue> values; ///< Every value that is a single number, with its source.
  unsigned numDpus = 0;             ///< All DPUs, or the N of upmem-N.
  std::string translator;           ///< Shared library of the engine `fast`, where that is wanted.

  unsigned dpusPerRank() const { return static_cast<unsigned>(chipsPerRank * dpusPerChip); }
  /// Time in us of a transfer with `table` to or from `ranks` ranks, `most` DPUs in the fullest (HT-1, docs/model.md).
  double transferUs(const TransferTable &table, double bytesPerDpu, unsigned ranks, unsigned most) const;
  /// The same of a broadcast to MRAM.
  double broadcastUs(double bytes, unsigned ranks) const { return toMram.at(bytes, ranks) / broadcastSpeedup; }
};

/// Reads a machine file of kind upmem; `base: FILE` in it takes over what another one beside it says. `numDpus` 0 takes
/// what the file's modules have; `sets` changes values by path, for example {"dpu.clockMHz", "400"}.
/// @throws UserError NB0101 to NB0107 as for every machine file
DpuConfig readDpuConfig(const std::string &path, unsigned numDpus,
                        const std::vector<std::pair<std::string, std::string>> &sets = {});
/// All values that are single numbers, by path.
std::vector<std::pair<std::string, double>> valuesOf(const DpuConfig &config);

} // namespace nearbank::dpu
