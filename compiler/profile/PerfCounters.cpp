// SPDX-License-Identifier: Apache-2.0

#include "compiler/profile/PerfCounters.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nearbank::profile {
namespace {

int openCounter(uint32_t type, uint64_t config, int group) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = type;
  attributes.config = config;
  attributes.disabled = group < 0;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return int(syscall(SYS_perf_event_open, &attributes, 0, -1, group, 0));
}

} // namespace

std::unique_ptr<PerfCounters> PerfCounters::open(std::string &reason) {
  constexpr uint64_t l1ReadMiss =
      PERF_COUNT_HW_CACHE_L1D | (PERF_COUNT_HW_CACHE_OP_READ << 8) | (PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
  std::unique_ptr<PerfCounters> counters(new PerfCounters);
  const std::pair<uint32_t, uint64_t> events[] = {{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
                                                  {PERF_TYPE_HW_CACHE, l1ReadMiss},
                                                  {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}};
  for (int i = 0; i < 3; ++i) {
    counters->files_[i] = openCounter(events[i].first, events[i].second, i == 0 ? -1 : counters->files_[0]);
    if (counters->files_[i] < 0) {
      reason = std::string("perf_event_open: ") + std::strerror(errno);
      return nullptr;
    }
  }
  return counters;
}

PerfCounters::~PerfCounters() {
  for (int file : files_)
    if (file >= 0)
      close(file);
}

void PerfCounters::start() {
  ioctl(files_[0], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
  ioctl(files_[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

PerfCounts PerfCounters::stop() {
  ioctl(files_[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
  uint64_t values[3] = {};
  for (int i = 0; i < 3; ++i)
    if (read(files_[i], &values[i], sizeof(values[i])) != ssize_t(sizeof(values[i])))
      values[i] = 0;
  return {values[0], values[1], values[2]};
}

} // namespace nearbank::profile
