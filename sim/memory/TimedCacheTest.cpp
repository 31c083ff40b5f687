// SPDX-License-Identifier: Apache-2.0
// The host's caches against closed forms: streams, strides, a matrix walk; and the stream prefetcher.
#include "sim/memory/TimedCache.h"

#include "runtime/Error.h"
#include "sim/memory/StreamPrefetcher.h"

#include <gmock/gmock.h>

namespace nearbank::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool misses(TimedCache &cache, uint64_t address) {
  if (cache.touch(address) != nullptr)
    return false;
  TimedCache::Line victim;
  cache.insert(address, victim);
  return true;
}

uint64_t missesOfSweeps(TimedCache &cache, uint64_t bytes, uint64_t stride, int sweeps) {
  uint64_t count = 0;
  for (int s = 0; s < sweeps; ++s)
    for (uint64_t a = 0; a < bytes; a += stride)
      count += misses(cache, a) ? 1 : 0;
  return count;
}

TEST(TimedCacheTest, StreamsAndStridesMissOncePerLine) {
  for (uint64_t stride : {4, 8, 64, 128, 256, 4096}) {
    TimedCache cache({32768, 8, 64, 4}, "test");
    EXPECT_EQ(missesOfSweeps(cache, 1 << 20, stride, 1), (1u << 20) / std::max<uint64_t>(64, stride));
  }
}

TEST(TimedCacheTest, CapacityAndOneLineMore) {
  TimedCache cache({32768, 8, 64, 4}, "test");
  EXPECT_EQ(missesOfSweeps(cache, 32768, 64, 10), 512u);
  cache.reset();
  // LRU: the 9 lines of set 0 miss on each sweep, the other 63 sets keep their 8.
  EXPECT_EQ(missesOfSweeps(cache, 32768 + 64, 64, 10), 512u - 8 + 9 * 10);
}

TEST(TimedCacheTest, StridesThatMeetInOneSetKeepAsManyLinesAsThereAreWays) {
  for (int64_t ways : {1, 2, 4, 8, 16}) {
    TimedCache cache({32768, ways, 64, 4}, "test");
    auto w = static_cast<uint64_t>(ways);
    uint64_t setStride = 32768 / w;
    EXPECT_EQ(missesOfSweeps(cache, setStride * w, setStride, 5), w);
    cache.reset();
    EXPECT_EQ(missesOfSweeps(cache, setStride * (w + 1), setStride, 5), (w + 1) * 5);
  }
}

TEST(TimedCacheTest, MatrixWalksMissAsCounted) {
  // An n x n matrix of 4 B with rows of an odd number of lines, walked by rows and by columns.
  auto walk = [](uint64_t n, uint64_t rowBytes, bool byColumns) {
    TimedCache cache({32768, 8, 64, 4}, "test");
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; ++i)
      for (uint64_t j = 0; j < n; ++j)
        count += misses(cache, byColumns ? j * rowBytes + i * 4 : i * rowBytes + j * 4) ? 1 : 0;
    return count;
  };
  uint64_t row = 64 * 17; // 272 elements
  EXPECT_EQ(walk(272, row, false), 272u * 17);
  // A column touches 272 lines, fewer than the cache's 512, and 17 is odd: the next 15 columns hit.
  EXPECT_EQ(walk(272, row, true), 272u * 17);
  // A column of 1,040 rows does not fit: every access misses.
  EXPECT_EQ(walk(1040, 64 * 65, false), 1040u * 65);
  EXPECT_EQ(walk(1040, 64 * 65, true), 1040u * 1040);
}

TEST(TimedCacheTest, VictimsAreTheOldestAndKnowWhetherTheyAreDirty) {
  TimedCache cache({2 * 64, 2, 64, 4}, "test");
  TimedCache::Line victim;
  cache.insert(0, victim)->markDirty();
  EXPECT_FALSE(victim.isValid());
  cache.insert(64, victim);
  EXPECT_FALSE(victim.isValid());
  cache.touch(0);
  cache.insert(128, victim);
  EXPECT_EQ(victim.address(), 64u);
  EXPECT_FALSE(victim.isDirty());
  cache.insert(192, victim);
  EXPECT_EQ(victim.address(), 0u);
  EXPECT_TRUE(victim.isDirty());
  cache.reset();
  EXPECT_EQ(cache.touch(192), nullptr);
}

TEST(TimedCacheTest, AgedSetsGiveUpTheirLinesFirst) {
  // 64 sets of 8 ways, three quarters full, a third of that dirty.
  TimedCache cache({32768, 8, 64, 4}, "test");
  cache.age(0.75, 1.0 / 3);
  int valid = 0, dirty = 0;
  TimedCache::Line victim;
  for (uint64_t address = 0; address < 32768; address += 64) {
    ASSERT_EQ(cache.touch(address), nullptr);
    cache.insert(address, victim);
    valid += victim.isValid() ? 1 : 0;
    dirty += victim.isDirty() ? 1 : 0;
  }
  EXPECT_EQ(valid, 384);
  EXPECT_NEAR(dirty, 128, 16);
  EXPECT_EQ(missesOfSweeps(cache, 32768, 64, 1), 0u); // the real lines are all there
  cache.reset();
  cache.insert(0, victim);
  EXPECT_FALSE(victim.isValid());
}

TEST(TimedCacheTest, ImpossibleSizesAreRefused) {
  EXPECT_THROW(TimedCache({3 * 64, 1, 64, 4}, "test"), UserError);
  EXPECT_THROW(TimedCache({32768, 8, 48, 4}, "test"), UserError);
  EXPECT_THROW(TimedCache({0, 8, 64, 4}, "test"), UserError);
}

class StreamPrefetcherTest : public testing::Test {
protected:
  StreamPrefetcher prefetcher{{.streams = 2, .trainAccesses = 2, .degree = 2, .distanceLines = 4, .pageBytes = 4096},
                              64};
};

TEST_F(StreamPrefetcherTest, AscendingRunsArePrefetchedUpToTheDistance) {
  EXPECT_THAT(prefetcher.observe(0), IsEmpty());
  EXPECT_THAT(prefetcher.observe(64), ElementsAre(128, 192));
  EXPECT_THAT(prefetcher.observe(128), ElementsAre(256, 320));
  EXPECT_THAT(prefetcher.observe(192), ElementsAre(384, 448));
  EXPECT_THAT(prefetcher.observe(256), ElementsAre(512)); // four lines ahead, no more
  EXPECT_THAT(prefetcher.observe(320), ElementsAre(576));
}

TEST_F(StreamPrefetcherTest, DescendingRunsAsWell) {
  EXPECT_THAT(prefetcher.observe(4032), IsEmpty());
  EXPECT_THAT(prefetcher.observe(3968), ElementsAre(3904, 3840));
}

TEST_F(StreamPrefetcherTest, StreamsEndAtThePage) {
  prefetcher.observe(3904);
  EXPECT_THAT(prefetcher.observe(3968), ElementsAre(4032));
  EXPECT_THAT(prefetcher.observe(4032), IsEmpty());
  EXPECT_THAT(prefetcher.observe(4096), IsEmpty()); // a page of its own, not trained yet
}

TEST_F(StreamPrefetcherTest, RepeatedAndRandomLinesStartNothing) {
  EXPECT_THAT(prefetcher.observe(640), IsEmpty());
  EXPECT_THAT(prefetcher.observe(640), IsEmpty());
  for (uint64_t page : {7, 3, 9, 1, 8, 5})
    EXPECT_THAT(prefetcher.observe(page * 4096 + 640), IsEmpty());
}

TEST_F(StreamPrefetcherTest, FollowsAsManyStreamsAsItHas) {
  prefetcher.observe(0);
  prefetcher.observe(1 << 20);
  EXPECT_THAT(prefetcher.observe(64), ElementsAre(128, 192));
  EXPECT_THAT(prefetcher.observe((1 << 20) + 64), ElementsAre((1 << 20) + 128, (1 << 20) + 192));
  prefetcher.observe(2 << 20); // replaces the stream that was used the longest ago
  EXPECT_THAT(prefetcher.observe(128), IsEmpty());
}

} // namespace
} // namespace nearbank::sim
