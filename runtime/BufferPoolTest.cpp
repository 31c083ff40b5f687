// SPDX-License-Identifier: Apache-2.0
#include "runtime/BufferPool.h"

#include <gmock/gmock.h>

namespace nearbank {
namespace {

TEST(BufferPoolTest, BlocksAreAlignedEvenWhenEmpty) {
  BufferPool pool(1 << 20);
  for (uint64_t bytes : {0u, 1u, 63u, 64u, 65u, 100000u}) {
    BufferPool::Block block = pool.acquire(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % BufferPool::alignment, 0u);
    EXPECT_GE(block.bytes, bytes);
    EXPECT_NE(block.data, nullptr);
    pool.release(block);
  }
}

TEST(BufferPoolTest, ReturnedBlockIsUsedAgain) {
  BufferPool pool(1 << 20);
  BufferPool::Block first = pool.acquire(4096);
  pool.release(first);
  EXPECT_EQ(pool.acquire(4000).data, first.data);
  EXPECT_EQ(pool.keptBytes(), 0u);
  pool.release(first);
}

TEST(BufferPoolTest, SmallRequestDoesNotTakeABigBlock) {
  BufferPool pool(1 << 20);
  pool.release(pool.acquire(1 << 16));
  BufferPool::Block small = pool.acquire(64);
  EXPECT_EQ(small.bytes, 64u);
  pool.release(small);
}

TEST(BufferPoolTest, SmallestFittingBlockIsTaken) {
  BufferPool pool(1 << 20);
  BufferPool::Block big = pool.acquire(8192), fitting = pool.acquire(5120);
  pool.release(fitting);
  pool.release(big);
  EXPECT_EQ(pool.acquire(5000).data, fitting.data);
  pool.release(fitting);
}

TEST(BufferPoolTest, OldestBlocksAreFreedBeyondTheLimit) {
  BufferPool pool(8192);
  BufferPool::Block a = pool.acquire(4096), b = pool.acquire(4096), c = pool.acquire(4096);
  pool.release(a);
  pool.release(b);
  pool.release(c);
  EXPECT_EQ(pool.keptBytes(), 8192u);
  EXPECT_EQ(pool.acquire(4096).data, c.data);
  pool.release(c);
}

} // namespace
} // namespace nearbank
