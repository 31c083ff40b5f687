// SPDX-License-Identifier: Apache-2.0
// Launches, waiting, callbacks and probes.

#include "upmem/host/CheckLog.h"
#include "upmem/host/System.h"

#include "upmem/host/include/dpu.h"
#include "upmem/host/include/dpu_probe.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>

using namespace nearbank;
using namespace nearbank::upmem;

namespace {

void explainFaults(const std::vector<dpu_t *> &all) {
  unsigned numFaults = 0;
  const dpu_t *first = nullptr;
  for (dpu_t *one : all)
    if (one->dpu.fault && ++numFaults == 1)
      first = one;
  if (first)
    explain({"NB0806", "a DPU is in fault",
             fmt::format("DPU {}{}", first->indexInSet,
                         numFaults > 1 ? fmt::format(", and {} more of this launch", numFaults - 1) : ""),
             "", dpu::describeFault(first->dpu, *first->dpu.fault), ""});
}

} // namespace

NB_API dpu_error_t dpu_launch(dpu_set_t set, dpu_launch_policy_t policy) {
  Call call;
  if (policy != DPU_SYNCHRONOUS && policy != DPU_ASYNCHRONOUS)
    return DPU_ERR_INVALID_LAUNCH_POLICY;
  System &system = System::get();
  std::vector<dpu_t *> all = dpusOf(set);
  for (dpu_t *one : all)
    if (!one->dpu.program())
      return DPU_ERR_NO_PROGRAM_LOADED;
  const dpu::DpuConfig &config = system.config();
  std::vector<std::unique_ptr<dpu::Checker>> checkers(all.size());
  int64_t beginNs = Clock::hostNs(CLOCK_PROCESS_CPUTIME_ID);
  system.parallel(all.size(), [&](size_t i) {
    if (CheckLog::get().isOn())
      checkers[i] = std::make_unique<dpu::Checker>(all[i]->dpu);
    system.engine().run(all[i]->dpu, {system.timeoutCycles(), checkers[i].get()});
  });
  system.addLaunchSeconds(static_cast<double>(Clock::hostNs(CLOCK_PROCESS_CPUTIME_ID) - beginNs) * 1e-9);
  if (CheckLog::get().isOn())
    CheckLog::get().launched(all, checkers);

  Event event{.what = "launch",
              .dpus = static_cast<unsigned>(all.size()),
              .ranks = static_cast<unsigned>(ranksOf(set).size()),
              .program = all.front()->dpu.program()->path};
  event.minCycles = ~uint64_t{0};
  bool hasFault = false;
  for (dpu_t *one : all) {
    const dpu::LaunchStats &stats = one->dpu.last;
    event.stats.add(stats);
    event.maxCycles = std::max(event.maxCycles, stats.cycles);
    event.minCycles = std::min(event.minCycles, stats.cycles);
    if (one->dpu.fault)
      hasFault = one->rank->hasFault = true;
    system.addJoules(static_cast<double>(stats.cycles) / (config.clockMHz * 1e6) * config.dpuWatts);
  }
  double now = call.nowUs(), end = now;
  event.startUs = now;
  for (dpu_rank_t *rank : ranksOf(set)) {
    uint64_t cycles = 0;
    for (dpu_t *one : all)
      if (one->rank == rank)
        cycles = std::max(cycles, one->dpu.last.cycles);
    double start = std::max(now, rank->busyUntilUs);
    double us = config.launchUs + static_cast<double>(cycles) / config.clockMHz;
    rank->busyUntilUs = start + us;
    end = std::max(end, rank->busyUntilUs);
    event.us = std::max(event.us, start - now + us); // Not from `end`, whose rounding depends on when it is.
  }
  system.record(std::move(event));
  if (hasFault)
    explainFaults(all);
  if (policy == DPU_ASYNCHRONOUS)
    return DPU_OK;
  call.waitUntil(end);
  for (dpu_rank_t *rank : ranksOf(set))
    rank->hasFault = false;
  return hasFault ? DPU_ERR_DPU_FAULT : DPU_OK;
}

NB_API dpu_error_t dpu_status(dpu_set_t set, bool *done, bool *fault) {
  Call call;
  call.spend(1); // So that a loop that polls comes to an end in simulated time.
  bool isDone = true, hasFault = false;
  for (dpu_rank_t *rank : ranksOf(set)) {
    isDone = isDone && rank->busyUntilUs <= call.nowUs();
    hasFault = hasFault || rank->hasFault;
  }
  if (done)
    *done = isDone;
  if (fault)
    *fault = hasFault;
  return DPU_OK;
}

NB_API dpu_error_t dpu_sync(dpu_set_t set) {
  Call call;
  bool hasFault = false;
  for (dpu_rank_t *rank : ranksOf(set)) {
    call.waitUntil(rank->busyUntilUs);
    hasFault = hasFault || rank->hasFault;
    rank->hasFault = false;
  }
  return hasFault ? DPU_ERR_DPU_FAULT : DPU_OK;
}

NB_API dpu_error_t dpu_callback(dpu_set_t set, dpu_error_t (*callback)(dpu_set_t, uint32_t, void *), void *argument,
                                dpu_callback_flags_t flags) {
  if (set.kind == DPU_SET_DPU)
    return DPU_ERR_INVALID_DPU_SET;
  if ((flags & DPU_CALLBACK_NONBLOCKING) && !(flags & DPU_CALLBACK_ASYNC))
    return DPU_ERR_NONBLOCKING_SYNC_CALLBACK;
  if (flags & DPU_CALLBACK_SINGLE_CALL) {
    dpu_sync(set);
    return callback(set, 0, argument);
  }
  for (uint32_t i = 0; i < set.list.nr_ranks; ++i) {
    dpu_set_t rank{};
    rank.kind = DPU_SET_RANKS;
    rank.list.nr_ranks = 1;
    rank.list.ranks = set.list.ranks + i;
    if (dpu_error_t status = callback(rank, i, argument); status != DPU_OK)
      return status;
  }
  return DPU_OK;
}

NB_API dpu_error_t dpu_probe_init(const char *name, dpu_probe_t *probe) {
  *probe = dpu_probe_t{name, 0, 0, 0, 0, 0};
  return DPU_OK;
}
NB_API dpu_error_t dpu_probe_deinit(dpu_probe_t *) { return DPU_OK; }
NB_API dpu_error_t dpu_probe_start(dpu_probe_t *probe) {
  Call call;
  probe->start_seconds = call.nowUs() * 1e-6;
  probe->start_joules = System::get().joules();
  return DPU_OK;
}
NB_API dpu_error_t dpu_probe_stop(dpu_probe_t *probe) {
  Call call;
  probe->seconds += call.nowUs() * 1e-6 - probe->start_seconds;
  probe->joules += System::get().joules() - probe->start_joules;
  ++probe->count;
  return DPU_OK;
}
NB_API dpu_error_t dpu_probe_get(dpu_probe_t *probe, dpu_probe_value_t value, dpu_probe_mode_t mode, double *result) {
  double sum = value == DPU_ENERGY ? probe->joules : probe->seconds;
  *result = mode == DPU_AVERAGE && probe->count ? sum / probe->count : sum;
  return DPU_OK;
}
