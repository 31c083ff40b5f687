// SPDX-License-Identifier: Apache-2.0
// Known address streams with known miss counts. Every count follows from the configuration by hand.
#include "compiler/profile/CacheHierarchy.h"

#include "compiler/profile/TraceSink.h"
#include "runtime/Error.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace nearbank::profile {
namespace {

/// L1 4 KiB, L2 32 KiB, L3 256 KiB, 4 ways each, lines of 64 B: 64, 512 and 4096 lines in 16, 128 and 1024 sets.
HostConfig smallHost() {
  HostConfig host;
  host.l1d = {4096, 4, 64, 4};
  host.l2 = {32768, 4, 64, 8};
  host.l3 = {262144, 4, 64, 30};
  return host;
}

void sweep(CacheHierarchy &caches, uint64_t bytes, uint64_t stride, bool isWrite = false, uint64_t base = 0) {
  for (uint64_t offset = 0; offset < bytes; offset += stride)
    caches.access(base + offset, 4, isWrite);
}

TEST(CacheHierarchyTest, Cm1SequentialMissesOncePerLine) {
  CacheHierarchy caches(smallHost());
  sweep(caches, 1 << 20, 4);
  EXPECT_EQ(caches.counts().accesses, (1u << 20) / 4);
  EXPECT_EQ(caches.counts().l1Misses, (1u << 20) / 64);
  EXPECT_EQ(caches.counts().l2Misses, (1u << 20) / 64);
  EXPECT_EQ(caches.counts().l3Misses, (1u << 20) / 64);
  EXPECT_EQ(caches.counts().writeBacks, 0u);
}

TEST(CacheHierarchyTest, Cm1StrideOfALineMissesOnEveryAccess) {
  CacheHierarchy caches(smallHost());
  sweep(caches, 1 << 20, 64);
  EXPECT_EQ(caches.counts().l1Misses, caches.counts().accesses);
  EXPECT_EQ(caches.counts().l3Misses, caches.counts().accesses);
}

TEST(CacheHierarchyTest, Cm1StrideOfHalfALineMissesOnEveryOther) {
  CacheHierarchy caches(smallHost());
  sweep(caches, 1 << 20, 32);
  EXPECT_EQ(caches.counts().l1Misses * 2, caches.counts().accesses);
}

TEST(CacheHierarchyTest, Cm1WorkingSetHitsInTheSmallestLevelThatHoldsIt) {
  // Repeated sweeps: after the first, a set of lines misses exactly in the levels that are too small for it; LRU keeps
  // nothing of a cyclic sweep over more than it holds.
  struct Case {
    uint64_t bytes;
    bool missesL1, missesL2, missesL3;
  };
  for (const Case &c :
       {Case{4096, false, false, false}, Case{8192, true, false, false}, Case{32768, true, false, false},
        Case{65536, true, true, false}, Case{262144, true, true, false}, Case{524288, true, true, true}}) {
    CacheHierarchy caches(smallHost());
    sweep(caches, c.bytes, 64);
    caches.resetCounts();
    for (int pass = 0; pass < 3; ++pass)
      sweep(caches, c.bytes, 64);
    uint64_t lines = 3 * c.bytes / 64;
    EXPECT_EQ(caches.counts().l1Misses, c.missesL1 ? lines : 0) << c.bytes;
    EXPECT_EQ(caches.counts().l2Misses, c.missesL2 ? lines : 0) << c.bytes;
    EXPECT_EQ(caches.counts().l3Misses, c.missesL3 ? lines : 0) << c.bytes;
  }
}

TEST(CacheHierarchyTest, Cm1LinesOfOneSetConflictBeyondTheWays) {
  // Addresses 1024 B apart share an L1 set (16 sets x 64 B); four stay, five thrash.
  for (uint64_t lines : {4, 5}) {
    CacheHierarchy caches(smallHost());
    for (int pass = 0; pass < 10; ++pass)
      sweep(caches, lines * 1024, 1024);
    EXPECT_EQ(caches.counts().l1Misses, lines == 4 ? 4 : 50);
    EXPECT_EQ(caches.counts().l2Misses, lines);
  }
}

TEST(CacheHierarchyTest, Cm1LeastRecentlyUsedLineLeavesFirst) {
  CacheHierarchy caches(smallHost());
  for (uint64_t line : {0, 1, 2, 3, 0, 4}) // 4 displaces 1, not 0.
    caches.access(line * 1024, 4, false);
  EXPECT_EQ(caches.counts().l1Misses, 5u);
  caches.access(0, 4, false);
  EXPECT_EQ(caches.counts().l1Misses, 5u);
  caches.access(1024, 4, false);
  EXPECT_EQ(caches.counts().l1Misses, 6u);
}

TEST(CacheHierarchyTest, Cm1WritesAllocateAndDirtyLinesGoBackOnce) {
  CacheHierarchy caches(smallHost());
  sweep(caches, 1 << 20, 64, true);
  EXPECT_EQ(caches.counts().l3Misses, 16384u);
  // What is still in the hierarchy has not gone back; L3 holds 4096 lines and L1 and L2 at most their 576.
  EXPECT_GE(caches.counts().writeBacks, 16384u - 4096 - 576);
  EXPECT_LE(caches.counts().writeBacks, 16384u - 4096);
  sweep(caches, 1 << 20, 64, false, 1 << 24);
  EXPECT_EQ(caches.counts().writeBacks, 16384u);
}

TEST(CacheHierarchyTest, Cm1RowWalkAndColumnWalkOfAMatrix) {
  // 256 x 256 f32, 256 KiB: by rows one miss per line; by columns every access misses L1 and L2, as 256 lines of one
  // column (stride 1 KiB) fall into one L1 set and 8 L2 sets. L3 just holds the matrix.
  constexpr uint64_t n = 256;
  CacheHierarchy rows(smallHost()), columns(smallHost());
  for (uint64_t i = 0; i < n; ++i)
    for (uint64_t j = 0; j < n; ++j) {
      rows.access((i * n + j) * 4, 4, false);
      columns.access((j * n + i) * 4, 4, false);
    }
  EXPECT_EQ(rows.counts().l1Misses, n * n / 16);
  EXPECT_EQ(columns.counts().l1Misses, n * n);
  EXPECT_EQ(columns.counts().l2Misses, n * n);
  EXPECT_EQ(columns.counts().l3Misses, n * n / 16);
}

TEST(CacheHierarchyTest, Cm1TwiceTheCacheHalvesNothingButMisses) {
  // The same stream under another configuration gives another result.
  HostConfig larger = smallHost();
  larger.l1d.sizeBytes = 8192;
  CacheHierarchy before(smallHost()), after(larger);
  for (int pass = 0; pass < 2; ++pass) {
    sweep(before, 8192, 64);
    sweep(after, 8192, 64);
  }
  EXPECT_EQ(before.counts().l1Misses, 256u);
  EXPECT_EQ(after.counts().l1Misses, 128u);

  HostConfig direct = smallHost();
  direct.l1d.ways = 1;
  CacheHierarchy directMapped(direct);
  for (int pass = 0; pass < 10; ++pass)
    sweep(directMapped, 2 * 4096, 4096);
  EXPECT_EQ(directMapped.counts().l1Misses, 20u);

  HostConfig longLines = smallHost();
  longLines.l1d.lineBytes = longLines.l2.lineBytes = longLines.l3.lineBytes = 128;
  CacheHierarchy halved(longLines);
  sweep(halved, 1 << 20, 4);
  EXPECT_EQ(halved.counts().l1Misses, (1u << 20) / 128);
}

TEST(CacheHierarchyTest, AccessAcrossALineBorderTouchesBothLines) {
  CacheHierarchy caches(smallHost());
  caches.access(60, 8, false);
  EXPECT_EQ(caches.counts().accesses, 1u);
  EXPECT_EQ(caches.counts().l1Misses, 2u);
}

TEST(CacheHierarchyTest, ResetEmptiesEveryLevel) {
  CacheHierarchy caches(smallHost());
  sweep(caches, 4096, 64);
  caches.reset();
  sweep(caches, 4096, 64);
  EXPECT_EQ(caches.counts().l3Misses, 64u);
}

TEST(CacheHierarchyTest, DifferentLineSizesAreRefused) {
  HostConfig host = smallHost();
  host.l3.lineBytes = 128;
  EXPECT_THROW(CacheHierarchy{host}, UserError);
}

TEST(CacheHierarchyTest, CountsDoNotDependOnThePlaceOfTheArena) {
  std::vector<float> memory(1 << 16);
  uint64_t misses[2];
  for (int shift : {0, 1}) {
    CacheHierarchy caches(smallHost());
    const float *arena = memory.data() + shift * 24; // Not at the same place in a line.
    TraceSink sink(caches, arena, 1 << 17, 1 << 30);
    CurrentTraceSink current(sink);
    for (int i = 0; i < 1 << 14; ++i)
      nearbankTraceAccess(arena + i, 4, 0);
    misses[shift] = caches.counts().l1Misses;
  }
  EXPECT_EQ(misses[0], 1024u);
  EXPECT_EQ(misses[1], 1024u);
}

TEST(CacheHierarchyTest, SinkBelongsToItsThreadAndHonoursItsLimit) {
  CacheHierarchy caches(smallHost());
  float value = 0;
  nearbankTraceAccess(&value, 4, 0); // No sink: ignored.
  TraceSink sink(caches, &value, 4, 3);
  {
    CurrentTraceSink current(sink);
    for (int i = 0; i < 5; ++i)
      nearbankTraceAccess(&value, 4, 1);
    nearbankTraceOperations(7);
    std::thread([&] { nearbankTraceAccess(&value, 4, 0); }).join();
  }
  nearbankTraceAccess(&value, 4, 0);
  EXPECT_EQ(sink.accesses(), 5u);
  EXPECT_EQ(sink.operations(), 7u);
  EXPECT_TRUE(sink.isOverLimit());
  EXPECT_EQ(caches.counts().accesses, 3u);
}

TEST(CacheHierarchyTest, ModelsTensOfMillionsOfAccessesASecond) {
  // A matrix-multiply-like mix of hits and misses. The bound is a third of what a quiet core reaches, for busy
  // machines.
  HostConfig host;
  host.l1d = {32768, 8, 64, 4};
  host.l2 = {262144, 8, 64, 8};
  host.l3 = {8388608, 16, 64, 30};
  CacheHierarchy caches(host);
  std::vector<char> arena(1);
  TraceSink sink(caches, arena.data(), 1 << 30, UINT64_MAX);
  CurrentTraceSink current(sink);
  auto begin = std::chrono::steady_clock::now();
  constexpr uint64_t n = 384;
  uint64_t accesses = 0;
  for (uint64_t i = 0; i < 16; ++i)
    for (uint64_t j = 0; j < n; ++j)
      for (uint64_t k = 0; k < n; ++k, accesses += 2) {
        nearbankTraceAccess(arena.data() + (i * n + k) * 4, 4, 0);
        nearbankTraceAccess(arena.data() + (1 << 20) + (k * n + j) * 4, 4, 0);
      }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  double perSecond = double(accesses) / seconds;
  RecordProperty("accessesPerSecond", std::to_string(perSecond));
  std::printf("%.1f million accesses a second\n", perSecond / 1e6);
  EXPECT_GT(perSecond, 10e6);
}

} // namespace
} // namespace nearbank::profile
