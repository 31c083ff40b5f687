// SPDX-License-Identifier: Apache-2.0
// Workers claim blocks from a shared counter: a caller never waits for a worker that has not woken up yet.
#include "runtime/HostThreads.h"

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <system_error>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace nearbank {

namespace {

/// How long a worker polls for the next job before it sleeps: nests of a model follow each other within microseconds,
/// and a futex wake-up takes tens of them.
constexpr std::chrono::microseconds pollTime{50};
constexpr int maxWorkers = 255;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

} // namespace

int availableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

struct HostThreads::Job {
  const std::function<void(int64_t)> *body = nullptr;
  int64_t blocks = 0;
  int workers = 0; ///< Workers with a lower index take part.
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};
};

HostThreads::HostThreads() : processId_(getpid()) {}

HostThreads &HostThreads::shared() {
  // Never destroyed: workers may still sleep on it when the process exits, and after a fork the parent's is unusable.
  static std::atomic<HostThreads *> current{nullptr};
  HostThreads *pool = current.load(std::memory_order_acquire);
  while (!pool || pool->processId_ != getpid()) {
    auto fresh = std::unique_ptr<HostThreads>(new HostThreads);
    if (current.compare_exchange_strong(pool, fresh.get(), std::memory_order_acq_rel))
      pool = fresh.release();
  }
  return *pool;
}

void HostThreads::ensureWorkers(int count) {
  try {
    while (static_cast<int>(workers_.size()) < count)
      workers_.emplace_back([this, worker = static_cast<int>(workers_.size())] { work(worker); });
  } catch (const std::system_error &) {
    // Fewer workers than asked for: the caller and those that exist do the job.
  }
}

void HostThreads::drain(Job &job) {
  for (int64_t block; (block = job.next.fetch_add(1, std::memory_order_relaxed)) < job.blocks;) {
    (*job.body)(block);
    job.done.fetch_add(1, std::memory_order_acq_rel);
    job.done.notify_all();
  }
}

void HostThreads::work(int worker) {
  int seen = 0;
  while (true) {
    auto deadline = std::chrono::steady_clock::now() + pollTime;
    while (generation_.load(std::memory_order_acquire) == seen) {
      if (std::chrono::steady_clock::now() < deadline)
        relax();
      else
        generation_.wait(seen, std::memory_order_acquire);
    }
    std::shared_ptr<Job> job;
    {
      std::lock_guard lock(jobMutex_);
      job = job_;
      seen = generation_.load(std::memory_order_acquire);
    }
    if (job && worker < job->workers)
      drain(*job);
  }
}

void HostThreads::run(int64_t blocks, int threads, const std::function<void(int64_t)> &body) {
  if (threads <= 1 || blocks <= 1 || isBusy_.test_and_set(std::memory_order_acquire)) {
    for (int64_t block = 0; block < blocks; ++block)
      body(block);
    return;
  }
  auto job = std::make_shared<Job>();
  job->body = &body;
  job->blocks = blocks;
  job->workers = std::min(threads - 1, maxWorkers);
  ensureWorkers(job->workers);
  {
    std::lock_guard lock(jobMutex_);
    job_ = job;
    generation_.fetch_add(1, std::memory_order_acq_rel);
  }
  generation_.notify_all();
  drain(*job);
  auto deadline = std::chrono::steady_clock::now() + pollTime;
  for (int64_t done; (done = job->done.load(std::memory_order_acquire)) < blocks;) {
    if (std::chrono::steady_clock::now() < deadline)
      relax();
    else
      job->done.wait(done, std::memory_order_acquire);
  }
  {
    std::lock_guard lock(jobMutex_);
    job_.reset();
  }
  isBusy_.clear(std::memory_order_release);
}

} // namespace nearbank
