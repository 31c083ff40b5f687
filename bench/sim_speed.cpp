// SPDX-License-Identifier: Apache-2.0
// Speed of the simulator on four kernels: guest instructions per second of host CPU time, caches and DRAM on, 64 cores.
// Usage: bench_sim_speed [repeats]; prints one row per kernel and their geometric mean.
#include "bench/SimSpeedKernels.h"
#include "sim/isa/TestEncoder.h"
#include "sim/system/NmcMachine.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace nearbank;

namespace {

struct Case {
  const char *name;
  const std::vector<uint32_t> &text;
  int64_t tasks;
};

double processSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

} // namespace

int main(int argc, char **argv) {
  int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 3;
  constexpr size_t elements = size_t{4} << 20;
  std::vector<float> a(elements), b(elements), c(elements);
  for (size_t i = 0; i < elements; ++i) {
    a[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
    b[i] = static_cast<float>(i * 104729 % 1000) / 500 - 1;
  }
  const sim::GuestRegion regions[] = {{0x10000000, a.data(), elements * 4, false},
                                      {0x20000000, b.data(), elements * 4, false},
                                      {0x30000000, c.data(), elements * 4, true}};
  const uint64_t operands[] = {0x10000000, 0x20000000, 0x30000000};
  const Case cases[] = {{"matmul", bench::matmulText, 96},
                        {"addRelu", bench::addReluText, 4096},
                        {"softmax", bench::softmaxText, 1024},
                        {"transpose", bench::transposeText, 1024}};

  MachineConfig machine; // the defaults are those of a 64-core stack of 32 vaults
  sim::NmcMachine simulator(machine, 1);
  std::printf("%-10s %14s %12s %10s %12s %12s\n", "kernel", "instructions", "core cycles", "L1D miss", "MIPS best",
              "MIPS worst");
  double logSum = 0;
  for (const Case &test : cases) {
    std::vector<std::byte> elf = sim::encode::elfOf(test.text);
    double best = 0, worst = 1e300;
    sim::NmcLaunchStats stats;
    for (int r = 0; r < repeats; ++r) {
      double start = processSeconds();
      stats = simulator.launch({.elf = elf, .regions = regions, .operandAddresses = operands, .tasks = test.tasks});
      double mips = static_cast<double>(stats.instructions) / 1e6 / (processSeconds() - start);
      best = std::max(best, mips), worst = std::min(worst, mips);
    }
    std::printf("%-10s %14llu %12llu %9.2f%% %12.1f %12.1f\n", test.name,
                static_cast<unsigned long long>(stats.instructions), static_cast<unsigned long long>(stats.coreCycles),
                100.0 * static_cast<double>(stats.l1dMisses) / static_cast<double>(stats.l1dAccesses), best, worst);
    logSum += std::log(best);
  }
  std::printf("geometric mean of best: %.1f million guest instructions per host CPU second\n", std::exp(logSum / 4));
  return 0;
}
