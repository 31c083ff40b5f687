// SPDX-License-Identifier: Apache-2.0
// Sizes on the wire, records and closed forms.
#include "sgd/Traffic.h"

#include <algorithm>

namespace nearbank::sgd {

const char *cargoName(Cargo cargo) {
  static constexpr const char *names[] = {"model", "gradient", "pull", "bias", "link", "rows", "labels", "tables"};
  return names[static_cast<int>(cargo)];
}

namespace {

int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

} // namespace

WireSizes::WireSizes(const Settings &settings, int64_t features, bool isSparse, int64_t maxRowEntries, bool hasValues) {
  // Transfers go in units of 8 B. PIM-Opt's sparse model is split over 16 tasklets in blocks of 128.
  int64_t entries = isSparse ? roundUp(features + 1, settings.isPimOpt ? 16 * 128 : 2) : roundUp(features, 2);
  bool isWide = settings.arithmetic == Arithmetic::Q31 && (isSparse || !settings.isPimOpt);
  modelBytes = entries * 4;
  gradientBytes = entries * (isWide ? 8 : 4);
  sumBytes = entries * (settings.arithmetic == Arithmetic::Q31 ? 8 : 4);
  biasBytes = isSparse ? 0 : 8;
  rowBytes =
      isSparse ? roundUp(std::max<int64_t>(1, maxRowEntries) * 4, 8) * (hasValues ? 2 : 1) : roundUp(features, 2) * 4;
}

void TransferLedger::add(const Transfer &transfer) {
  bytes_[index(transfer.cargo, transfer.isToDpu)] += transfer.bytesPerDpu * transfer.numDpus;
  pushes_[index(transfer.cargo, transfer.isToDpu)] += 1;
}

std::vector<int64_t> TransferLedger::counts() const {
  std::vector<int64_t> counts(bytes_.begin(), bytes_.end());
  counts.insert(counts.end(), pushes_.begin(), pushes_.end());
  return counts;
}

void TransferLedger::restore(const std::vector<int64_t> &counts) {
  for (size_t i = 0; i < bytes_.size() && i + bytes_.size() < counts.size(); ++i) {
    bytes_[i] = counts[i];
    pushes_[i] = counts[i + bytes_.size()];
  }
}

std::vector<Transfer> transfersOfRound(const Settings &settings, const WireSizes &sizes) {
  std::vector<Transfer> transfers;
  auto push = [&](Cargo cargo, bool isToDpu, int64_t bytes, int64_t dpus) {
    if (bytes > 0)
      transfers.push_back({cargo, isToDpu, bytes, dpus});
  };
  bool isGradient = settings.algorithm == Algorithm::GaSgd;
  bool isShared = settings.synchronisation == Synchronisation::Shared;
  if (isShared || settings.synchronisation == Synchronisation::ParameterServer) {
    int64_t dpus = isShared ? (settings.numDpus + settings.sharedDpus - 1) / settings.sharedDpus : settings.numDpus;
    push(Cargo::Model, true, sizes.modelBytes, dpus);
    if (settings.algorithm == Algorithm::Admm)
      push(Cargo::Pull, true, sizes.modelBytes, dpus);
    push(Cargo::Bias, true, sizes.biasBytes, dpus);
    push(isGradient ? Cargo::Gradient : Cargo::Model, false,
         isShared     ? sizes.sumBytes
         : isGradient ? sizes.gradientBytes
                      : sizes.modelBytes,
         dpus);
    push(Cargo::Bias, false, sizes.biasBytes, dpus);
  }
  push(Cargo::Link, true, closedFormLinkBytes(settings, sizes) / settings.numDpus, settings.numDpus);
  return transfers;
}

int64_t closedFormBytes(const Settings &settings, const WireSizes &sizes) {
  if (settings.synchronisation == Synchronisation::Shared)
    return (settings.numDpus + settings.sharedDpus - 1) / settings.sharedDpus * (sizes.modelBytes + sizes.sumBytes);
  if (settings.synchronisation != Synchronisation::ParameterServer)
    return 0;
  switch (settings.algorithm) {
  case Algorithm::GaSgd:
    return settings.numDpus * (sizes.modelBytes + sizes.gradientBytes);
  case Algorithm::MaSgd:
    return settings.numDpus * 2 * sizes.modelBytes;
  case Algorithm::Admm:
    return settings.numDpus * 3 * sizes.modelBytes;
  }
  return 0;
}

int64_t closedFormLinkBytes(const Settings &settings, const WireSizes &sizes) {
  int64_t payload = settings.algorithm == Algorithm::GaSgd ? sizes.gradientBytes + sizes.biasBytes
                                                           : sizes.modelBytes + sizes.biasBytes;
  int64_t dpus = settings.numDpus;
  switch (settings.synchronisation) {
  case Synchronisation::ParameterServer:
    return 0;
  case Synchronisation::Ring: // Each DPU passes on one chunk in each of 2 (K - 1) steps.
    return dpus * 2 * (dpus - 1) * roundUp((payload + dpus - 1) / dpus, 8);
  case Synchronisation::Gossip: // To both neighbours.
    return dpus > 1 ? dpus * 2 * payload : 0;
  case Synchronisation::InNetwork: // Up and down; ADMM's w_i and u_i go up.
    return dpus * (settings.algorithm == Algorithm::Admm ? 3 : 2) * payload;
  case Synchronisation::Shared: // Every DPU adds to the sum and reads the model.
    return dpus * (sizes.sumBytes + sizes.modelBytes + 2 * sizes.biasBytes);
  }
  return 0;
}

} // namespace nearbank::sgd
