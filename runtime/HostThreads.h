// SPDX-License-Identifier: Apache-2.0
// The fixed pool of host threads that runs blocks of a task range.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace nearbank {

/// Number of cores that this process may run on.
int availableCores();

/// Threads that live as long as the process and run one job at a time. A caller that finds the pool busy runs its job
/// alone. A forked child gets a pool of its own on first use.
class HostThreads {
public:
  /// The pool of this process.
  static HostThreads &shared();

  /// Calls `body(block)` for every block in [0, blocks), on the caller and up to `threads - 1` workers.
  /// Returns when all blocks are done. `body` must not throw.
  void run(int64_t blocks, int threads, const std::function<void(int64_t)> &body);

private:
  struct Job;

  HostThreads();
  void ensureWorkers(int count);
  void work(int worker);
  static void drain(Job &job);

  const int processId_;
  std::atomic_flag isBusy_;          ///< Set for as long as a job runs; its setter owns `workers_`.
  std::vector<std::thread> workers_; ///< Never joined: they sleep until the process exits.
  std::mutex jobMutex_;              ///< Guards `job_`.
  std::shared_ptr<Job> job_;
  std::atomic<int> generation_{0}; ///< Changes with every job; workers wait on it.
};

} // namespace nearbank
