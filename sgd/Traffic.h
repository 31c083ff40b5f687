// SPDX-License-Identifier: Apache-2.0
// Records of what moves between host and DPUs, and the closed forms that they must equal (TR-1 to TR-6).
#pragma once

#include "sgd/Settings.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace nearbank::sgd {

/// What a transfer carries.
enum class Cargo { Model, Gradient, Pull, Bias, Link, Rows, Labels, Tables };
inline constexpr int kNumCargos = 8;
const char *cargoName(Cargo cargo);

/// One push to or from DPUs, or one exchange between them.
struct Transfer {
  Cargo cargo;
  bool isToDpu;
  int64_t bytesPerDpu;
  int64_t numDpus; ///< All of the job, or one for each group that shares memory.
};

/// Sizes of what travels, padded as the device's layout needs it.
struct WireSizes {
  int64_t modelBytes = 0;    ///< One model vector; holds the bias too when rows are sparse.
  int64_t gradientBytes = 0; ///< As modelBytes.
  int64_t sumBytes = 0;      ///< A sum of vectors of several DPUs.
  int64_t biasBytes = 0;     ///< 0 when the bias is part of the vectors.
  int64_t rowBytes = 0;      ///< One row without its label.

  WireSizes() = default;
  WireSizes(const Settings &settings, int64_t features, bool isSparse, int64_t maxRowEntries, bool hasValues);
};

/// Sums up transfers by cargo and direction.
class TransferLedger {
public:
  void add(const Transfer &transfer);
  int64_t bytes(Cargo cargo, bool isToDpu) const { return bytes_[index(cargo, isToDpu)]; }
  int64_t pushes(Cargo cargo, bool isToDpu) const { return pushes_[index(cargo, isToDpu)]; }
  void restore(const std::vector<int64_t> &counts);
  std::vector<int64_t> counts() const;

private:
  static size_t index(Cargo cargo, bool isToDpu) { return size_t(cargo) * 2 + (isToDpu ? 0 : 1); }
  std::array<int64_t, 2 * kNumCargos> bytes_ = {};
  std::array<int64_t, 2 * kNumCargos> pushes_ = {};
};

/// Pushes and exchanges of one round, in order.
std::vector<Transfer> transfersOfRound(const Settings &settings, const WireSizes &sizes);
/// TR-1 to TR-5: bytes of one round over all DPUs in closed form, cargo Model, Gradient and Pull only.
int64_t closedFormBytes(const Settings &settings, const WireSizes &sizes);
/// TR-6: bytes of one round over the inter-DPU link.
int64_t closedFormLinkBytes(const Settings &settings, const WireSizes &sizes);

} // namespace nearbank::sgd
