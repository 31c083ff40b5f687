// SPDX-License-Identifier: Apache-2.0
// Measures what a machine file says of a host: clock, load-to-use latencies, bandwidth, cost of a parallel section.
// Prints one JSON object; bench/describe_host.py makes a machine file of it. Minima over repeats: other programs only
// slow things down.
#include "runtime/HostThreads.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <sys/mman.h>

namespace {

double nowNs() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Memory in large pages where the system has them, so that address translation costs little.
class LargePages {
public:
  explicit LargePages(size_t bytes) : bytes_(bytes + pageBytes) {
    mapped_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED)
      std::abort();
    ::madvise(mapped_, bytes_, MADV_HUGEPAGE);
  }
  LargePages(const LargePages &) = delete;
  LargePages &operator=(const LargePages &) = delete;
  ~LargePages() { ::munmap(mapped_, bytes_); }
  char *get() const {
    auto address = reinterpret_cast<uintptr_t>(mapped_);
    return reinterpret_cast<char *>((address + pageBytes - 1) / pageBytes * pageBytes);
  }

private:
  static constexpr size_t pageBytes = size_t{2} << 20;
  size_t bytes_;
  void *mapped_;
};

/// Dependent additions take a cycle each.
double clockGHz() {
  double best = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    constexpr int64_t additions = 20'000'000;
    uint64_t value = 1;
    double start = nowNs();
    for (int64_t i = 0; i < additions / 10; ++i)
      for (int j = 0; j < 10; ++j) {
        value += 3;
        asm volatile("" : "+r"(value));
      }
    best = std::max(best, static_cast<double>(additions) / (nowNs() - start));
  }
  return best;
}

/// Time of a load whose address the one before it read, over all lines of a working set in random order.
double chaseNs(size_t bytes) {
  constexpr size_t line = 64;
  LargePages memory(bytes);
  size_t lines = bytes / line;
  std::vector<uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (size_t i = 0; i < lines; ++i)
    *reinterpret_cast<void **>(memory.get() + line * order[i]) = memory.get() + line * order[(i + 1) % lines];
  double best = std::numeric_limits<double>::infinity();
  void *place = memory.get();
  for (int repeat = 0; repeat < 7; ++repeat) {
    size_t loads = std::max<size_t>(200'000, std::min<size_t>(lines, 2'000'000));
    double start = nowNs();
    for (size_t i = 0; i < loads; ++i)
      place = *static_cast<void *volatile *>(place);
    best = std::min(best, (nowNs() - start) / static_cast<double>(loads));
  }
  return best;
}

/// Reads a buffer far larger than the caches on all threads.
double readGBs(int threads) {
  constexpr size_t bytesPerThread = size_t{128} << 20;
  std::vector<std::unique_ptr<LargePages>> buffers;
  std::vector<uint64_t> sums(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t) {
    buffers.push_back(std::make_unique<LargePages>(bytesPerThread));
    std::fill_n(reinterpret_cast<uint64_t *>(buffers.back()->get()), bytesPerThread / 8, uint64_t{1});
  }
  double best = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 9; ++repeat) {
    double start = nowNs();
    nearbank::HostThreads::shared().run(threads, threads, [&](int64_t t) {
      auto *words = reinterpret_cast<const uint64_t *>(buffers[static_cast<size_t>(t)]->get());
      uint64_t sum = 0;
      for (size_t i = 0; i < bytesPerThread / 8; ++i)
        sum += words[i];
      sums[static_cast<size_t>(t)] = sum;
    });
    best = std::min(best, nowNs() - start);
  }
  return static_cast<double>(bytesPerThread) * threads / best;
}

/// Median time of a parallel section that does nothing.
double parallelNs(int threads) {
  std::vector<double> times;
  for (int repeat = 0; repeat < 2001; ++repeat) {
    double start = nowNs();
    nearbank::HostThreads::shared().run(threads, threads, [](int64_t) {});
    times.push_back(nowNs() - start);
  }
  std::nth_element(times.begin(), times.begin() + 1000, times.end());
  return times[1000];
}

} // namespace

int main() {
  int threads = nearbank::availableCores();
  std::printf("{\"threads\": %d, \"clockGHz\": %.4f, \"readGBs\": %.2f, \"parallelNs\": %.0f, \"chaseNs\": {", threads,
              clockGHz(), readGBs(threads), threads > 1 ? parallelNs(threads) : 0.0);
  const char *separator = "";
  for (size_t kib = 16; kib <= 256 * 1024; kib *= 2) {
    std::printf("%s\"%zu\": %.3f", separator, kib, chaseNs(kib * 1024));
    separator = ", ";
  }
  std::printf("}}\n");
}
