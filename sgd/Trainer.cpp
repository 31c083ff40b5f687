// SPDX-License-Identifier: Apache-2.0
// What all jobs share: the split over DPUs, groups and ranks, and the record of transfers.
#include "sgd/Trainer.h"

#include "runtime/Error.h"
#include "sgd/RoundEngine.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace nearbank::sgd {

namespace {

[[noreturn]] void refuse(const std::string &expected, const std::string &actual, const std::string &fix) {
  throw UserError({"NB0701", "the training job does not fit together", "", expected, actual, fix});
}

void check(const Settings &settings, const RowSource &rows) {
  if (rows.numRows() < 1 || rows.numFeatures() < 1)
    refuse("at least one row and one feature",
           fmt::format("{} rows of {} features", rows.numRows(), rows.numFeatures()), "give more data");
  if (settings.numDpus < 1)
    refuse("at least one DPU", fmt::format("{} DPUs", settings.numDpus), "set the number of DPUs to 1 or more");
  if (settings.batch < 1 || (settings.arithmetic == Arithmetic::Q31 && !std::has_single_bit(uint64_t(settings.batch))))
    refuse("a batch that is a power of two: fixed-point steps divide by shifting",
           fmt::format("batch of {}", settings.batch),
           fmt::format("--batch {}", std::bit_floor(uint64_t(std::max<int64_t>(settings.batch, 1)))));
  if (settings.arithmetic == Arithmetic::Q31) {
    int shift = settings.rateShift + settings.weightExponent - settings.classShift;
    if (shift < 0 || shift > 31 || settings.rateShift < (settings.isPimOpt ? 0 : -31))
      refuse("a learning rate between 2^-31 and the largest that weights can take in one step",
             fmt::format("rate 2^{}, weights up to 2^{}", -settings.rateShift, settings.weightExponent),
             "lower the learning rate");
    if (settings.l2Shift != kNoTerm && settings.rateShift + settings.l2Shift < 0)
      refuse("rate times regulariser of at most one", fmt::format("2^{}", -(settings.rateShift + settings.l2Shift)),
             "lower the learning rate or alpha");
    if (settings.isPimOpt && settings.weightExponent != 0)
      refuse("weights below one, as PIM-Opt has them", fmt::format("up to 2^{}", settings.weightExponent),
             "leave the weight exponent at 0");
    if (settings.isPimOpt && rows.hasValues())
      refuse("sparse rows of ones, as PIM-Opt has them", "sparse rows with values",
             "use dense rows, or compat=\"default\"");
  } else if (settings.isPimOpt) {
    refuse("fixed point, as PIM-Opt has it", "float32", "use arithmetic=\"q31\", or compat=\"default\"");
  }
  if (settings.algorithm == Algorithm::Admm) {
    bool hasRho = settings.arithmetic == Arithmetic::Q31 ? settings.l2Shift != kNoTerm : settings.l2 > 0;
    if (!hasRho)
      refuse("a penalty rho above zero for ADMM", "none", "set rho");
    if (settings.synchronisation != Synchronisation::ParameterServer &&
        settings.synchronisation != Synchronisation::InNetwork)
      refuse("ga-sgd or ma-sgd for ring, gossip and shared memory", "admm",
             "use the parameter server or in-network reduction");
    if (settings.staleness > 0)
      refuse("ga-sgd or ma-sgd for stale models", "admm", "set the staleness to 0");
  }
  if (settings.synchronisation == Synchronisation::Gossip) {
    if (settings.algorithm != Algorithm::MaSgd)
      refuse("ma-sgd for gossip: gradients have no model to stay with", "ga-sgd", "use --algorithm ma-sgd");
    if (settings.staleness > 0)
      refuse("no staleness bound with gossip", fmt::format("{}", settings.staleness), "set the staleness to 0");
  }
}

} // namespace

Trainer::Trainer(const Settings &settings, std::shared_ptr<const RowSource> rows, int rank, int numRanks)
    : settings_(settings), rows_(std::move(rows)), rank_(rank), numRanks_(numRanks), features_(rows_->numFeatures()),
      numGroups_(std::min(kMaxGroups, settings.numDpus)),
      sizes_(settings, features_, rows_->isSparse(), rows_->maxRowEntries(), rows_->hasValues()) {
  firstGroup_ = shareBegin(numGroups_, numRanks, rank);
  lastGroup_ = shareBegin(numGroups_, numRanks, rank + 1);
  int64_t rowsPerDpu = (rows_->numRows() + settings.numDpus - 1) / settings.numDpus;
  stepsPerEpoch_ = std::max<int64_t>(1, (rowsPerDpu + settings.batch - 1) / settings.batch);
  if (settings.algorithm == Algorithm::Admm || (settings.algorithm == Algorithm::MaSgd && settings.averageEvery == 0))
    roundsPerEpoch_ = 1;
  else if (settings.algorithm == Algorithm::MaSgd)
    roundsPerEpoch_ = (stepsPerEpoch_ + settings.averageEvery - 1) / settings.averageEvery;
  else
    roundsPerEpoch_ = stepsPerEpoch_;
  roundTransfers_ = transfersOfRound(settings, sizes_);
}

void Trainer::recordRound() {
  for (const Transfer &transfer : roundTransfers_)
    ledger_.add(transfer);
  ++numRounds_;
}

void Trainer::runRound() {
  computeRound();
  finishRound(partialSums());
}

std::unique_ptr<Trainer> Trainer::make(const Settings &settings, std::shared_ptr<const RowSource> rows, int rank,
                                       int numRanks, std::shared_ptr<const DpuSimulation> simulation) {
  check(settings, *rows);
  if (numRanks > 1 &&
      (settings.synchronisation == Synchronisation::Ring || settings.synchronisation == Synchronisation::Gossip))
    refuse("no ring and no gossip on several ranks", "ring or gossip", "run one process, or another --sync");
  if (numRanks > std::min(kMaxGroups, settings.numDpus))
    refuse(fmt::format("at most {} ranks", std::min(kMaxGroups, settings.numDpus)), fmt::format("{}", numRanks),
           "start fewer ranks");
  if (settings.arithmetic == Arithmetic::Q31)
    return makeEngine<Q31>(settings, std::move(rows), rank, numRanks, std::move(simulation));
  return makeEngine<F32>(settings, std::move(rows), rank, numRanks, std::move(simulation));
}

} // namespace nearbank::sgd
