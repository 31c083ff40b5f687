// SPDX-License-Identifier: Apache-2.0

#include "upmem/host/CheckLog.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace nearbank::upmem {

CheckLog &CheckLog::get() {
  static auto *log = new CheckLog; // Never destroyed, as System.
  return *log;
}

CheckLog::CheckLog() {
  if (const char *path = std::getenv("NEARBANK_UPMEM_CHECK"))
    path_ = path;
}

void CheckLog::loaded(const dpu::Program &program, const dpu::DpuConfig &config) {
  auto count = std::count_if(program.code.begin(), program.code.end(), [](const auto &in) { return in.slots > 0; });
  if (!isOn() || static_cast<double>(count) <= config.iramInstructions)
    return;
  ++numFindings_;
  explain({"NB0826", "the program may not fit the DPU's instruction memory", program.path,
           fmt::format("at most {:.0f} instructions", config.iramInstructions),
           fmt::format("about {}, counted in RV32IM code", count),
           "compile with -Os, or call fewer library functions"});
}

void CheckLog::launched(const std::vector<dpu_t *> &all, const std::vector<std::unique_ptr<dpu::Checker>> &checkers) {
  struct Seen {
    const dpu::Finding *finding;
    unsigned first, count;
  };
  std::vector<Seen> seen;
  auto isLike = [](const dpu::Finding &finding) {
    return [&finding](const dpu::Finding &old) { return finding.isLike(old); };
  };
  for (size_t i = 0; i < all.size(); ++i) {
    numFaults_ += all[i]->dpu.fault.has_value();
    for (const dpu::Finding &finding : checkers[i]->findings()) {
      if (std::any_of(known_.begin(), known_.end(), isLike(finding)))
        continue;
      auto old = std::find_if(seen.begin(), seen.end(), [&](const Seen &one) { return finding.isLike(*one.finding); });
      if (old != seen.end())
        ++old->count;
      else
        seen.push_back({&finding, all[i]->indexInSet, 1});
    }
  }
  for (const Seen &one : seen) {
    std::string where = fmt::format("DPU {}", one.first);
    if (one.count > 1)
      where += fmt::format(" and {} more", one.count - 1);
    explain(dpu::describeFinding(*all.front()->dpu.program(), *one.finding, where));
    known_.push_back(*one.finding);
  }
  ++numLaunches_;
  numFindings_ += static_cast<unsigned>(seen.size());
  std::ofstream(path_) << nlohmann::json{
      {"launches", numLaunches_}, {"findings", numFindings_}, {"faults", numFaults_}};
}

} // namespace nearbank::upmem
