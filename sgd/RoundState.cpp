// SPDX-License-Identifier: Apache-2.0
// The trainer's model in real numbers, and its state as bytes.
#include "runtime/Error.h"
#include "sgd/RoundEngine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace nearbank::sgd {

namespace {

/// What one unit of a stored weight stands for.
template <class A> double unitOf(const Settings &settings) {
  return std::is_same_v<A, Q31> ? std::ldexp(1.0, settings.weightExponent - 31) : 1.0;
}

class StateWriter {
public:
  explicit StateWriter(const std::function<void(std::string_view)> &write) : write_(write) {}

  template <class T> void number(T value) { bytes(&value, sizeof value); }
  template <class T> void list(const std::vector<T> &values) {
    number<int64_t>(values.size());
    bytes(values.data(), values.size() * sizeof(T));
  }
  void end() {
    write_(waiting_);
    waiting_.clear();
  }

private:
  /// Small things wait until there is a whole piece.
  void bytes(const void *from, size_t size) {
    std::string_view rest(static_cast<const char *>(from), size);
    while (!rest.empty()) {
      std::string_view part = rest.substr(0, Trainer::kStatePiece - waiting_.size());
      waiting_.append(part);
      rest.remove_prefix(part.size());
      if (waiting_.size() == Trainer::kStatePiece)
        end();
    }
  }

  const std::function<void(std::string_view)> &write_;
  std::string waiting_;
};

class StateReader {
public:
  explicit StateReader(const std::function<size_t(std::span<char>)> &read) : read_(read) {}

  template <class T> T number() {
    T value;
    bytes(&value, sizeof value);
    return value;
  }
  /// A list that must have the length that `into` has.
  template <class T> void list(std::vector<T> &into) {
    if (number<int64_t>() != static_cast<int64_t>(into.size()))
      fail();
    bytes(into.data(), into.size() * sizeof(T));
  }
  void end() const {
    char more;
    if (read_({&more, 1}) != 0)
      fail();
  }
  [[noreturn]] static void fail() {
    throw UserError({"NB0706", "the checkpoint is of another job", "",
                     "the data, machine and options it was written with", "another size or number type",
                     "give the same options, or begin anew without --resume"});
  }

private:
  void bytes(void *into, size_t size) {
    std::span<char> rest(static_cast<char *>(into), size);
    while (!rest.empty()) {
      size_t count = read_(rest.first(std::min(rest.size(), Trainer::kStatePiece)));
      if (count == 0)
        fail();
      rest = rest.subspan(count);
    }
  }
  const std::function<size_t(std::span<char>)> &read_;
};

} // namespace

template <class A> std::vector<double> RoundEngine<A>::model() const {
  double unit = unitOf<A>(settings_);
  const Model<A> &newest = models_.front();
  std::vector<double> values;
  values.reserve(features_ + 1);
  for (Weight weight : newest.weights)
    values.push_back(double(weight) * unit);
  values.push_back(double(newest.bias) * unit);
  return values;
}

template <class A> void RoundEngine<A>::setModel(std::span<const double> model) {
  double unit = unitOf<A>(settings_);
  auto stored = [&](double value) {
    if constexpr (std::is_same_v<A, Q31>)
      return static_cast<Weight>(std::llround(std::clamp(value / unit, -2147483647.0, 2147483647.0)));
    else
      return static_cast<Weight>(value);
  };
  Model<A> &newest = models_.front();
  for (int64_t j = 0; j < features_; ++j)
    newest.weights[j] = stored(model[j]);
  newest.bias = stored(model[features_]);
  for (size_t dpu = 0; dpu < localBias_.size(); ++dpu) {
    std::copy(newest.weights.begin(), newest.weights.end(), local_.begin() + dpu * features_);
    localBias_[dpu] = newest.bias;
  }
  if (!consensus_.empty())
    consensus_ = newest.weights;
  consensusBias_ = newest.bias;
}

template <class A> void RoundEngine<A>::save(const std::function<void(std::string_view)> &write) const {
  StateWriter writer(write);
  writer.number<int64_t>(sizeof(Weight));
  writer.number<int64_t>(features_);
  writer.number(numRounds_);
  writer.number<int64_t>(models_.size());
  for (const Model<A> &model : models_) {
    writer.list(model.weights);
    writer.number(model.bias);
  }
  writer.list(local_);
  writer.list(duals_);
  writer.list(consensus_);
  writer.list(localBias_);
  writer.list(dualBias_);
  writer.number(consensusBias_);
  writer.list(ledger_.counts());
  writer.end();
}

template <class A> void RoundEngine<A>::restore(const std::function<size_t(std::span<char>)> &read) {
  StateReader reader(read);
  if (reader.number<int64_t>() != sizeof(Weight) || reader.number<int64_t>() != features_)
    StateReader::fail();
  numRounds_ = reader.number<int64_t>();
  int64_t numModels = reader.number<int64_t>();
  if (numModels < 1 || numModels > settings_.staleness + 1)
    StateReader::fail();
  models_.clear();
  for (int64_t i = 0; i < numModels; ++i) {
    Model<A> model{std::vector<Weight>(features_), 0};
    reader.list(model.weights);
    model.bias = reader.number<Bias>();
    models_.push_back(std::move(model));
  }
  reader.list(local_);
  reader.list(duals_);
  reader.list(consensus_);
  reader.list(localBias_);
  reader.list(dualBias_);
  consensusBias_ = reader.number<Bias>();
  std::vector<int64_t> counts = ledger_.counts();
  reader.list(counts);
  ledger_.restore(counts);
  reader.end();
}

template <class A> Dispersion RoundEngine<A>::dispersion() const {
  double unit = unitOf<A>(settings_);
  return {std::accumulate(squares_.begin(), squares_.end(), 0.0) * unit * unit, meanSquare_ * unit * unit};
}

template <class A> SimulatedRound RoundEngine<A>::simulatedRound() const {
  SimulatedRound round;
  for (const auto &one : simulated_) {
    const dpu::LaunchStats &stats = one->stats();
    round.slowestCycles = std::max(round.slowestCycles, stats.cycles);
    round.allCycles += stats.cycles;
    round.dmaBytes += stats.dmaReadBytes + stats.dmaWriteBytes;
  }
  return round;
}

template <class A> int64_t RoundEngine<A>::simulatedTraffic() const {
  int64_t bytes = 0;
  for (const auto &one : simulated_)
    bytes += one->movedBytes();
  return bytes;
}

template class RoundEngine<Q31>;
template class RoundEngine<F32>;

} // namespace nearbank::sgd
