// SPDX-License-Identifier: Apache-2.0

#include "upmem/host/System.h"
#include "upmem/host/CheckLog.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

namespace nearbank::upmem {
namespace {

const char *environment(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? value : otherwise;
}

// <home> of <home>/lib/libdpu.so.
std::filesystem::path home() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void *>(&home), &info);
  std::filesystem::path library = std::filesystem::weakly_canonical(info.dli_fname ? info.dli_fname : "libdpu.so");
  return library.parent_path().parent_path();
}
std::string builtinMachine() { return (home() / "share/upmem/machines/upmem-v1a.yaml").string(); }

dpu::DpuConfig chosenMachine() {
  std::string name = environment("NEARBANK_MACHINE", "upmem");
  std::smatch match;
  if (name == "upmem" || name == "upmem-v1a")
    return dpu::readDpuConfig(builtinMachine(), 0);
  if (std::regex_match(name, match, std::regex("upmem-([1-9][0-9]{0,5})")))
    return dpu::readDpuConfig(builtinMachine(), static_cast<unsigned>(std::stoul(match[1])));
  return dpu::readDpuConfig(name, 0);
}

/// What a profile says of scatter-gather transfers, which a set allows only when asked.
struct Profile {
  bool isScatterGather = false;
  uint32_t maxBlocks = 0; ///< Of one DPU; 0: as many as the set has DPUs.
};

// Adds "key=value, key=value" to `profile`; false when it is something else.
bool readProfile(const char *text, Profile &profile) {
  static const std::regex entry("\\s*([A-Za-z0-9_]+)\\s*=([^,]*)(,|$)");
  std::string rest = text ? text : "";
  for (std::smatch match; !rest.empty(); rest = match.suffix()) {
    if (!std::regex_search(rest, match, entry, std::regex_constants::match_continuous))
      return false;
    std::string value = std::regex_replace(match[2].str(), std::regex("^\\s+|\\s+$"), "");
    if (match[1] == "sgXferEnable")
      profile.isScatterGather = value == "true";
    if (match[1] == "sgXferMaxBlocksPerDpu") {
      if (!std::regex_match(value, std::regex("[1-9][0-9]{0,8}")))
        return false;
      profile.maxBlocks = static_cast<uint32_t>(std::stoul(value));
    }
  }
  return true;
}

nlohmann::json toJson(const Event &event, double clockMHz) {
  nlohmann::json out = {
      {"what", event.what}, {"startUs", event.startUs}, {"us", event.us}, {"dpus", event.dpus}, {"ranks", event.ranks}};
  if (std::strcmp(event.what, "launch") == 0) {
    const dpu::LaunchStats &stats = event.stats;
    nlohmann::json kinds;
    for (unsigned kind = 0; kind < dpu::NumSlotKinds; ++kind)
      kinds[dpu::SlotKindNames[kind]] = stats.slotsOf[kind];
    out.update({{"program", event.program},
                {"clockMHz", clockMHz},
                {"maxCycles", event.maxCycles},
                {"minCycles", event.minCycles},
                {"cycles", stats.cycles},
                {"slots", stats.slots},
                {"instructions", stats.instructions},
                {"slotsByKind", kinds},
                {"tasklets", stats.tasklets},
                {"taskletCycles", stats.taskletCycles},
                {"sleepCycles", stats.sleepCycles},
                {"dmaReads", stats.dmaReads},
                {"dmaWrites", stats.dmaWrites},
                {"dmaReadBytes", stats.dmaReadBytes},
                {"dmaWriteBytes", stats.dmaWriteBytes},
                {"dmaStallCycles", stats.dmaStallCycles},
                {"dmaBusyCycles", stats.dmaBusyCycles},
                {"portCycles", stats.portCycles}});
  } else {
    out.update({{"memory", event.memory}, {"symbol", event.symbol}, {"bytesPerDpu", event.bytesPerDpu}});
  }
  return out;
}

} // namespace

System &System::get() {
  // Never destroyed: programs may free DPUs from their own destructors.
  static System *system = [] {
    auto *made = new System;
    std::atexit([] { System::get().writeStats(); });
    return made;
  }();
  return *system;
}

System::System() {
  Clock::get();
  statsPath_ = environment("NEARBANK_STATS", "");
  timeoutCycles_ = std::strtoull(environment("NEARBANK_TIMEOUT_CYCLES", "0"), nullptr, 10);
  numThreads_ = static_cast<unsigned>(std::strtoul(environment("NEARBANK_THREADS", "0"), nullptr, 10));
  if (numThreads_ == 0)
    numThreads_ = std::max(1u, std::thread::hardware_concurrency());
  engineName_ = environment("NEARBANK_UPMEM", "exact");
  try {
    config_ = chosenMachine();
    if (CheckLog::get().isOn())
      engineName_ = "exact"; // The checker sees every instruction.
    if (engineName_ == "exact")
      engine_ = dpu::makeExactEngine(config_);
    else if (engineName_ == "fast")
      engine_ = dpu::makeFastEngine(config_, (home() / "lib/libnearbank_translate.so").string());
    else
      failure_ = {"NB0802", "unknown engine", "NEARBANK_UPMEM", "exact or fast", engineName_, ""};
  } catch (const Error &error) {
    failure_ = error.report();
  }
  if (config_.dpusPerRank() > 0)
    isTaken_.resize((config_.numDpus + config_.dpusPerRank() - 1) / config_.dpusPerRank());
}

dpu_error_t System::allocate(uint32_t numDpus, bool byRank, const char *profile, dpu_set_t *set) {
  if (failure_) {
    explain(*failure_);
    return DPU_ERR_SYSTEM;
  }
  Profile settings;
  bool isBaseGood = readProfile(std::getenv("UPMEM_PROFILE_BASE"), settings);
  if (!isBaseGood || !readProfile(profile, settings)) {
    explain({"NB0803", "profile cannot be parsed", isBaseGood ? "dpu_alloc" : "UPMEM_PROFILE_BASE",
             "key=value,key=value", isBaseGood ? profile : environment("UPMEM_PROFILE_BASE", ""), ""});
    return DPU_ERR_INVALID_PROFILE;
  }
  unsigned perRank = config_.dpusPerRank();
  std::vector<unsigned> freeRanks;
  unsigned available = 0;
  auto sizeOf = [&](unsigned rank) { return std::min(perRank, config_.numDpus - rank * perRank); };
  for (unsigned rank = 0; rank < isTaken_.size(); ++rank)
    if (!isTaken_[rank])
      freeRanks.push_back(rank), available += sizeOf(rank);
  uint32_t wanted = numDpus;
  if (byRank) {
    if (numDpus != ~0u && numDpus > freeRanks.size())
      wanted = ~0u - 1;
    else {
      freeRanks.resize(std::min<size_t>(freeRanks.size(), numDpus));
      wanted = 0;
      for (unsigned rank : freeRanks)
        wanted += sizeOf(rank);
    }
  } else if (numDpus == ~0u) {
    wanted = available;
  }
  if (wanted == 0 || wanted > available) {
    explain({"NB0804", "not so many DPUs are free", config_.name,
             fmt::format("at most {} DPUs in {} ranks", available, freeRanks.size()),
             fmt::format("{}{}", numDpus, byRank ? " ranks" : ""), "NEARBANK_MACHINE=upmem-N with a larger N"});
    return DPU_ERR_ALLOCATION;
  }
  set->kind = DPU_SET_RANKS;
  std::vector<dpu_rank_t *> ranks;
  unsigned index = 0;
  for (unsigned number : freeRanks) {
    if (index == wanted)
      break;
    auto *rank = new dpu_rank_t;
    rank->id = number;
    if (settings.isScatterGather)
      rank->maxBlocks = settings.maxBlocks ? settings.maxBlocks : wanted;
    for (unsigned i = 0; i < sizeOf(number) && index < wanted; ++i, ++index) {
      auto one = std::make_unique<dpu_t>();
      one->rank = rank;
      one->id = number * perRank + i;
      one->indexInSet = index;
      rank->dpus.push_back(std::move(one));
    }
    isTaken_[number] = true;
    ranks.push_back(rank);
  }
  set->list.nr_ranks = static_cast<uint32_t>(ranks.size());
  set->list.ranks = new dpu_rank_t *[ranks.size()];
  std::copy(ranks.begin(), ranks.end(), set->list.ranks);
  return DPU_OK;
}

dpu_error_t System::release(dpu_set_t set) {
  if (set.kind != DPU_SET_RANKS || !set.list.ranks)
    return DPU_ERR_INVALID_DPU_SET;
  for (uint32_t i = 0; i < set.list.nr_ranks; ++i) {
    isTaken_[set.list.ranks[i]->id] = false;
    delete set.list.ranks[i];
  }
  delete[] set.list.ranks;
  return DPU_OK;
}

void System::parallel(size_t count, const std::function<void(size_t)> &work) const {
  std::atomic<size_t> next{0};
  auto loop = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;)
      work(i);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(numThreads_, count); ++i)
    threads.emplace_back(loop);
  loop();
  for (std::thread &thread : threads)
    thread.join();
}

void System::record(Event event) {
  if (!statsPath_.empty())
    events_.push_back(std::move(event));
}

void System::writeStats() {
  if (statsPath_.empty())
    return;
  nlohmann::json events = nlohmann::json::array();
  for (const Event &event : events_)
    events.push_back(toJson(event, config_.clockMHz));
  nlohmann::json document = {{"schema", "nearbank-upmem-run/1"},
                             {"machine", config_.name},
                             {"engine", engineName_},
                             {"timeKind", "simulated"},
                             {"transferKind", "modelled"},
                             {"dpus", config_.numDpus},
                             {"dpusPerRank", config_.dpusPerRank()},
                             {"joules", joules_},
                             {"launchCpuSeconds", launchCpuSeconds_},
                             {"events", events}};
  std::ofstream file(statsPath_);
  file << document.dump(1) << "\n";
  if (!file)
    explain({"NB0805", "statistics cannot be written", "NEARBANK_STATS=" + statsPath_, "", "", ""});
}

std::vector<dpu_rank_t *> ranksOf(const dpu_set_t &set) {
  if (set.kind == DPU_SET_DPU)
    return {set.dpu->rank};
  return {set.list.ranks, set.list.ranks + set.list.nr_ranks};
}

std::vector<dpu_t *> dpusOf(const dpu_set_t &set) {
  if (set.kind == DPU_SET_DPU)
    return {set.dpu};
  std::vector<dpu_t *> all;
  for (dpu_rank_t *rank : ranksOf(set))
    for (auto &one : rank->dpus)
      all.push_back(one.get());
  return all;
}

} // namespace nearbank::upmem
