// SPDX-License-Identifier: Apache-2.0
#include "runtime/HostThreads.h"

#include "runtime/Executor.h"

#include <gmock/gmock.h>

#include <array>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace nearbank {
namespace {

using ::testing::Each;

TEST(HostThreadsTest, EveryBlockRunsOnce) {
  for (int threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> seen(1000);
    HostThreads::shared().run(1000, threads, [&](int64_t block) { ++seen[block]; });
    EXPECT_THAT(std::vector<int>(seen.begin(), seen.end()), Each(1)) << threads << " threads";
  }
}

TEST(HostThreadsTest, ManyShortJobsInARow) {
  std::atomic<int64_t> sum{0};
  for (int job = 0; job < 2000; ++job)
    HostThreads::shared().run(8, 3, [&](int64_t block) { sum += block; });
  EXPECT_EQ(sum, 2000 * 28);
}

TEST(HostThreadsTest, NestedRunStaysOnTheCaller) {
  std::atomic<int> inner{0};
  HostThreads::shared().run(4, 2, [&](int64_t) {
    std::thread::id self = std::this_thread::get_id();
    HostThreads::shared().run(3, 2, [&](int64_t) { inner += std::this_thread::get_id() == self; });
  });
  EXPECT_EQ(inner, 12);
}

TEST(HostThreadsTest, CallersFromSeveralThreadsAllFinish) {
  std::atomic<int> count{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int job = 0; job < 200; ++job)
        HostThreads::shared().run(6, 2, [&](int64_t) { ++count; });
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(count, 4 * 200 * 6);
}

TEST(HostThreadsTest, ForkedChildHasAPoolOfItsOwn) {
  std::atomic<int> before{0};
  HostThreads::shared().run(8, 2, [&](int64_t) { ++before; });
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    std::atomic<int> count{0};
    for (int job = 0; job < 50; ++job)
      HostThreads::shared().run(8, 2, [&](int64_t) { ++count; });
    _exit(count == 400 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

void markTasks(void **operands, int64_t begin, int64_t end, KernelStatus *) {
  for (int64_t task = begin; task < end; ++task)
    static_cast<std::atomic<int> *>(operands[0])[task] += 1;
}

TEST(HostThreadsTest, KernelSeesEveryTaskOnce) {
  for (int64_t tasks : {0, 1, 2, 7, 64, 1001})
    for (int threads : {0, 1, 2, 3}) {
      std::vector<std::atomic<int>> marks(tasks + 1);
      void *operands[] = {marks.data()};
      EXPECT_EQ(runHostKernel(markTasks, operands, tasks, threads).code, 0);
      EXPECT_THAT(std::vector<int>(marks.begin(), marks.begin() + tasks), Each(1))
          << tasks << " tasks, " << threads << " threads";
      EXPECT_EQ(marks[tasks], 0);
    }
}

void failFromTask(void **operands, int64_t begin, int64_t end, KernelStatus *status) {
  int64_t first = *static_cast<int64_t *>(operands[0]);
  for (int64_t task = begin; task < end && status->code == 0; ++task)
    if (task >= first)
      *status = {1, task};
}

TEST(HostThreadsTest, StatusOfTheLowestBlockWins) {
  for (int threads : {1, 2, 4})
    for (int64_t first : {0, 17, 99}) {
      void *operands[] = {&first};
      KernelStatus status = runHostKernel(failFromTask, operands, 100, threads);
      EXPECT_EQ(status.code, 1);
      EXPECT_EQ(status.value, first) << threads << " threads";
    }
}

} // namespace
} // namespace nearbank
