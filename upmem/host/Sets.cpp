// SPDX-License-Identifier: Apache-2.0
// Allocation, iteration and programs.

#include "upmem/host/CheckLog.h"
#include "upmem/host/System.h"

#include "upmem/host/include/dpu.h"

#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <map>

using namespace nearbank;
using namespace nearbank::upmem;

NB_API dpu_error_t dpu_alloc(uint32_t numDpus, const char *profile, dpu_set_t *set) {
  Call call;
  return System::get().allocate(numDpus, false, profile, set);
}
NB_API dpu_error_t dpu_alloc_ranks(uint32_t numRanks, const char *profile, dpu_set_t *set) {
  Call call;
  return System::get().allocate(numRanks, true, profile, set);
}
NB_API dpu_error_t dpu_free(dpu_set_t set) {
  Call call;
  return System::get().release(set);
}
NB_API dpu_error_t dpu_get_nr_ranks(dpu_set_t set, uint32_t *count) {
  *count = static_cast<uint32_t>(ranksOf(set).size());
  return DPU_OK;
}
NB_API dpu_error_t dpu_get_nr_dpus(dpu_set_t set, uint32_t *count) {
  *count = static_cast<uint32_t>(dpusOf(set).size());
  return DPU_OK;
}

namespace {

void show(dpu_set_iterator_t &it, bool byRank) {
  it.has_next = false;
  if (it.set.kind == DPU_SET_DPU) {
    if (it.count == 0)
      it.next = it.set, it.has_next = true;
    return;
  }
  while (it.rank < it.set.list.nr_ranks && !byRank && it.member >= it.set.list.ranks[it.rank]->dpus.size())
    ++it.rank, it.member = 0;
  if (it.rank >= it.set.list.nr_ranks)
    return;
  it.has_next = true;
  if (byRank) {
    it.next.kind = DPU_SET_RANKS;
    it.next.list.nr_ranks = 1;
    it.next.list.ranks = it.set.list.ranks + it.rank;
  } else {
    it.next.kind = DPU_SET_DPU;
    it.next.dpu = it.set.list.ranks[it.rank]->dpus[it.member].get();
  }
}

} // namespace

NB_API dpu_set_iterator_t __dpu_iterate(const dpu_set_t *set, bool byRank) {
  dpu_set_iterator_t it{};
  it.set = *set;
  show(it, byRank);
  return it;
}

NB_API void __dpu_advance(dpu_set_iterator_t *it, bool byRank) {
  ++it->count;
  if (byRank)
    ++it->rank;
  else
    ++it->member;
  show(*it, byRank);
}

namespace {

dpu_error_t loadBytes(dpu_set_t set, std::span<const std::byte> bytes, const std::string &path, dpu_program_t **program,
                      Call &call) {
  std::shared_ptr<const dpu::Program> loaded;
  try {
    loaded = dpu::Program::load(bytes, path, System::get().config());
  } catch (const Error &error) {
    explain(error.report());
    return DPU_ERR_ELF_INVALID_FILE;
  }
  CheckLog::get().loaded(*loaded, System::get().config());
  std::vector<dpu_t *> all = dpusOf(set);
  for (dpu_t *one : all)
    one->dpu.load(loaded);
  for (dpu_rank_t *rank : ranksOf(set))
    call.waitUntil(rank->busyUntilUs), rank->hasFault = false;
  Event event{.what = "load",
              .startUs = call.nowUs(),
              .us = System::get().config().loadUs,
              .bytesPerDpu = bytes.size(),
              .dpus = static_cast<unsigned>(all.size()),
              .ranks = static_cast<unsigned>(ranksOf(set).size()),
              .program = path};
  call.spend(event.us);
  System::get().record(std::move(event));
  if (program) {
    // Kept for the life of the process: the API has no call to give a program back.
    static std::map<const dpu::Program *, std::unique_ptr<dpu_program_t>> handles;
    auto &handle = handles[loaded.get()];
    if (!handle)
      handle = std::make_unique<dpu_program_t>(dpu_program_t{loaded});
    *program = handle.get();
  }
  return DPU_OK;
}

} // namespace

NB_API dpu_error_t dpu_load(dpu_set_t set, const char *path, dpu_program_t **program) {
  Call call;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    explain({"NB0801", "not a program for this DPU", path, "a file", std::strerror(errno), ""});
    return DPU_ERR_ELF_NO_SUCH_FILE;
  }
  std::string content((std::istreambuf_iterator<char>(file)), {});
  return loadBytes(set, std::as_bytes(std::span(content)), path, program, call);
}
NB_API dpu_error_t dpu_load_from_memory(dpu_set_t set, uint8_t *begin, size_t size, dpu_program_t **program) {
  Call call;
  return loadBytes(set, std::as_bytes(std::span(begin, size)), "", program, call);
}
NB_API dpu_error_t dpu_load_from_incbin(dpu_set_t set, dpu_incbin_t *incbin, dpu_program_t **program) {
  Call call;
  return loadBytes(set, std::as_bytes(std::span(incbin->buffer, incbin->size)), "", program, call);
}

NB_API dpu_error_t dpu_get_symbol(dpu_program_t *program, const char *name, dpu_symbol_t *symbol) {
  const dpu::Symbol *found = program->program->find(name);
  if (!found || !found->isForHost)
    return DPU_ERR_UNKNOWN_SYMBOL;
  *symbol = {found->address, found->size};
  return DPU_OK;
}
