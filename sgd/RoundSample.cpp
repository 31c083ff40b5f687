// SPDX-License-Identifier: Apache-2.0
// Simulates the work of one DPU in the coming round while the twin trains, and holds it against the twin's bits.
#include "runtime/Error.h"
#include "sgd/RoundEngine.h"

#include <algorithm>

namespace nearbank::sgd {

namespace {

template <class A> bool isSame(const Model<A> &left, const Model<A> &right) {
  return left.weights == right.weights && left.bias == right.bias;
}

} // namespace

template <class A> dpu::LaunchStats RoundEngine<A>::sampleSteps(const DpuSimulation &simulation, int64_t steps) const {
  int64_t dpu = firstDpu_;
  for (int64_t other = firstDpu_; other < lastDpu_; ++other)
    if (dpuBegin(other + 1) - dpuBegin(other) > dpuBegin(dpu + 1) - dpuBegin(dpu))
      dpu = other;
  int64_t end = dpuBegin(dpu + 1), begin = std::min(end, dpuBegin(dpu) + stepInEpoch() * settings_.batch);
  end = std::min(end, begin + steps * settings_.batch);
  Model<A> start = startOf(dpu);
  std::vector<Weight> pull;
  if (!local_.empty()) {
    const Weight *own = local_.data() + (dpu - firstDpu_) * features_;
    start = {std::vector<Weight>(own, own + features_), localBias_[dpu - firstDpu_]};
  }
  if (settings_.algorithm == Algorithm::Admm) {
    const Weight *duals = duals_.data() + (dpu - firstDpu_) * features_;
    for (int64_t j = 0; j < features_; ++j)
      pull.push_back(static_cast<Weight>(server_.pull(duals[j], consensus_[j], false)));
  }

  SimulatedDpu simulated(simulation, settings_, *rows_, begin, end);
  LocalSolver<A> twin(settings_, features_, rows_->isSparse());
  RowBuffer buffer;
  bool isGradient = settings_.algorithm == Algorithm::GaSgd;
  Model<A> ofTwin = start, ofDpu = start;
  if (isGradient) {
    std::vector<Sum> sum(features_ + 1), twinSum(features_ + 1);
    simulated.template addGradient<A>(0, start, sum.data());
    simulated.checkFault();
    twin.addGradient(rows_->rows(begin, end, buffer), start.weights.data(), start.bias);
    twin.addGradientTo(twinSum.data());
    twinSum[features_] += twin.biasGradient();
    if (sum == twinSum)
      return simulated.stats();
  } else {
    const Weight *pulled = pull.empty() ? nullptr : pull.data();
    simulated.template runSteps<A>(0, steps, ofDpu.weights.data(), ofDpu.bias, pulled);
    simulated.checkFault();
    for (int64_t step = 0; step < steps; ++step) {
      int64_t from = std::min(end, begin + step * settings_.batch), to = std::min(end, from + settings_.batch);
      if (from < to)
        twin.addGradient(rows_->rows(from, to, buffer), ofTwin.weights.data(), ofTwin.bias);
      twin.step(ofTwin.weights.data(), ofTwin.bias, pulled);
    }
    if (isSame(ofDpu, ofTwin))
      return simulated.stats();
  }
  throw InternalError({"NB0711", "a DPU and its twin computed different bits", simulation.program().path,
                       "the same model from the training kernel and from the twin", "another one",
                       "report this with the data and options"});
}

template <class A> SampledRound RoundEngine<A>::sampleRound(const DpuSimulation &simulation, int64_t maxEntries) const {
  int64_t steps = settings_.algorithm == Algorithm::GaSgd ? 1 : stepsOfRound();
  int64_t entriesPerStep = settings_.batch * std::max<int64_t>(1, rows_->maxRowEntries()) + features_;
  int64_t most = std::min(steps, std::max<int64_t>(2, maxEntries / entriesPerStep));
  // Steps that were not simulated cost what those between the half and the whole of the sample do.
  auto extended = [&](double all, double half) {
    return most == steps ? all : all + (all - half) / double(most - most / 2) * double(steps - most);
  };
  auto bytesOf = [](const dpu::LaunchStats &stats) { return double(stats.dmaReadBytes + stats.dmaWriteBytes); };
  auto halfOf = [&](const DpuSimulation &of) { return most == steps ? dpu::LaunchStats() : sampleSteps(of, most / 2); };
  SampledRound sample;
  dpu::LaunchStats all = sampleSteps(simulation, most), half = halfOf(simulation);
  sample.cycles = extended(double(all.cycles), double(half.cycles));
  sample.dmaBytes = extended(bytesOf(all), bytesOf(half));
  const DpuSimulation &free = simulation.withoutDma();
  sample.cyclesWithoutDma =
      std::min(sample.cycles, extended(double(sampleSteps(free, most).cycles), double(halfOf(free).cycles)));
  sample.simulatedSteps = most;
  sample.steps = steps;
  return sample;
}

template dpu::LaunchStats RoundEngine<Q31>::sampleSteps(const DpuSimulation &, int64_t) const;
template dpu::LaunchStats RoundEngine<F32>::sampleSteps(const DpuSimulation &, int64_t) const;
template SampledRound RoundEngine<Q31>::sampleRound(const DpuSimulation &, int64_t) const;
template SampledRound RoundEngine<F32>::sampleRound(const DpuSimulation &, int64_t) const;

} // namespace nearbank::sgd
