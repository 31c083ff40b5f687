// SPDX-License-Identifier: Apache-2.0
// The trainer of one arithmetic.
#pragma once

#include "sgd/Consensus.h"
#include "sgd/LocalSolver.h"
#include "sgd/Trainer.h"

#include <deque>
#include <memory>
#include <vector>

namespace nearbank::sgd {

template <class A> class RoundEngine : public Trainer {
public:
  using Weight = typename A::Weight;
  using Bias = typename A::Bias;
  using Sum = typename A::Sum;

  RoundEngine(const Settings &settings, std::shared_ptr<const RowSource> rows, int rank, int numRanks,
              std::shared_ptr<const DpuSimulation> simulation);

  void computeRound() override;
  std::span<const std::byte> partialSums() const override;
  void finishRound(std::span<const std::byte> allSums) override;
  std::vector<double> model() const override;
  void setModel(std::span<const double> model) override;
  void save(const std::function<void(std::string_view)> &write) const override;
  void restore(const std::function<size_t(std::span<char>)> &read) override;
  Dispersion dispersion() const override;
  SimulatedRound simulatedRound() const override;
  int64_t simulatedTraffic() const override;
  SampledRound sampleRound(const DpuSimulation &simulation, int64_t maxEntries) const override;

private:
  /// What one thread needs beside the shared state.
  struct Worker {
    LocalSolver<A> solver;
    RowBuffer buffer;
    std::vector<Weight> weights;
    std::vector<Weight> pull;
  };

  /// ADMM's and gossip's state of one DPU.
  Weight *weightsOf(int64_t dpu) { return local_.data() + (dpu - firstDpu_) * features_; }
  Weight *dualsOf(int64_t dpu) { return duals_.data() + (dpu - firstDpu_) * features_; }

  void computeGroup(int64_t group, Worker &worker);
  void computeGradients(int64_t dpu, Sum *sum, Worker &worker);
  void computeModel(int64_t dpu, Sum *sum, Worker &worker);
  void computeAdmm(int64_t dpu, Sum *sum, Worker &worker);
  void computeGossip(int64_t dpu, Worker &worker);
  void runSteps(int64_t dpu, int64_t firstStep, int64_t numSteps, Weight *weights, Bias &bias, const Weight *pull,
                Worker &worker);
  void finishGradients(const Sum *sum);
  void finishModels(const Sum *sum);
  void finishAdmm(const Sum *sum);
  void finishGossip();
  void measure(int64_t dpu, const Weight *weights);

  /// The global model that a DPU starts this round from: up to `staleness` rounds old.
  const Model<A> &startOf(int64_t dpu) const;
  bool isDifference() const;
  int64_t stepInEpoch() const;
  int64_t stepsOfRound() const;
  std::vector<Weight> meanOfLocals(Bias &bias) const;
  /// The first `steps` of the next round.
  dpu::LaunchStats sampleSteps(const DpuSimulation &simulation, int64_t steps) const;

  Consensus<A> server_;
  std::deque<Model<A>> models_; ///< Newest first.
  Model<A> decayed_;            ///< What a step without gradient makes of the newest model.
  std::vector<Weight> local_, duals_, consensus_;
  std::vector<Bias> localBias_, dualBias_;
  Bias consensusBias_ = 0;
  std::vector<Weight> gossipNext_;
  std::vector<Bias> gossipNextBias_;
  int64_t firstDpu_, lastDpu_;
  int64_t width_; ///< Elements of one group's sums: weights, bias, and the same of u in ADMM.
  std::vector<Sum> sums_;
  std::vector<Sum> ringVectors_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::shared_ptr<const DpuSimulation> simulation_;
  std::vector<std::unique_ptr<SimulatedDpu>> simulated_; ///< In place of the workers' solvers.
  std::vector<double> squares_; ///< ||w_i - w||^2 of each DPU; w is the model before the round.
  double meanSquare_ = 0;       ///< ||m - w||^2; m is the mean of all w_i.
};

template <class A>
std::unique_ptr<Trainer> makeEngine(const Settings &settings, std::shared_ptr<const RowSource> rows, int rank,
                                    int numRanks, std::shared_ptr<const DpuSimulation> simulation) {
  return std::make_unique<RoundEngine<A>>(settings, std::move(rows), rank, numRanks, std::move(simulation));
}

extern template class RoundEngine<Q31>;
extern template class RoundEngine<F32>;

} // namespace nearbank::sgd
