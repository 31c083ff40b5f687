// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/Race.h"

#include <gtest/gtest.h>

using namespace nearbank::dpu;

namespace {

Access access(const Clocks &clocks, uint8_t tasklet, bool isWrite, uint8_t bytes = 0xff) {
  return {clocks.now(tasklet), 0, tasklet, bytes, isWrite};
}

TEST(RaceTest, WritesOfTwoTaskletsRace) {
  Clocks clocks;
  Shadow shadow;
  EXPECT_EQ(shadow.note(5, access(clocks, 0, true), clocks).bytes, 0);
  Access race = shadow.note(5, access(clocks, 1, true), clocks);
  EXPECT_EQ(race.bytes, 0xff);
  EXPECT_EQ(race.tasklet, 0);
}

TEST(RaceTest, ReadsDoNotRace) {
  Clocks clocks;
  Shadow shadow;
  for (uint8_t tasklet = 0; tasklet < 24; ++tasklet)
    EXPECT_EQ(shadow.note(5, access(clocks, tasklet, false), clocks).bytes, 0);
  EXPECT_NE(shadow.note(5, access(clocks, 3, true), clocks).bytes, 0);
}

TEST(RaceTest, OtherBytesOfTheSameDoubleWordDoNotRace) {
  Clocks clocks;
  Shadow shadow;
  shadow.note(5, access(clocks, 0, true, 0x0f), clocks);
  EXPECT_EQ(shadow.note(5, access(clocks, 1, true, 0xf0), clocks).bytes, 0);
  EXPECT_NE(shadow.note(5, access(clocks, 2, false, 0x80), clocks).bytes, 0);
}

TEST(RaceTest, ALockOrdersWhatIsBeforeItsRelease) {
  Clocks clocks;
  Shadow shadow;
  shadow.note(5, access(clocks, 0, true), clocks);
  clocks.release(0, 7);
  shadow.note(6, access(clocks, 0, true), clocks);
  clocks.acquire(1, 7);
  EXPECT_EQ(shadow.note(5, access(clocks, 1, true), clocks).bytes, 0);
  EXPECT_NE(shadow.note(6, access(clocks, 1, true), clocks).bytes, 0);
  // Another lock orders nothing.
  clocks.acquire(2, 8);
  EXPECT_NE(shadow.note(5, access(clocks, 2, false), clocks).bytes, 0);
}

TEST(RaceTest, WhoIsWokenComesAfter) {
  Clocks clocks;
  Shadow shadow;
  shadow.note(5, access(clocks, 0, true), clocks);
  clocks.wake(0, 1);
  EXPECT_EQ(shadow.note(5, access(clocks, 1, false), clocks).bytes, 0);
  // But the waker does not come after the woken.
  shadow.note(9, access(clocks, 1, true), clocks);
  EXPECT_NE(shadow.note(9, access(clocks, 0, false), clocks).bytes, 0);
}

} // namespace
