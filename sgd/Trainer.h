// SPDX-License-Identifier: Apache-2.0
// Runs a training job round by round: the DPUs' local work, then the combination of what they computed.
#pragma once

#include "sgd/Rows.h"
#include "sgd/Settings.h"
#include "sgd/SimulatedDpu.h"
#include "sgd/Traffic.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace nearbank::sgd {

/// Contiguous shares: part `index` of `parts` of `total` things begins here.
inline int64_t shareBegin(int64_t total, int64_t parts, int64_t index) {
  return static_cast<int64_t>(static_cast<__int128>(total) * index / parts);
}

/// How far the DPUs' models w_i went in a round, from the model w that it began with. Their mean m gives
/// sum ||w_i - m||^2 = localSquares - K meanSquare.
struct Dispersion {
  double localSquares = 0; ///< Sum of ||w_i - w||^2 over this rank's DPUs.
  double meanSquare = 0;   ///< ||m - w||^2 of the mean over all DPUs.
};

/// Work of simulated DPUs in a round.
struct SimulatedRound {
  uint64_t slowestCycles = 0;
  uint64_t allCycles = 0; ///< Summed over DPUs.
  uint64_t dmaBytes = 0;  ///< Between MRAM and WRAM, summed over DPUs.
};

/// One DPU's work in a round.
struct SampledRound {
  double cycles = 0;
  double cyclesWithoutDma = 0; ///< The same with MRAM-WRAM transfers that take no time.
  double dmaBytes = 0;         ///< Between MRAM and WRAM.
  int64_t simulatedSteps = 0;  ///< Steps that were simulated; the others are extrapolated.
  int64_t steps = 0;           ///< Of the round.
};

/// A training job. Ranks of an MPI job each compute their share of the DPUs and exchange `partialSums`; every rank then
/// holds the same model, and the same as one process, bit for bit.
class Trainer {
public:
  /// DPUs are summed in this many groups, each in DPU order, and then along a fixed tree: the same for any number of
  /// threads and ranks.
  static constexpr int64_t kMaxGroups = 32;

  /// With `simulation` the DPUs' work is done by simulated DPUs, otherwise by their twin.
  /// @throws UserError NB0701 when settings and rows do not fit together, NB0709 when the kernel cannot take them.
  static std::unique_ptr<Trainer> make(const Settings &settings, std::shared_ptr<const RowSource> rows, int rank = 0,
                                       int numRanks = 1, std::shared_ptr<const DpuSimulation> simulation = nullptr);
  virtual ~Trainer() = default;

  /// The DPUs' work of the next round.
  virtual void computeRound() = 0;
  /// Bytes of the sums of this rank's groups, in order; valid until the next computeRound().
  virtual std::span<const std::byte> partialSums() const = 0;
  /// Ends the round with the sums of all groups: those of all ranks, joined in rank order.
  virtual void finishRound(std::span<const std::byte> allSums) = 0;
  /// Both at once, for a single rank.
  void runRound();

  /// The model: coefficients and, last, the intercept.
  virtual std::vector<double> model() const = 0;
  /// Continues from a model, as model() gives it. Only before the first round.
  virtual void setModel(std::span<const double> model) = 0;
  /// State between rounds, in pieces of at most kStatePiece bytes: that of ADMM may fill most of the host's memory.
  virtual void save(const std::function<void(std::string_view)> &write) const = 0;
  /// Goes on from a state; `read` fills what it is given as far as it can and says how much that was.
  /// @throws UserError NB0706 when the state is of another job.
  virtual void restore(const std::function<size_t(std::span<char>)> &read) = 0;
  static constexpr size_t kStatePiece = size_t(16) << 20;
  /// Of the last round; zero for GA-SGD, whose DPUs hold no models of their own.
  virtual Dispersion dispersion() const = 0;
  /// Of the last round and this rank's DPUs; zero with the twin.
  virtual SimulatedRound simulatedRound() const = 0;
  /// Bytes that this rank's simulated DPUs took from and gave to the host in all rounds; 0 with the twin.
  virtual int64_t simulatedTraffic() const = 0;
  /// Simulates what this rank's fullest DPU will do in the next round, at most `maxEntries` features of its rows and
  /// model or two steps, and compares it with the twin.
  /// @throws UserError NB0709 when the kernel cannot take the job, InternalError NB0711 when bits differ.
  virtual SampledRound sampleRound(const DpuSimulation &simulation, int64_t maxEntries) const = 0;

  int64_t roundsPerEpoch() const { return roundsPerEpoch_; }
  int64_t numRounds() const { return numRounds_; }
  int64_t numGroups() const { return numGroups_; }
  const Settings &settings() const { return settings_; }
  const WireSizes &sizes() const { return sizes_; }
  const TransferLedger &ledger() const { return ledger_; }
  /// Transfers of each round.
  const std::vector<Transfer> &roundTransfers() const { return roundTransfers_; }
  const RowSource &rows() const { return *rows_; }

protected:
  Trainer(const Settings &settings, std::shared_ptr<const RowSource> rows, int rank, int numRanks);

  int64_t dpuBegin(int64_t dpu) const { return shareBegin(rows_->numRows(), settings_.numDpus, dpu); }
  /// First DPU of a group.
  int64_t groupBegin(int64_t group) const { return shareBegin(settings_.numDpus, numGroups_, group); }
  void recordRound();

  const Settings settings_;
  const std::shared_ptr<const RowSource> rows_;
  const int rank_;
  const int numRanks_;
  const int64_t features_;
  int64_t numGroups_;
  int64_t firstGroup_, lastGroup_; ///< Of this rank.
  int64_t stepsPerEpoch_;
  int64_t roundsPerEpoch_;
  int64_t numRounds_ = 0;
  WireSizes sizes_;
  TransferLedger ledger_;
  std::vector<Transfer> roundTransfers_;
};

} // namespace nearbank::sgd
