// SPDX-License-Identifier: Apache-2.0
#include "compiler/profile/HostProfiler.h"

#include "compiler/profile/PerfCounters.h"
#include "compiler/profile/ProfileDatabase.h"
#include "compiler/profile/TraceSink.h"
#include "runtime/Error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

namespace nearbank::profile {
namespace {

HostConfig testHost() {
  HostConfig host;
  host.l1d = {32768, 8, 64, 4};
  host.l2 = {262144, 8, 64, 8};
  host.l3 = {8388608, 16, 64, 30};
  return host;
}

/// A program of one nest over f32 buffers of the given sizes; the last one is written.
Program programOf(const std::vector<uint64_t> &elements, int64_t extent, double operations) {
  Program program;
  NestInstance nest;
  nest.id = "n0";
  NestKernel kernel;
  kernel.key = "0123";
  kernel.name = "kernel";
  kernel.facts.kind = "elementwise";
  kernel.facts.tripCounts = {extent};
  kernel.facts.iterations = kernel.facts.parallelExtent = extent;
  kernel.facts.operations.floatOps = operations;
  for (size_t i = 0; i < elements.size(); ++i) {
    BufferInfo buffer;
    buffer.name = "b" + std::to_string(i);
    buffer.bytes = elements[i] * 4;
    program.buffers.push_back(buffer);
    NestOperand operand;
    operand.buffer = uint32_t(i);
    operand.spanEnd = operand.distinctBytes = buffer.bytes;
    operand.writes = i + 1 == elements.size();
    operand.reads = !operand.writes;
    nest.operands.push_back(operand);
  }
  program.kernels.push_back(kernel);
  program.nests.push_back(nest);
  return program;
}

ProfileOptions quick() {
  ProfileOptions options;
  options.budgetNs = 2e6;
  return options;
}

constexpr int64_t addLength = 1 << 18;

void runAdd(void **operands, int64_t begin, int64_t end, KernelStatus *) {
  const float *a = static_cast<float *>(operands[0]), *b = static_cast<float *>(operands[1]);
  float *c = static_cast<float *>(operands[2]);
  for (int64_t i = begin; i < end; ++i)
    c[i] = a[i] + b[i];
}

void traceAdd(void **operands, int64_t begin, int64_t end, KernelStatus *) {
  const float *a = static_cast<float *>(operands[0]), *b = static_cast<float *>(operands[1]);
  float *c = static_cast<float *>(operands[2]);
  for (int64_t i = begin; i < end; ++i) {
    nearbankTraceAccess(a + i, 4, 0);
    nearbankTraceAccess(b + i, 4, 0);
    nearbankTraceAccess(c + i, 4, 1);
    c[i] = a[i] + b[i];
  }
}

TEST(HostProfilerTest, Hp1TimesAndSpreadsAreMeasured) {
  Program program = programOf({addLength, addLength, addLength}, addLength, addLength);
  HostKernel code{runAdd, traceAdd, addLength, addLength};
  NestProfile profile = profileNest(program, 0, code, testHost(), quick());
  EXPECT_EQ(profile.key, "0123");
  EXPECT_FALSE(profile.host.empty());
  // 3 MiB at no more than 1 TB/s and no less than 10 MB/s.
  EXPECT_GT(profile.oneThreadNs, 3e3);
  EXPECT_LT(profile.oneThreadNs, 3e8);
  EXPECT_GT(profile.allThreadsNs, 0);
  EXPECT_GE(profile.oneThreadSpreadNs, 0);
  EXPECT_GE(profile.repeats, 2);
}

TEST(HostProfilerTest, Cm2SampledStreamGivesTheExactCounts) {
  // A stream's misses are linear in its length, so sampling is exact up to the borders of the windows.
  Program program = programOf({addLength, addLength, addLength}, addLength, addLength);
  HostKernel code{runAdd, traceAdd, addLength, addLength};
  ProfileOptions options = quick();
  options.traceAccesses = 50000;
  CacheProfile sampled = profileNest(program, 0, code, testHost(), options).cache;
  options.traceAccesses = 10000000;
  CacheProfile whole = profileNest(program, 0, code, testHost(), options).cache;
  EXPECT_EQ(whole.sampledShare, 1.0);
  EXPECT_LT(sampled.sampledShare, 0.1);
  EXPECT_EQ(whole.accesses, 3.0 * addLength);
  EXPECT_NEAR(sampled.accesses, whole.accesses, 1);
  EXPECT_EQ(whole.l1Misses, 3.0 * addLength / 16);
  EXPECT_EQ(whole.l3Misses, 3.0 * addLength / 16);
  // 8 windows each may begin in the middle of three lines.
  EXPECT_NEAR(sampled.l1Misses, whole.l1Misses, whole.l1Misses * 0.02);
  EXPECT_NEAR(sampled.l3Misses, whole.l3Misses, whole.l3Misses * 0.02);
  EXPECT_EQ(whole.instructions, 4.0 * addLength);
  EXPECT_NEAR(whole.mpki(), 1000.0 * 3 / 64, 1e-9);
  EXPECT_EQ(whole.lfmr(), 1.0);
  EXPECT_EQ(profileNest(program, 0, code, testHost(), options).cacheSource, "cache-model");
}

constexpr int64_t rows = 64, columns = 256, depth = 512;

/// rows x columns dot products over `depth`; one task per output.
void traceMatmul(void **operands, int64_t begin, int64_t end, KernelStatus *) {
  const float *a = static_cast<float *>(operands[0]), *b = static_cast<float *>(operands[1]);
  float *c = static_cast<float *>(operands[2]);
  for (int64_t task = begin; task < end; ++task) {
    int64_t i = task / columns, j = task % columns;
    for (int64_t k = 0; k < depth; ++k) {
      nearbankTraceAccess(a + i * depth + k, 4, 0);
      nearbankTraceAccess(b + k * columns + j, 4, 0);
    }
    nearbankTraceAccess(c + task, 4, 1);
  }
}
void runMatmul(void **operands, int64_t, int64_t, KernelStatus *) { static_cast<float *>(operands[2])[0] = 1; }

TEST(HostProfilerTest, Cm3SampledReuseDoesNotMultiplyCompulsoryMisses) {
  // The 0.5 MiB of B stay in L3: its misses happen once however many rows there are.
  Program program =
      programOf({rows * depth, depth * columns, rows * columns}, rows * columns, 2.0 * rows * columns * depth);
  HostKernel code{runMatmul, traceMatmul, 1, rows * columns};
  ProfileOptions options = quick();
  options.traceAccesses = 100000000;
  CacheProfile whole = profileNest(program, 0, code, testHost(), options).cache;
  options.traceAccesses = 1000000;
  CacheProfile sampled = profileNest(program, 0, code, testHost(), options).cache;
  double lines = (rows * depth + depth * columns + rows * columns) / 16.0;
  EXPECT_EQ(whole.l3Misses, lines);
  EXPECT_NEAR(sampled.l3Misses, lines, lines * 0.01);
  EXPECT_NEAR(sampled.l1Misses, whole.l1Misses, whole.l1Misses * 0.1);
  EXPECT_EQ(whole.dramBytes, lines * 64);
}

TEST(HostProfilerTest, Cm1CacheSizesChangeTheProfile) {
  Program program =
      programOf({rows * depth, depth * columns, rows * columns}, rows * columns, 2.0 * rows * columns * depth);
  HostKernel code{runMatmul, traceMatmul, 1, rows * columns};
  HostConfig tiny = testHost();
  tiny.l1d.sizeBytes = 4096;
  tiny.l2.sizeBytes = 16384;
  tiny.l3.sizeBytes = 65536;
  CacheProfile large = profileNest(program, 0, code, testHost(), quick()).cache;
  CacheProfile small = profileNest(program, 0, code, tiny, quick()).cache;
  EXPECT_GT(small.l3Misses, 10 * large.l3Misses);
  EXPECT_GT(small.mpki(), 10 * large.mpki());
  EXPECT_NE(cacheConfigHash(tiny), cacheConfigHash(testHost()));
}

TEST(HostProfilerTest, HugeTaskStaysWithinTheLimit) {
  // One task of 67 million accesses: the model sees the limit, the rest is counted.
  Program program = programOf({1 << 20, 1}, 1, 1);
  HostKernel code;
  code.run = [](void **, int64_t, int64_t, KernelStatus *) {};
  code.trace = [](void **operands, int64_t, int64_t, KernelStatus *) {
    for (int pass = 0; pass < 64; ++pass)
      for (int64_t i = 0; i < 1 << 20; ++i)
        nearbankTraceAccess(static_cast<float *>(operands[0]) + i, 4, 0);
  };
  code.tasks = code.traceTasks = 1;
  ProfileOptions options = quick();
  options.traceAccesses = 100000;
  auto begin = std::chrono::steady_clock::now();
  CacheProfile cache = profileNest(program, 0, code, testHost(), options).cache;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(cache.accesses, 64.0 * (1 << 20));
  EXPECT_NEAR(cache.l1Misses, 64.0 * (1 << 20) / 16, 1e4);
}

TEST(HostProfilerTest, OperandsOfOneBufferShareScratchMemory) {
  Program program = programOf({1024, 1024}, 1024, 1024);
  NestOperand &second = program.nests[0].operands[1];
  second.buffer = 0;
  second.byteOffset = 256;
  static std::atomic<bool> isAliased;
  isAliased = true;
  HostKernel code;
  code.run = [](void **operands, int64_t, int64_t, KernelStatus *) {
    if (static_cast<char *>(operands[1]) - static_cast<char *>(operands[0]) != 256)
      isAliased = false;
  };
  code.tasks = 1;
  NestProfile profile = profileNest(program, 0, code, testHost(), quick());
  EXPECT_TRUE(isAliased);
  EXPECT_EQ(profile.cacheSource, "none");
}

TEST(HostProfilerTest, SliceOfALargeBufferTakesOnlyItsOwnMemory) {
  Program program = programOf({1024, 1024}, 1024, 1024);
  program.buffers[0].bytes = uint64_t(1) << 46; // More than any machine has.
  NestOperand &operand = program.nests[0].operands[0];
  operand.byteOffset = operand.spanBegin = uint64_t(1) << 45;
  operand.spanEnd = operand.spanBegin + 4096;
  static float first;
  HostKernel code;
  code.run = [](void **operands, int64_t, int64_t, KernelStatus *) { first = *static_cast<float *>(operands[0]); };
  code.tasks = 1;
  profileNest(program, 0, code, testHost(), quick());
  EXPECT_NE(first, 0);
}

TEST(HostProfilerTest, InPlaceNestSeesFreshContentsOnEachRepeat) {
  // x = x * 2 overflows after 128 repeats unless the contents are restored.
  Program program = programOf({4096}, 4096, 4096);
  program.nests[0].operands[0].reads = program.nests[0].operands[0].writes = true;
  static std::atomic<float> largest;
  static std::atomic<int> runs;
  largest = 0;
  runs = 0;
  HostKernel code;
  code.run = [](void **operands, int64_t begin, int64_t end, KernelStatus *) {
    float *x = static_cast<float *>(operands[0]);
    ++runs;
    for (int64_t i = begin; i < end; ++i) {
      largest = std::max(largest.load(), std::abs(x[i]));
      x[i] *= 2;
    }
  };
  code.tasks = 4096;
  ProfileOptions options = quick();
  options.threads = 1;
  profileNest(program, 0, code, testHost(), options);
  EXPECT_GT(runs, 3);
  EXPECT_LE(largest, 1.0f);
}

TEST(HostProfilerTest, DataHasTheRightTypeAndRange) {
  for (ElementType type : {ElementType::F64, ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::I64,
                           ElementType::I32, ElementType::I16, ElementType::I8, ElementType::I1}) {
    Program program = programOf({65536, 16}, 16, 16);
    program.buffers[0].elementType = type;
    static ElementType current;
    static std::vector<double> seen;
    current = type;
    HostKernel code;
    code.run = [](void **operands, int64_t, int64_t, KernelStatus *) {
      seen.clear();
      for (size_t i = 0; i < 16384; ++i) {
        const char *bytes = static_cast<char *>(operands[0]) + i * bytesOf(current);
        auto load = [&](auto value) {
          std::memcpy(&value, bytes, sizeof(value));
          return value;
        };
        switch (current) {
        case ElementType::F64:
          seen.push_back(load(double()));
          break;
        case ElementType::F32:
          seen.push_back(double(load(float())));
          break;
        case ElementType::F16:
          seen.push_back(double(load(_Float16())));
          break;
        case ElementType::BF16: {
          uint32_t bits = uint32_t(load(uint16_t())) << 16;
          float value;
          std::memcpy(&value, &bits, 4);
          seen.push_back(double(value));
          break;
        }
        case ElementType::I64:
          seen.push_back(double(load(int64_t())));
          break;
        case ElementType::I32:
          seen.push_back(double(load(int32_t())));
          break;
        case ElementType::I16:
          seen.push_back(double(load(int16_t())));
          break;
        default:
          seen.push_back(double(load(int8_t())));
        }
      }
    };
    code.tasks = 1;
    profileNest(program, 0, code, testHost(), quick());
    double sum = 0;
    bool isFloat = type <= ElementType::BF16;
    for (double value : seen) {
      ASSERT_TRUE(std::isfinite(value));
      sum += value;
      if (isFloat) {
        ASSERT_LE(std::abs(value), 1.0);
        ASSERT_GE(std::abs(value), 6.2e-5) << nameOf(type); // Smallest normal f16.
      } else if (type == ElementType::I1) {
        ASSERT_THAT(value, testing::AnyOf(0.0, 1.0));
      } else {
        ASSERT_GE(value, 1.0);
      }
    }
    double mean = sum / double(seen.size());
    EXPECT_NEAR(mean, isFloat ? 0 : type == ElementType::I1 ? 0.5 : 2.0, 0.05) << nameOf(type);
  }
}

int64_t indexBound = 0;
std::atomic<int64_t> largestIndex, distinctSeen;

void runGather(void **operands, int64_t begin, int64_t end, KernelStatus *status) {
  const int64_t *index = static_cast<int64_t *>(operands[0]);
  for (int64_t i = begin; i < end; ++i) {
    largestIndex = std::max(largestIndex.load(), index[i]);
    if (index[i] != index[0])
      ++distinctSeen;
    if (index[i] < 0 || index[i] >= indexBound)
      *status = {1, index[i]};
  }
}

TEST(HostProfilerTest, IndicesAreUniformBelowTheirBound) {
  Program program = programOf({8192, 1024}, 1024, 0);
  program.buffers[0].elementType = ElementType::I64;
  program.kernels[0].facts.isDataDependent = true;
  indexBound = 100;
  largestIndex = distinctSeen = 0;
  HostKernel code{runGather, nullptr, 1024, 0};
  ProfileOptions options = quick();
  options.indexBounds[0] = 100;
  profileNest(program, 0, code, testHost(), options);
  EXPECT_GT(largestIndex, 90);
  EXPECT_LT(largestIndex, 100);
  EXPECT_GT(distinctSeen, 0);
  EXPECT_EQ(indexClassOf(program, 0, options), "0:uniform<100");
}

TEST(HostProfilerTest, IndicesWithoutABoundAreZero) {
  Program program = programOf({8192, 1024}, 1024, 0);
  program.buffers[0].elementType = ElementType::I64;
  program.kernels[0].facts.isDataDependent = true;
  indexBound = 1;
  largestIndex = 0;
  HostKernel code{runGather, nullptr, 1024, 0};
  profileNest(program, 0, code, testHost(), quick());
  EXPECT_EQ(largestIndex, 0);
  EXPECT_EQ(indexClassOf(program, 0, quick()), "zeros");
}

TEST(HostProfilerTest, SlowNestIsWarmedUpOnceAndRepeatedTwice) {
  Program program = programOf({16, 16}, 1, 16);
  static std::atomic<int> runs;
  runs = 0;
  HostKernel code;
  code.run = [](void **, int64_t, int64_t, KernelStatus *) {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
  };
  code.tasks = 1;
  ProfileOptions options = quick();
  options.slowNs = 10e6;
  NestProfile profile = profileNest(program, 0, code, testHost(), options);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(profile.repeats, 2);
  EXPECT_GE(profile.oneThreadNs, 15e6);
  EXPECT_EQ(profile.allThreadsNs, profile.oneThreadNs); // One task cannot be spread.
}

TEST(HostProfilerTest, NestWithoutHostCodeIsAnInternalError) {
  Program program = programOf({16, 16}, 1, 16);
  EXPECT_THROW(profileNest(program, 0, HostKernel{}, testHost(), quick()), InternalError);
}

TEST(HostProfilerTest, CountersCountOrSayWhyNot) {
  std::string reason;
  std::unique_ptr<PerfCounters> counters = PerfCounters::open(reason);
  if (!counters) {
    EXPECT_THAT(reason, testing::StartsWith("perf_event_open: "));
    return;
  }
  counters->start();
  volatile int sum = 0;
  for (int i = 0; i < 100000; ++i)
    sum = sum + i;
  EXPECT_GT(counters->stop().instructions, 100000u);
}

} // namespace
} // namespace nearbank::profile
