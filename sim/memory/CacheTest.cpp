// SPDX-License-Identifier: Apache-2.0
// Caches against streams whose misses are known.
#include "sim/memory/Cache.h"

#include "runtime/Error.h"

#include <gmock/gmock.h>

#include <utility>

namespace nearbank::sim {
namespace {

CacheConfig config(int64_t bytes, int64_t ways, int64_t line = 64) { return {bytes, ways, line, 4}; }

/// Accesses the line of `address`; true on a miss.
bool misses(Cache &cache, uint64_t address, bool isStore = false, CacheLine *victimOut = nullptr) {
  CacheLine *line = cache.touch(address), victim;
  bool isMiss = line == nullptr;
  if (isMiss)
    line = cache.insert(address, victim);
  if (isStore)
    line->markDirty();
  if (victimOut != nullptr)
    *victimOut = victim;
  return isMiss;
}

uint64_t missesOfSweeps(Cache &cache, uint64_t bytes, uint64_t stride, int sweeps) {
  uint64_t count = 0;
  for (int s = 0; s < sweeps; ++s)
    for (uint64_t a = 0; a < bytes; a += stride)
      count += misses(cache, a) ? 1 : 0;
  return count;
}

TEST(CacheTest, SequentialStreamMissesOncePerLine) {
  Cache cache(config(32768, 8), "test");
  EXPECT_EQ(missesOfSweeps(cache, 1 << 20, 4, 1), (1u << 20) / 64);
}

TEST(CacheTest, WorkingSetOfExactlyTheCapacityStays) {
  Cache cache(config(32768, 8), "test");
  EXPECT_EQ(missesOfSweeps(cache, 32768, 64, 10), 512u);
}

TEST(CacheTest, CyclicSweepOneLineBeyondTheCapacityThrashesOneSet) {
  Cache cache(config(32768, 8), "test");
  // LRU: the 9 lines of set 0 miss on each sweep, the other 63 sets keep their 8.
  EXPECT_EQ(missesOfSweeps(cache, 32768 + 64, 64, 10), 512u - 8 + 9 * 10);
}

TEST(CacheTest, ConflictsDependOnTheWays) {
  for (int64_t ways : {1, 2, 4, 8, 16}) {
    Cache cache(config(32768, ways), "test");
    uint64_t setStride = 32768 / static_cast<uint64_t>(ways); // same set every time
    uint64_t fit = missesOfSweeps(cache, setStride * static_cast<uint64_t>(ways), setStride, 5);
    EXPECT_EQ(fit, static_cast<uint64_t>(ways));
    cache.reset();
    uint64_t thrash = missesOfSweeps(cache, setStride * static_cast<uint64_t>(ways + 1), setStride, 5);
    EXPECT_EQ(thrash, static_cast<uint64_t>(ways + 1) * 5);
  }
}

TEST(CacheTest, LineSizeScalesMisses) {
  for (int64_t line : {32, 64, 128, 256}) {
    Cache cache(config(32768, 8, line), "test");
    EXPECT_EQ(missesOfSweeps(cache, 1 << 18, 8, 1), (1u << 18) / static_cast<uint64_t>(line));
  }
}

TEST(CacheTest, StridesMissOncePerLineThatTheyTouch) {
  for (uint64_t stride : {4, 48, 64, 96, 256, 4096}) {
    Cache cache(config(32768, 8), "test");
    uint64_t lines = 0, last = ~uint64_t{0};
    for (uint64_t a = 0; a < 1 << 20; a += stride)
      lines += std::exchange(last, a / 64) != a / 64 ? 1 : 0;
    EXPECT_EQ(missesOfSweeps(cache, 1 << 20, stride, 1), lines) << stride;
  }
}

TEST(CacheTest, MatrixWalksMissAsCounted) {
  // n x n elements of 4 B, rows of an odd number of lines, by rows and by columns.
  auto walk = [](uint64_t n, bool byColumns) {
    Cache cache(config(32768, 8), "test");
    uint64_t count = 0, rowBytes = n * 4;
    for (uint64_t i = 0; i < n; ++i)
      for (uint64_t j = 0; j < n; ++j)
        count += misses(cache, byColumns ? j * rowBytes + i * 4 : i * rowBytes + j * 4) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(walk(272, false), 272u * 17);
  EXPECT_EQ(walk(272, true), 272u * 17) << "a column's 272 lines stay for the next 15 columns";
  EXPECT_EQ(walk(1040, false), 1040u * 65);
  EXPECT_EQ(walk(1040, true), 1040u * 1040) << "a column's 1,040 lines are more than the cache's 512";
}

TEST(CacheTest, EvictsTheLeastRecent) {
  Cache cache(config(4 * 64, 4), "test"); // one set
  for (uint64_t i = 0; i < 4; ++i)
    misses(cache, i * 64);
  misses(cache, 0); // now 1 is the oldest
  CacheLine victim;
  EXPECT_TRUE(misses(cache, 4 * 64, false, &victim));
  EXPECT_EQ(victim.address(), 64u);
  EXPECT_FALSE(misses(cache, 0));
  EXPECT_TRUE(misses(cache, 64));
}

TEST(CacheTest, DirtyLinesLeaveDirtyAndOnlyThey) {
  Cache cache(config(2 * 64, 2), "test");
  misses(cache, 0, true);
  misses(cache, 64);
  CacheLine victim;
  misses(cache, 128, false, &victim);
  EXPECT_EQ(victim.address(), 0u);
  EXPECT_TRUE(victim.isDirty());
  misses(cache, 192, false, &victim);
  EXPECT_EQ(victim.address(), 64u);
  EXPECT_FALSE(victim.isDirty());
  misses(cache, 128, true);
  std::vector<uint64_t> dirty;
  cache.forEachDirty([&](uint64_t address) { dirty.push_back(address); });
  EXPECT_THAT(dirty, ::testing::ElementsAre(128));
}

TEST(CacheTest, RejectsShapesItCannotIndex) {
  EXPECT_THROW(Cache(config(3 * 64 * 8, 8), "test"), UserError);
  EXPECT_THROW(Cache(config(32768, 8, 48), "test"), UserError);
  EXPECT_THROW(Cache(config(32768, 0), "test"), UserError);
  EXPECT_THROW(Cache(config(1000, 8), "test"), UserError);
}

} // namespace
} // namespace nearbank::sim
