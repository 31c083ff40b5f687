// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/SlotSchedule.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace nearbank::dpu {
namespace {

const std::string builtin = NEARBANK_MACHINES_FOLDER "/upmem/upmem-v1a.yaml";

/// DPU-1 and DPU-4 to the letter, slot by slot.
class Pipeline {
public:
  explicit Pipeline(const DpuConfig &config) : dma_(config), dispatch_(static_cast<uint64_t>(config.dispatchCycles)) {}

  uint64_t cycle() const { return cycle_; }
  uint64_t issued() const { return issued_; }
  uint64_t portCycles() const { return portCycles_; }
  DmaEngine &dma() { return dma_; }
  void plan(unsigned id, uint64_t slots) { ring_.push_back({issued_ ? cycle_ + dispatch_ : id, slots, id}); }
  void planFrom(unsigned id, uint64_t cycle, uint64_t slots) {
    auto isLater = [&](const Tasklet &other) { return other.ready > cycle; };
    late_.insert(std::find_if(late_.begin(), late_.end(), isLater), {cycle, slots, id});
  }

  bool next(unsigned &id) {
    while (!ring_.empty() || !late_.empty()) {
      // Of those that are ready at the same time, one that was not late comes first.
      bool isLate = ring_.empty() || (!late_.empty() && late_.front().ready < ring_.front().ready);
      std::deque<Tasklet> &queue = isLate ? late_ : ring_;
      Tasklet tasklet = queue.front();
      queue.pop_front();
      uint64_t idle = std::max(cycle_ + 1, tasklet.ready) - cycle_ - 1;
      cycle_ += idle + 1;
      for (; dma_.nextPort() <= cycle_; dma_.advancePort())
        if (idle > 0)
          --idle;
        else
          ++cycle_, ++portCycles_;
      ++issued_;
      id = tasklet.id;
      if (--tasklet.slots == 0)
        return true;
      ring_.push_back({cycle_ + dispatch_, tasklet.slots, tasklet.id});
    }
    return false;
  }

private:
  struct Tasklet {
    uint64_t ready, slots;
    unsigned id;
  };
  DmaEngine dma_;
  uint64_t dispatch_, cycle_ = 0, issued_ = 0, portCycles_ = 0;
  std::deque<Tasklet> ring_, late_;
};

/// Cycles of the events of `numTasklets` that compute, transfer and end at random.
template <typename Schedule>
std::vector<uint64_t> run(Schedule &schedule, unsigned numTasklets, unsigned seed, unsigned longest) {
  std::mt19937 random(seed);
  auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  std::vector<uint64_t> seen;
  for (unsigned id = 0; id < numTasklets; ++id)
    schedule.plan(id, 1 + below(longest));
  unsigned id = 0, numEvents = 0;
  while (schedule.next(id)) {
    seen.insert(seen.end(), {id, schedule.cycle(), schedule.issued(), schedule.portCycles()});
    unsigned choice = below(8), slots = 1 + below(below(2) ? longest : 4);
    if (++numEvents > 3000) // All end, sooner or later.
      continue;
    if (choice < 3) {
      schedule.plan(id, slots);
    } else if (choice == 3) {
      schedule.planFrom(id, schedule.cycle() + 11 + below(40), slots);
    } else {
      uint64_t wake = schedule.dma().start(schedule.cycle(), 8 * (1 + below(choice < 6 ? 4 : 256)), below(2) == 0);
      schedule.planFrom(id, std::max(wake, schedule.cycle() + 11), slots);
    }
  }
  return seen;
}

class SlotScheduleTest : public testing::TestWithParam<unsigned> {};

TEST_P(SlotScheduleTest, TakesTheSlotsOfThePipeline) {
  DpuConfig config = readDpuConfig(builtin, 0);
  for (unsigned seed = 0; seed < 24; ++seed) {
    // Ports that are slower, faster than a table knows, and that nothing passes.
    if (seed >= 20)
      config.dmaBytesPerWramCycle = seed == 20 ? 12 : seed == 21 ? 3 : seed == 22 ? 1 : 0;
    unsigned longest = 8u << seed % 8;
    Pipeline pipeline(config);
    SlotSchedule schedule(config);
    std::vector<uint64_t> expected = run(pipeline, GetParam(), seed, longest);
    std::vector<uint64_t> actual = run(schedule, GetParam(), seed, longest);
    auto [a, b] = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
    ASSERT_TRUE(a == expected.end() && b == actual.end())
        << "seed " << seed << ", value " << a - expected.begin() << ": " << *a << ", not " << *b;
  }
}

INSTANTIATE_TEST_SUITE_P(Tasklets, SlotScheduleTest, testing::Values(1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 16, 24));

TEST(SlotScheduleWaitTest, AWaitingTaskletTriesInEverySlot) {
  DpuConfig config = readDpuConfig(builtin, 0);
  SlotSchedule schedule(config);
  schedule.plan(0, SlotSchedule::Never);
  schedule.plan(1, 100);
  unsigned id = 9;
  ASSERT_TRUE(schedule.next(id));
  EXPECT_EQ(id, 1u);
  EXPECT_EQ(schedule.hurry(0), 100u);
  ASSERT_TRUE(schedule.next(id));
  EXPECT_EQ(id, 0u);
  EXPECT_FALSE(schedule.next(id));
}

TEST(SlotScheduleWaitTest, NothingComesWhenAllWait) {
  DpuConfig config = readDpuConfig(builtin, 0);
  SlotSchedule schedule(config);
  schedule.plan(0, SlotSchedule::Never);
  schedule.plan(1, SlotSchedule::Never);
  unsigned id = 0;
  EXPECT_FALSE(schedule.next(id));
  EXPECT_EQ(schedule.numActive(), 2u);
}

} // namespace
} // namespace nearbank::dpu
