// SPDX-License-Identifier: Apache-2.0
// Rounds of all algorithms: DPUs' work in groups on the threads of this host, then the server's. No contraction.
#include "sgd/RoundEngine.h"

#include "runtime/HostThreads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

namespace nearbank::sgd {

template <class A>
RoundEngine<A>::RoundEngine(const Settings &settings, std::shared_ptr<const RowSource> rows, int rank, int numRanks,
                            std::shared_ptr<const DpuSimulation> simulation)
    : Trainer(settings, std::move(rows), rank, numRanks), server_(settings), firstDpu_(groupBegin(firstGroup_)),
      lastDpu_(groupBegin(lastGroup_)), width_((features_ + 1) * (settings.algorithm == Algorithm::Admm ? 2 : 1)),
      simulation_(std::move(simulation)) {
  models_.push_front({std::vector<Weight>(features_), 0});
  decayed_.weights.resize(features_);
  if (settings.synchronisation != Synchronisation::Gossip)
    sums_.resize((lastGroup_ - firstGroup_) * width_);
  int64_t numLocal = lastDpu_ - firstDpu_;
  if (settings.algorithm == Algorithm::Admm || settings.synchronisation == Synchronisation::Gossip) {
    local_.resize(numLocal * features_);
    localBias_.resize(numLocal);
  }
  if (settings.algorithm == Algorithm::Admm) {
    duals_.resize(numLocal * features_);
    dualBias_.resize(numLocal);
    consensus_.resize(features_);
  }
  if (settings.synchronisation == Synchronisation::Gossip) {
    gossipNext_.resize(local_.size());
    gossipNextBias_.resize(numLocal);
  }
  if (settings.synchronisation == Synchronisation::Ring)
    ringVectors_.resize(numLocal * width_);
  squares_.resize(numLocal);
  int64_t threads = settings.numThreads > 0 ? settings.numThreads : availableCores();
  // Rounds of less work than this end sooner than a second thread has woken up.
  constexpr int64_t workPerThread = 30000;
  int64_t entries = settings.batch * rows_->maxRowEntries() + (isDifference() ? 0 : features_);
  if (roundsPerEpoch_ == 1)
    entries *= stepsPerEpoch_;
  if (!simulation_)
    threads = std::min(threads, numLocal * entries / workPerThread);
  threads = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, lastGroup_ - firstGroup_));
  for (int64_t i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(Worker{{settings, features_, rows_->isSparse()}, {}, {}, {}}));
    workers_.back()->weights.resize(features_);
    workers_.back()->pull.resize(settings.algorithm == Algorithm::Admm ? features_ : 0);
  }
  if (simulation_)
    for (int64_t dpu = firstDpu_; dpu < lastDpu_; ++dpu)
      simulated_.push_back(
          std::make_unique<SimulatedDpu>(*simulation_, settings_, *rows_, dpuBegin(dpu), dpuBegin(dpu + 1)));
}

/// Whether sums hold differences from the model that only decays: sparse rows touch few features of a large model.
/// Exact in fixed point; float32 adds up whole models, and simulated DPUs hand over whole ones.
template <class A> bool RoundEngine<A>::isDifference() const {
  return std::is_same_v<A, Q31> && !simulation_ && settings_.algorithm == Algorithm::MaSgd && rows_->isSparse() &&
         settings_.averageEvery == 1 && settings_.staleness == 0 &&
         settings_.synchronisation != Synchronisation::Gossip && settings_.synchronisation != Synchronisation::Ring;
}

template <class A> int64_t RoundEngine<A>::stepInEpoch() const {
  int64_t round = numRounds_ % roundsPerEpoch_;
  return settings_.algorithm == Algorithm::MaSgd && settings_.averageEvery > 1 ? round * settings_.averageEvery : round;
}

template <class A> int64_t RoundEngine<A>::stepsOfRound() const {
  if (roundsPerEpoch_ == 1)
    return stepsPerEpoch_;
  return settings_.algorithm == Algorithm::MaSgd ? std::min(settings_.averageEvery, stepsPerEpoch_ - stepInEpoch()) : 1;
}

template <class A> const Model<A> &RoundEngine<A>::startOf(int64_t dpu) const {
  if (settings_.staleness == 0)
    return models_.front();
  // SGD-8: a fixed pseudo-random delay of each DPU and round (splitmix64's finaliser).
  uint64_t state = (uint64_t(numRounds_) << 20 ^ uint64_t(dpu)) + 0x9e3779b97f4a7c15u;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
  uint64_t delay = (state ^ (state >> 31)) % uint64_t(settings_.staleness + 1);
  return models_[std::min<uint64_t>(delay, models_.size() - 1)];
}

template <class A>
void RoundEngine<A>::runSteps(int64_t dpu, int64_t firstStep, int64_t numSteps, Weight *weights, Bias &bias,
                              const Weight *pull, Worker &worker) {
  if (simulation_) {
    simulated_[dpu - firstDpu_]->template runSteps<A>(firstStep, numSteps, weights, bias, pull);
    return;
  }
  int64_t dpuRows = dpuBegin(dpu), end = dpuBegin(dpu + 1);
  for (int64_t step = firstStep; step < firstStep + numSteps; ++step) {
    int64_t from = std::min(end, dpuRows + step * settings_.batch), to = std::min(end, from + settings_.batch);
    if (from < to)
      worker.solver.addGradient(rows_->rows(from, to, worker.buffer), weights, bias);
    worker.solver.step(weights, bias, pull);
  }
}

template <class A> void RoundEngine<A>::computeGradients(int64_t dpu, Sum *sum, Worker &worker) {
  const Model<A> &start = startOf(dpu);
  if (simulation_) {
    simulated_[dpu - firstDpu_]->template addGradient<A>(stepInEpoch(), start, sum);
    return;
  }
  int64_t end = dpuBegin(dpu + 1), from = std::min(end, dpuBegin(dpu) + stepInEpoch() * settings_.batch);
  int64_t to = std::min(end, from + settings_.batch);
  if (from < to)
    worker.solver.addGradient(rows_->rows(from, to, worker.buffer), start.weights.data(), start.bias);
  worker.solver.addGradientTo(sum);
  sum[features_] += worker.solver.biasGradient();
  worker.solver.clear();
}

template <class A> void RoundEngine<A>::computeModel(int64_t dpu, Sum *sum, Worker &worker) {
  const Model<A> &start = startOf(dpu);
  if (isDifference()) {
    int64_t end = dpuBegin(dpu + 1), from = std::min(end, dpuBegin(dpu) + stepInEpoch() * settings_.batch);
    int64_t to = std::min(end, from + settings_.batch);
    LocalSolver<A> &solver = worker.solver;
    if (from < to)
      solver.addGradient(rows_->rows(from, to, worker.buffer), start.weights.data(), start.bias);
    double squares = 0;
    for (uint32_t j : solver.touched()) {
      Sum difference = Sum(solver.stepped(j, start.weights[j])) - Sum(decayed_.weights[j]);
      sum[j] += difference;
      squares += double(difference) * double(difference);
    }
    squares_[dpu - firstDpu_] = squares;
    sum[features_] += solver.steppedBias(start.bias);
    solver.clear();
    return;
  }
  std::copy(start.weights.begin(), start.weights.end(), worker.weights.begin());
  Bias bias = start.bias;
  runSteps(dpu, stepInEpoch(), stepsOfRound(), worker.weights.data(), bias, nullptr, worker);
  measure(dpu, worker.weights.data());
  for (int64_t j = 0; j < features_; ++j)
    sum[j] += worker.weights[j];
  sum[features_] += bias;
}

template <class A> void RoundEngine<A>::computeAdmm(int64_t dpu, Sum *sum, Worker &worker) {
  Weight *weights = weightsOf(dpu), *duals = dualsOf(dpu);
  for (int64_t j = 0; j < features_; ++j)
    worker.pull[j] = static_cast<Weight>(server_.pull(duals[j], consensus_[j], false));
  Bias &bias = localBias_[dpu - firstDpu_];
  runSteps(dpu, 0, stepsPerEpoch_, weights, bias, worker.pull.data(), worker);
  measure(dpu, weights);
  Sum *dualSum = sum + features_ + 1;
  for (int64_t j = 0; j < features_; ++j) {
    sum[j] += weights[j];
    dualSum[j] += duals[j];
  }
  sum[features_] += bias;
  dualSum[features_] += dualBias_[dpu - firstDpu_];
}

template <class A> void RoundEngine<A>::computeGossip(int64_t dpu, Worker &worker) {
  runSteps(dpu, stepInEpoch(), stepsOfRound(), weightsOf(dpu), localBias_[dpu - firstDpu_], nullptr, worker);
  measure(dpu, weightsOf(dpu));
}

/// ||a - b||^2.
template <class Weight> static double squaredDistance(const Weight *a, const std::vector<Weight> &b) {
  double squares = 0;
  for (size_t j = 0; j < b.size(); ++j) {
    double difference = double(a[j]) - double(b[j]);
    squares += difference * difference;
  }
  return squares;
}

template <class A> void RoundEngine<A>::measure(int64_t dpu, const Weight *weights) {
  squares_[dpu - firstDpu_] = squaredDistance(weights, models_.front().weights);
}

template <class A> void RoundEngine<A>::computeGroup(int64_t group, Worker &worker) {
  Sum *sum = sums_.empty() ? nullptr : sums_.data() + (group - firstGroup_) * width_;
  if (sum)
    std::fill(sum, sum + width_, Sum(0));
  for (int64_t dpu = groupBegin(group); dpu < groupBegin(group + 1); ++dpu) {
    Sum *into = sum;
    if (!ringVectors_.empty()) {
      into = ringVectors_.data() + (dpu - firstDpu_) * width_;
      std::fill(into, into + width_, Sum(0));
    }
    if (settings_.synchronisation == Synchronisation::Gossip)
      computeGossip(dpu, worker);
    else if (settings_.algorithm == Algorithm::GaSgd)
      computeGradients(dpu, into, worker);
    else if (settings_.algorithm == Algorithm::MaSgd)
      computeModel(dpu, into, worker);
    else
      computeAdmm(dpu, into, worker);
  }
}

template <class A> void RoundEngine<A>::computeRound() {
  if (isDifference())
    workers_[0]->solver.decay(models_.front().weights.data(), decayed_.weights.data());
  std::atomic<int64_t> next{firstGroup_};
  HostThreads::shared().run(static_cast<int64_t>(workers_.size()), static_cast<int>(workers_.size()),
                            [&](int64_t index) {
                              for (int64_t group = next++; group < lastGroup_; group = next++)
                                computeGroup(group, *workers_[index]);
                            });
  for (const auto &one : simulated_)
    one->checkFault();
}

template <class A> std::span<const std::byte> RoundEngine<A>::partialSums() const {
  return std::as_bytes(std::span<const Sum>(sums_));
}

template <class A> void RoundEngine<A>::finishRound(std::span<const std::byte> allSums) {
  std::vector<Sum> joined;
  Sum *sum = nullptr;
  if (!ringVectors_.empty()) {
    ringAllReduce<Sum>(ringVectors_, settings_.numDpus, width_);
    sum = ringVectors_.data();
  } else if (settings_.synchronisation != Synchronisation::Gossip) {
    if (allSums.data() == reinterpret_cast<const std::byte *>(sums_.data())) {
      sum = sums_.data();
    } else {
      joined.resize(allSums.size() / sizeof(Sum));
      std::memcpy(joined.data(), allSums.data(), allSums.size());
      sum = joined.data();
    }
    addTree<Sum>({sum, size_t(numGroups_ * width_)}, numGroups_, width_);
  }
  if (settings_.synchronisation == Synchronisation::Gossip)
    finishGossip();
  else if (settings_.algorithm == Algorithm::GaSgd)
    finishGradients(sum);
  else if (settings_.algorithm == Algorithm::MaSgd)
    finishModels(sum);
  else
    finishAdmm(sum);
  recordRound();
}

template <class A> void RoundEngine<A>::finishModels(const Sum *sum) {
  Model<A> next;
  next.weights.resize(features_);
  for (int64_t j = 0; j < features_; ++j) {
    Sum all = isDifference() ? sum[j] + Sum(settings_.numDpus) * Sum(decayed_.weights[j]) : sum[j];
    next.weights[j] = static_cast<Weight>(server_.mean(all));
  }
  next.bias = server_.mean(sum[features_], !(settings_.isPimOpt && rows_->isSparse()));
  meanSquare_ = squaredDistance(next.weights.data(), isDifference() ? decayed_.weights : models_.front().weights);
  models_.push_front(std::move(next));
  if (models_.size() > size_t(settings_.staleness) + 1)
    models_.pop_back();
}

template <class A> void RoundEngine<A>::finishGradients(const Sum *sum) {
  // The server steps as a DPU does, with the batch of all DPUs.
  LocalSolver<A> &solver = workers_[0]->solver;
  solver.setDivisor(settings_.batch * settings_.numDpus);
  Model<A> next = models_.front();
  solver.stepWith(sum, sum[features_], next.weights.data(), next.bias);
  models_.push_front(std::move(next));
  if (models_.size() > size_t(settings_.staleness) + 1)
    models_.pop_back();
}

template <class A> void RoundEngine<A>::finishAdmm(const Sum *sum) {
  const Sum *dualSum = sum + features_ + 1;
  Model<A> &mean = models_.front();
  meanSquare_ = 0;
  for (int64_t j = 0; j < features_; ++j) {
    Sum meanW = server_.mean(sum[j]);
    double movement = double(meanW) - double(mean.weights[j]);
    meanSquare_ += movement * movement;
    mean.weights[j] = static_cast<Weight>(meanW);
    consensus_[j] = static_cast<Weight>(server_.consensus(meanW, server_.mean(dualSum[j]), false));
  }
  bool isBias = !(settings_.isPimOpt && rows_->isSparse());
  mean.bias = server_.mean(sum[features_], isBias);
  consensusBias_ = server_.consensus(mean.bias, server_.mean(dualSum[features_], isBias), isBias);
  HostThreads::shared().run(lastDpu_ - firstDpu_, static_cast<int>(workers_.size()), [&](int64_t index) {
    Weight *weights = local_.data() + index * features_, *duals = duals_.data() + index * features_;
    for (int64_t j = 0; j < features_; ++j)
      duals[j] = static_cast<Weight>(server_.dual(duals[j], weights[j], consensus_[j], false));
    dualBias_[index] = server_.dual(dualBias_[index], localBias_[index], consensusBias_, isBias);
  });
}

template <class A> void RoundEngine<A>::finishGossip() {
  int64_t dpus = settings_.numDpus;
  HostThreads::shared().run(dpus, static_cast<int>(workers_.size()), [&](int64_t dpu) {
    int64_t left = (dpu + dpus - 1) % dpus, right = (dpu + 1) % dpus;
    const Weight *own = local_.data() + dpu * features_;
    const Weight *a = local_.data() + left * features_, *b = local_.data() + right * features_;
    Weight *next = gossipNext_.data() + dpu * features_;
    for (int64_t j = 0; j < features_; ++j)
      next[j] = static_cast<Weight>((Sum(own[j]) + Sum(a[j]) + Sum(b[j])) / Sum(3));
    gossipNextBias_[dpu] = (localBias_[dpu] + localBias_[left] + localBias_[right]) / Sum(3);
  });
  local_.swap(gossipNext_);
  localBias_.swap(gossipNextBias_);
  Model<A> &mean = models_.front();
  std::vector<Weight> weights = meanOfLocals(mean.bias);
  meanSquare_ = squaredDistance(weights.data(), mean.weights);
  mean.weights = std::move(weights);
}

template <class A> std::vector<typename A::Weight> RoundEngine<A>::meanOfLocals(Bias &bias) const {
  std::vector<Sum> sum(features_ + 1);
  for (int64_t dpu = 0; dpu < settings_.numDpus; ++dpu) {
    const Weight *weights = local_.data() + dpu * features_;
    for (int64_t j = 0; j < features_; ++j)
      sum[j] += weights[j];
    sum[features_] += localBias_[dpu];
  }
  std::vector<Weight> mean(features_);
  for (int64_t j = 0; j < features_; ++j)
    mean[j] = static_cast<Weight>(server_.mean(sum[j]));
  bias = server_.mean(sum[features_], true);
  return mean;
}

template class RoundEngine<Q31>;
template class RoundEngine<F32>;

} // namespace nearbank::sgd
