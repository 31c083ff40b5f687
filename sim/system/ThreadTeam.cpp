// SPDX-License-Identifier: Apache-2.0
// Fork-join over a fixed team of threads.
#include "sim/system/ThreadTeam.h"

namespace nearbank::sim {

ThreadTeam::ThreadTeam(size_t size) : errors_(size) {
  for (size_t member = 1; member < size; ++member)
    workers_.emplace_back([this, member] { serve(member); });
}

ThreadTeam::~ThreadTeam() {
  {
    std::lock_guard lock(mutex_);
    isClosing_ = true;
  }
  started_.notify_all();
  for (std::thread &worker : workers_)
    worker.join();
}

void ThreadTeam::run(const std::function<void(size_t)> &work) {
  if (!workers_.empty()) {
    std::lock_guard lock(mutex_);
    work_ = &work;
    running_ = workers_.size();
    ++round_;
    started_.notify_all();
  }
  errors_.assign(errors_.size(), nullptr);
  try {
    work(0);
  } catch (...) {
    errors_[0] = std::current_exception();
  }
  if (!workers_.empty()) {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return running_ == 0; });
  }
  for (const std::exception_ptr &error : errors_)
    if (error)
      std::rethrow_exception(error);
}

void ThreadTeam::serve(size_t member) {
  size_t seen = 0;
  for (;;) {
    const std::function<void(size_t)> *work;
    {
      std::unique_lock lock(mutex_);
      started_.wait(lock, [&] { return isClosing_ || round_ != seen; });
      if (isClosing_)
        return;
      seen = round_;
      work = work_;
    }
    std::exception_ptr error;
    try {
      (*work)(member);
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    errors_[member] = error;
    if (--running_ == 0)
      finished_.notify_one();
  }
}

} // namespace nearbank::sim
