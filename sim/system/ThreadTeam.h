// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads that run one function together; the caller is its first member.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace nearbank::sim {

class ThreadTeam {
public:
  explicit ThreadTeam(size_t size);
  ~ThreadTeam();
  size_t size() const { return workers_.size() + 1; }
  /// Calls work(member) on every member and waits for all; rethrows the exception of the lowest member that threw.
  void run(const std::function<void(size_t)> &work);

private:
  void serve(size_t member);

  std::mutex mutex_;
  std::condition_variable started_, finished_;
  const std::function<void(size_t)> *work_ = nullptr;
  size_t round_ = 0, running_ = 0;
  bool isClosing_ = false;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> workers_;
};

} // namespace nearbank::sim
