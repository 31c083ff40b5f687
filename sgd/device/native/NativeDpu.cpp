// SPDX-License-Identifier: Apache-2.0
// Tasklets as threads, MRAM as host memory. MRAM accesses are checked as hardware would need them.
#include "sgd/device/native/NativeDpu.h"

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

namespace {

thread_local uint32_t currentTasklet;
uint8_t *currentHeap;
size_t currentHeapBytes;
std::unique_ptr<std::barrier<>> currentBarrier;

void require(bool isRight, const char *what) {
  if (!isRight) {
    std::fprintf(stderr, "training kernel: %s\n", what);
    std::abort();
  }
}

void checkTransfer(const void *mram, const void *wram, uint32_t bytes) {
  require(bytes >= 8 && bytes <= 2048 && bytes % 8 == 0, "MRAM transfers take 8 to 2048 B in steps of 8");
  require(reinterpret_cast<uintptr_t>(wram) % 8 == 0, "WRAM address is not aligned to 8 B");
  const uint8_t *at = static_cast<const uint8_t *>(mram);
  require(at >= currentHeap && at + bytes <= currentHeap + currentHeapBytes, "MRAM address outside of the heap");
  require((at - currentHeap) % 8 == 0, "MRAM address is not aligned to 8 B");
}

} // namespace

extern "C" {

uint32_t sgd_native_tasklet(void) { return currentTasklet; }
void *sgd_native_heap(void) { return currentHeap; }

void mram_read(const void *from, void *to, uint32_t bytes) {
  checkTransfer(from, to, bytes);
  std::memcpy(to, from, bytes);
}

void mram_write(const void *from, void *to, uint32_t bytes) {
  checkTransfer(to, from, bytes);
  std::memcpy(to, from, bytes);
}

void barrier_wait(void *) { currentBarrier->arrive_and_wait(); }

// One entry and one argument block for each variant; the build gives the list.
#define NB_VARIANT(symbol, name, tasklets)                                                                             \
  int sgd_kernel_##symbol(void);                                                                                       \
  extern SgdArguments sgd_arguments_##symbol;
#include "NativeVariants.inc"
#undef NB_VARIANT
}

namespace nearbank::sgd {

namespace {

struct Entry {
  int (*run)();
  SgdArguments *arguments;
};

const std::map<std::pair<std::string, int>, Entry> &entries() {
  static const std::map<std::pair<std::string, int>, Entry> all = {
#define NB_VARIANT(symbol, name, tasklets) {{name, tasklets}, {sgd_kernel_##symbol, &sgd_arguments_##symbol}},
#include "NativeVariants.inc"
#undef NB_VARIANT
  };
  return all;
}

} // namespace

const std::vector<std::string> &nativeVariants() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const auto &[key, entry] : entries())
      if (found.empty() || found.back() != key.first)
        found.push_back(key.first);
    return found;
  }();
  return names;
}

void NativeMemory::write(uint32_t at, const void *from, size_t size) { std::memcpy(bytes.data() + at, from, size); }

void NativeMemory::read(uint32_t at, void *to, size_t size) const { std::memcpy(to, bytes.data() + at, size); }

void runNative(const std::string &variant, int numTasklets, const DeviceImage &image, NativeMemory &memory) {
  const Entry &entry = entries().at({variant, numTasklets});
  *entry.arguments = image.arguments();
  currentHeap = memory.bytes.data();
  currentHeapBytes = memory.bytes.size();
  currentBarrier = std::make_unique<std::barrier<>>(numTasklets);
  std::vector<std::thread> tasklets;
  for (int tasklet = 0; tasklet < numTasklets; ++tasklet)
    tasklets.emplace_back([&, tasklet] {
      currentTasklet = static_cast<uint32_t>(tasklet);
      entry.run();
    });
  for (std::thread &thread : tasklets)
    thread.join();
}

} // namespace nearbank::sgd
