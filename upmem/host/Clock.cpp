// SPDX-License-Identifier: Apache-2.0
// Simulated time, also for gettimeofday and clock_gettime of the program itself.

#include "upmem/host/System.h"

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace nearbank::upmem {

int64_t Clock::hostNs(int clock) {
  timespec time{};
  syscall(SYS_clock_gettime, clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Clock &Clock::get() {
  static Clock clock;
  return clock;
}

Clock::Clock() : startNs_(hostNs(CLOCK_MONOTONIC)) {
  const char *choice = std::getenv("NEARBANK_CLOCK");
  isSimulated_ = !choice || std::strcmp(choice, "wall") != 0;
}

int64_t Clock::nowNs(int clock) const {
  int64_t host = hostNs(clock);
  if (!isSimulated_ || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
    return host;
  if (depth_ > 0) // Inside a call: what the host does meanwhile does not count.
    host -= hostNs(CLOCK_MONOTONIC) - enteredNs_;
  return host + offsetNs_ + static_cast<int64_t>(pendingUs_ * 1000);
}

double Clock::nowUs() const {
  int64_t host = depth_ > 0 ? enteredNs_ : hostNs(CLOCK_MONOTONIC);
  return static_cast<double>(host - startNs_ + offsetNs_) / 1000 + pendingUs_;
}

void Clock::enter() {
  if (depth_++ == 0)
    enteredNs_ = hostNs(CLOCK_MONOTONIC);
}

void Clock::leave(double us) {
  pendingUs_ += us;
  if (--depth_ == 0) {
    offsetNs_ += static_cast<int64_t>(pendingUs_ * 1000) - (hostNs(CLOCK_MONOTONIC) - enteredNs_);
    pendingUs_ = 0;
  }
}

namespace {
std::recursive_mutex &apiMutex() {
  static std::recursive_mutex mutex;
  return mutex;
}
} // namespace

Call::Call() : lock_(apiMutex()) { Clock::get().enter(); }
Call::~Call() { Clock::get().leave(us_); }
double Call::nowUs() const { return Clock::get().nowUs() + us_; }
void Call::waitUntil(double us) {
  if (double now = nowUs(); us > now)
    us_ += us - now;
}

} // namespace nearbank::upmem

NB_API int clock_gettime(clockid_t clock, struct timespec *time) {
  int64_t now = nearbank::upmem::Clock::get().nowNs(clock);
  time->tv_sec = now / 1'000'000'000;
  time->tv_nsec = now % 1'000'000'000;
  return 0;
}

NB_API int gettimeofday(struct timeval *__restrict time, void *__restrict zone) {
  int64_t now = nearbank::upmem::Clock::get().nowNs(CLOCK_REALTIME);
  time->tv_sec = now / 1'000'000'000;
  time->tv_usec = now / 1000 % 1'000'000;
  if (zone)
    std::memset(zone, 0, sizeof(struct timezone));
  return 0;
}
