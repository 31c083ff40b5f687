// SPDX-License-Identifier: Apache-2.0
// Sampled against exact simulation, over the nests of SamplingNests.inc: error of the time, whether the 95 % interval
// holds the exact time, and how many times faster. Usage: bench_sampling_study [machine [nest...]]; prints one row per
// nest and a summary. Times of one thread, process CPU time.
#include "sim/isa/TestEncoder.h"
#include "sim/system/HostMachine.h"
#include "sim/system/NmcMachine.h"
#include "sim/system/SampledLaunch.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <string>

using namespace nearbank;

namespace {

#include "bench/SamplingKernels.inc"

enum class Indices { None, Uniform, Zipf, RaggedUniform, RaggedZipf, SparseUniform, SparseZipf };

struct Nest {
  const char *name;
  const std::vector<uint32_t> &kernel;
  int64_t n, m, tasks;
  Indices indices;
  double trips;
  bool isIrregular, isLarge;
};

const Nest nests[] = {
#include "bench/SamplingNests.inc"
};

/// Numbers below `bound` with probability proportional to 1 / (1 + rank), ranks spread over the numbers.
class Zipf {
public:
  Zipf(int64_t bound, bool spreads) : bound_(bound), spreads_(spreads) {
    double sum = 0;
    for (int64_t i = 0; i < bound; ++i)
      cumulative_.push_back(sum += 1 / (1.0 + static_cast<double>(i)));
  }
  uint32_t operator()(std::mt19937_64 &random) const {
    double at = std::generate_canonical<double, 53>(random) * cumulative_.back();
    auto rank = std::lower_bound(cumulative_.begin(), cumulative_.end(), at) - cumulative_.begin();
    // An odd factor permutes powers of two.
    return static_cast<uint32_t>(spreads_ ? rank * 7919 % bound_ : rank);
  }

private:
  int64_t bound_;
  bool spreads_;
  std::vector<double> cumulative_;
};

std::vector<uint32_t> indicesOf(const Nest &nest) {
  std::mt19937_64 random(1);
  std::vector<uint32_t> x;
  auto below = [&](int64_t bound) { return static_cast<uint32_t>(random() % static_cast<uint64_t>(bound)); };
  bool isZipf = nest.indices == Indices::Zipf || nest.indices == Indices::SparseZipf;
  if (nest.indices == Indices::Uniform || nest.indices == Indices::Zipf) {
    Zipf zipf(isZipf ? nest.m : 1, true);
    bool isOfRows = &nest.kernel == &gatherRows || &nest.kernel == &scatterRows;
    x.resize(static_cast<size_t>(isOfRows ? nest.tasks : nest.tasks * nest.n));
    for (uint32_t &index : x)
      index = isZipf ? zipf(random) : below(nest.m);
  } else if (nest.indices != Indices::None) {
    Zipf lengths(nest.indices == Indices::RaggedZipf ? nest.m : 1, false);
    x.push_back(0);
    for (int64_t t = 0; t < nest.tasks; ++t)
      x.push_back(x.back() + (nest.indices == Indices::RaggedZipf ? lengths(random) : below(nest.m)));
    if (nest.indices == Indices::SparseUniform || nest.indices == Indices::SparseZipf) {
      Zipf columns(isZipf ? nest.n : 1, true);
      for (size_t i = x.back(); i > 0; --i)
        x.push_back(isZipf ? columns(random) : below(nest.n));
    }
  }
  return x;
}

double processSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Outcome {
  double exactNs = 0, sampledNs = 0, lowNs = 0, highNs = 0, exactSeconds = 0, sampledSeconds = 0;
  uint64_t instructions = 0;
  bool ranWhole = false;
  double error() const { return sampledNs / exactNs - 1; }
  bool isCovered() const { return lowNs <= exactNs && exactNs <= highNs; }
  double gain() const { return exactSeconds / sampledSeconds; }
};

Outcome study(sim::SimulatedMachine &machine, const Nest &nest) {
  std::vector<uint32_t> x = indicesOf(nest);
  bool isElements = &nest.kernel == &gatherElements || &nest.kernel == &scatterElements;
  bool isRagged = nest.n == 0, isSparse = &nest.kernel == &sparseRows;
  int64_t rows = std::max({nest.tasks * (&nest.kernel == &gemmBlocks ? 16 : 1) + 2, nest.m, int64_t{2}});
  int64_t wide = std::max({nest.n, nest.m, int64_t{16}});
  auto elements = static_cast<size_t>(isElements ? std::max(nest.m, nest.tasks * nest.n)
                                      : isRagged || isSparse
                                          ? std::max<int64_t>(x[static_cast<size_t>(nest.tasks)], nest.tasks) + nest.n
                                      : nest.m > 4096                ? std::max(nest.m, nest.tasks) * nest.n
                                      : &nest.kernel == &batchedGemm ? nest.tasks * nest.n * nest.n
                                      : &nest.kernel == &poolRows    ? 2 * rows * nest.n
                                                                     : rows * wide);
  std::vector<float> a(elements), b(elements), o(elements);
  std::mt19937_64 random(2);
  for (size_t i = 0; i < elements; ++i) {
    a[i] = static_cast<float>(random() >> 40) / 16777216;
    b[i] = static_cast<float>(i * 104729 % 1000) / 1000;
  }
  x.resize(std::max<size_t>(16, x.size()));
  std::vector<int64_t> sizes = {nest.n, nest.m, 0, 0, 0, 0, 0, 0};
  auto base = [](uint64_t i) { return (i + 1) << 32; };
  const sim::GuestRegion regions[] = {{base(0), a.data(), elements * 4, false},
                                      {base(1), b.data(), elements * 4, false},
                                      {base(2), o.data(), elements * 4, true},
                                      {base(3), x.data(), x.size() * 4, false},
                                      {base(4), sizes.data(), 64, false}};
  const uint64_t operands[] = {base(0), base(1), base(2), base(3), base(4)};
  std::vector<std::byte> elf = sim::encode::elfOf(nest.kernel);
  sim::NmcLaunch launch;
  launch.elf = elf;
  launch.regions = regions;
  launch.operandAddresses = operands;
  launch.tasks = nest.tasks;
  launch.reductionTrips = nest.trips;
  Outcome outcome;
  double start = processSeconds();
  sim::SampledTiming sampled = launchSampled(machine, launch);
  outcome.sampledSeconds = processSeconds() - start;
  start = processSeconds();
  sim::NmcLaunchStats exact = machine.launch(launch);
  outcome.exactSeconds = processSeconds() - start;
  outcome.exactNs = exact.timeNs, outcome.instructions = exact.instructions;
  outcome.sampledNs = sampled.stats.timeNs, outcome.lowNs = sampled.lowNs, outcome.highNs = sampled.highNs;
  outcome.ranWhole = sampled.isExact;
  return outcome;
}

} // namespace

int main(int argc, char **argv) {
  std::string name = argc > 1 ? argv[1] : "nmc-64";
  MachineConfig config = loadMachine(name, NB_MACHINES_FOLDER);
  std::unique_ptr<sim::SimulatedMachine> machine;
  if (config.kind == "host")
    machine = std::make_unique<sim::HostMachine>(config);
  else
    machine = std::make_unique<sim::NmcMachine>(config, 1);
  std::printf("| nest on %s | instructions | exact us | sampled us | error | interval | times faster "
              "|\n|---|---|---|---|---|---|---|\n",
              name.c_str());
  double errors = 0, worst = 0, leastGain = 1e300, logGain = 0;
  int count = 0, irregular = 0, covered = 0, large = 0;
  for (const Nest &nest : nests) {
    if (argc > 2 &&
        std::none_of(argv + 2, argv + argc, [&](const char *wanted) { return std::strcmp(wanted, nest.name) == 0; }))
      continue;
    Outcome outcome = study(*machine, nest);
    std::printf("| %s | %.3g | %.1f | %.1f | %+.2f %% | %s | %.1f |\n", nest.name,
                static_cast<double>(outcome.instructions), outcome.exactNs / 1e3, outcome.sampledNs / 1e3,
                100 * outcome.error(),
                outcome.ranWhole      ? "whole"
                : outcome.isCovered() ? "holds"
                                      : "misses",
                outcome.gain());
    std::fflush(stdout);
    ++count;
    irregular += nest.isIrregular ? 1 : 0;
    covered += outcome.isCovered() ? 1 : 0;
    errors += std::fabs(outcome.error());
    worst = std::max(worst, std::fabs(outcome.error()));
    if (nest.isLarge) {
      ++large;
      leastGain = std::min(leastGain, outcome.gain());
      logGain += std::log(outcome.gain());
    }
  }
  std::printf("\n%d nests, %d irregular: mean error %.2f %%, worst %.2f %%, interval holds in %.0f %%", count,
              irregular, 100 * errors / count, 100 * worst, 100.0 * covered / count);
  if (large > 0)
    std::printf("; %d large ones: %.0f times faster (geometric mean), %.0f at least", large, std::exp(logGain / large),
                leastGain);
  std::printf("\n");
  return 0;
}
