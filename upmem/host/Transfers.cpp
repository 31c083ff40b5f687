// SPDX-License-Identifier: Apache-2.0
// Copies between the host and the memories of DPUs, with the checks of the SDK and the time of the machine.

#include "upmem/host/System.h"

#include "sim/dpu/Decode.h"
#include "upmem/host/include/dpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

using namespace nearbank;
using namespace nearbank::upmem;

namespace {

enum class Direction { To, From };

struct Place {
  uint32_t address = 0; ///< Within the memory.
  bool isMram = false;
};

/// Finds `symbol` + `offset` and checks that `length` bytes may go there.
dpu_error_t locate(dpu_symbol_t symbol, uint32_t offset, size_t length, const std::string &name, Place &place) {
  auto refuse = [&](dpu_error_t code, const std::string &expected) {
    explain({"NB0807", "transfer is not possible", "symbol " + name, expected,
             fmt::format("{} bytes at offset {}", length, offset), ""});
    return code;
  };
  if (offset > symbol.size || length > symbol.size - offset)
    return refuse(DPU_ERR_INVALID_SYMBOL_ACCESS, fmt::format("at most {} bytes from its start", symbol.size));
  uint32_t address = symbol.address + offset;
  place.isMram = address >= dpu::MramBase && symbol.address < dpu::TextBase;
  if (place.isMram) {
    if (address % 8 || length % 8)
      return refuse(DPU_ERR_INVALID_MRAM_ACCESS, "address and length that are multiples of 8, for MRAM");
    place.address = address - dpu::MramBase;
    return DPU_OK;
  }
  if (symbol.address >= dpu::WramBytes)
    return refuse(DPU_ERR_INVALID_SYMBOL_ACCESS, "a symbol in WRAM or MRAM");
  if (address % 4 || length % 4)
    return refuse(DPU_ERR_INVALID_WRAM_ACCESS, "address and length that are multiples of 4, for WRAM");
  place.address = address;
  return DPU_OK;
}

/// Finds the symbol in the one program that all DPUs have.
dpu_error_t lookUp(const std::vector<dpu_t *> &all, const char *name, dpu_symbol_t &symbol) {
  const auto &program = all.front()->dpu.program();
  if (!program)
    return DPU_ERR_NO_PROGRAM_LOADED;
  for (dpu_t *one : all)
    if (one->dpu.program() != program)
      return DPU_ERR_DIFFERENT_DPU_PROGRAMS;
  const dpu::Symbol *found = program->find(name);
  if (!found || !found->isForHost) {
    explain(
        {"NB0808", "unknown symbol", program->path, "a variable declared __host, __mram or __mram_noinit", name, ""});
    return DPU_ERR_UNKNOWN_SYMBOL;
  }
  symbol = {found->address, found->size};
  return DPU_OK;
}

/// HT-1 (docs/model.md): time of one transfer.
double transferUs(const std::vector<dpu_t *> &active, Place place, Direction direction, bool isBroadcast,
                  size_t length) {
  const dpu::DpuConfig &config = System::get().config();
  unsigned most = 0, ranks = 0, inRank = 0;
  const dpu_rank_t *rank = nullptr;
  for (dpu_t *one : active) {
    if (one->rank != rank)
      rank = one->rank, ++ranks, inRank = 0;
    most = std::max(most, ++inRank);
  }
  const dpu::TransferTable &table = place.isMram ? (direction == Direction::To ? config.toMram : config.fromMram)
                                                 : (direction == Direction::To ? config.toWram : config.fromWram);
  auto bytes = static_cast<double>(length);
  if (!isBroadcast)
    return config.transferUs(table, bytes, ranks, most);
  return place.isMram ? config.broadcastUs(bytes, std::max(1u, ranks)) : table.at(bytes, std::max(1u, ranks));
}

void move(dpu_t &one, Place place, Direction direction, void *buffer, size_t length) {
  dpu::Dpu &target = one.dpu;
  if (place.isMram) {
    if (direction == Direction::To)
      target.mram.write(place.address, buffer, length);
    else
      target.mram.read(place.address, buffer, length);
  } else if (direction == Direction::To) {
    std::memcpy(target.wram() + place.address, buffer, length);
  } else {
    std::memcpy(buffer, target.wram() + place.address, length);
  }
}

void charge(Call &call, const std::vector<dpu_t *> &active, Place place, Direction direction, bool isBroadcast,
            size_t length, const std::string &symbol, bool isAsync) {
  if (active.empty() || length == 0)
    return;
  Event event{.what = isBroadcast                  ? "broadcast"
                      : direction == Direction::To ? "to"
                                                   : "from",
              .memory = place.isMram ? "mram" : "wram",
              .symbol = symbol,
              .us = transferUs(active, place, direction, isBroadcast, length),
              .bytesPerDpu = length,
              .dpus = static_cast<unsigned>(active.size())};
  double start = call.nowUs(), end = 0;
  dpu_rank_t *rank = nullptr;
  for (dpu_t *one : active) {
    if (one->rank == rank)
      continue;
    rank = one->rank;
    ++event.ranks;
    double begin = std::max(start, rank->busyUntilUs);
    event.startUs = std::max(event.startUs, begin);
    rank->busyUntilUs = begin + event.us;
    end = std::max(end, rank->busyUntilUs);
  }
  System::get().record(std::move(event));
  if (!isAsync)
    call.waitUntil(end);
}

/// A broadcast stores full pages once for all DPUs.
void broadcastMram(const std::vector<dpu_t *> &all, uint32_t address, const void *source, size_t length) {
  using dpu::Mram;
  const auto *bytes = static_cast<const std::byte *>(source);
  uint32_t end = address + static_cast<uint32_t>(length);
  uint32_t firstPage = (address + Mram::PageBytes - 1) / Mram::PageBytes, lastPage = end / Mram::PageBytes;
  Mram &first = all.front()->dpu.mram;
  first.write(address, source, length);
  for (size_t i = 1; i < all.size(); ++i) {
    Mram &mram = all[i]->dpu.mram;
    if (firstPage >= lastPage) {
      mram.write(address, source, length);
      continue;
    }
    uint32_t head = firstPage * Mram::PageBytes - address, tail = lastPage * Mram::PageBytes;
    mram.write(address, bytes, head);
    for (uint32_t page = firstPage; page < lastPage; ++page)
      mram.share(page, first.page(page));
    mram.write(tail, bytes + (tail - address), end - tail);
  }
}

dpu_error_t broadcast(dpu_set_t set, dpu_symbol_t symbol, const std::string &name, uint32_t offset, const void *source,
                      size_t length, bool isAsync, bool isSerial, Call &call) {
  std::vector<dpu_t *> all = dpusOf(set);
  Place place;
  if (dpu_error_t status = locate(symbol, offset, length, name, place); status != DPU_OK)
    return status;
  if (place.isMram)
    broadcastMram(all, place.address, source, length);
  else
    for (dpu_t *one : all)
      move(*one, place, Direction::To, const_cast<void *>(source), length);
  charge(call, all, place, Direction::To, !isSerial || all.size() > 1, length, name, isAsync);
  return DPU_OK;
}

dpu_error_t copyFrom(dpu_set_t set, dpu_symbol_t symbol, const std::string &name, uint32_t offset, void *target,
                     size_t length, Call &call) {
  std::vector<dpu_t *> all = dpusOf(set);
  if (all.size() != 1) {
    explain({"NB0807", "transfer is not possible", "dpu_copy_from, symbol " + name, "a set of one DPU",
             fmt::format("{} DPUs", all.size()), "dpu_prepare_xfer and dpu_push_xfer"});
    return DPU_ERR_INVALID_DPU_SET;
  }
  Place place;
  if (dpu_error_t status = locate(symbol, offset, length, name, place); status != DPU_OK)
    return status;
  move(*all.front(), place, Direction::From, target, length);
  charge(call, all, place, Direction::From, false, length, name, false);
  return DPU_OK;
}

dpu_error_t push(dpu_set_t set, dpu_xfer_t xfer, dpu_symbol_t symbol, const std::string &name, uint32_t offset,
                 size_t length, dpu_xfer_flags_t flags, Call &call) {
  if (xfer != DPU_XFER_TO_DPU && xfer != DPU_XFER_FROM_DPU)
    return DPU_ERR_INVALID_MEMORY_TRANSFER;
  std::vector<dpu_t *> active;
  for (dpu_t *one : dpusOf(set))
    if (one->transferBuffer)
      active.push_back(one);
  Place place;
  dpu_error_t status = locate(symbol, offset, length, name, place);
  Direction direction = xfer == DPU_XFER_TO_DPU ? Direction::To : Direction::From;
  if (status == DPU_OK) {
    System::get().parallel(length < 4096 ? std::min<size_t>(1, active.size()) : active.size(), [&](size_t i) {
      size_t last = length < 4096 ? active.size() : i + 1;
      for (size_t k = i; k < last; ++k)
        move(*active[k], place, direction, active[k]->transferBuffer, length);
    });
    charge(call, active, place, direction, false, length, name, flags & DPU_XFER_ASYNC);
  }
  if (!(flags & DPU_XFER_NO_RESET))
    for (dpu_t *one : active)
      one->transferBuffer = nullptr;
  return status;
}

struct Block {
  dpu_t *one;
  std::byte *data;
  uint32_t length;
};

/// Asks for the blocks of all DPUs; SG_LENGTH_MISMATCH when they are not `length` bytes and nobody allowed that.
dpu_error_t collectBlocks(const std::vector<dpu_t *> &all, const get_block_t &source, size_t length,
                          dpu_sg_xfer_flags_t flags, std::vector<Block> &blocks) {
  bool isStrict = !(flags & DPU_SG_XFER_DISABLE_LENGTH_CHECK);
  for (dpu_t *one : all) {
    size_t sum = 0;
    sg_block_info block{};
    for (uint32_t number = 0; source.f(&block, one->indexInSet, number, source.args); ++number) {
      if (number >= one->rank->maxBlocks) {
        explain({"NB0807", "transfer is not possible", fmt::format("dpu_push_sg_xfer, DPU {}", one->indexInSet),
                 fmt::format("at most {} blocks a DPU", one->rank->maxBlocks), "more",
                 "allocate with sgXferMaxBlocksPerDpu=N in the profile"});
        return DPU_ERR_SG_TOO_MANY_BLOCKS;
      }
      sum += block.length;
      if (block.length)
        blocks.push_back({one, reinterpret_cast<std::byte *>(block.addr), block.length});
    }
    if (isStrict ? sum != length : sum > length) {
      explain({"NB0807", "transfer is not possible", fmt::format("dpu_push_sg_xfer, DPU {}", one->indexInSet),
               fmt::format("blocks of {}{} bytes in all", isStrict ? "" : "at most ", length), fmt::format("{}", sum),
               isStrict ? "DPU_SG_XFER_DISABLE_LENGTH_CHECK where DPUs get less" : ""});
      return DPU_ERR_SG_LENGTH_MISMATCH;
    }
  }
  return DPU_OK;
}

dpu_error_t pushBlocks(dpu_set_t set, dpu_xfer_t xfer, dpu_symbol_t symbol, const std::string &name, uint32_t offset,
                       size_t length, get_block_t *source, dpu_sg_xfer_flags_t flags, Call &call) {
  if (xfer != DPU_XFER_TO_DPU && xfer != DPU_XFER_FROM_DPU)
    return DPU_ERR_INVALID_MEMORY_TRANSFER;
  if (set.kind == DPU_SET_DPU) {
    explain({"NB0807", "transfer is not possible", "dpu_push_sg_xfer", "a set of ranks", "one DPU", "dpu_push_xfer"});
    return DPU_ERR_INTERNAL;
  }
  std::vector<dpu_t *> all = dpusOf(set);
  Place place;
  if (dpu_error_t status = locate(symbol, offset, length, name, place); status != DPU_OK)
    return status;
  if (!place.isMram)
    return DPU_ERR_SG_NOT_MRAM_SYMBOL;
  if (!all.front()->rank->maxBlocks) {
    explain({"NB0807", "transfer is not possible", "dpu_push_sg_xfer, symbol " + name,
             "a set allocated for scatter-gather transfers", "one without",
             "dpu_alloc(n, \"sgXferEnable=true\", &set)"});
    return DPU_ERR_SG_NOT_ACTIVATED;
  }
  // All blocks first: a transfer that is refused moves nothing.
  std::vector<Block> blocks;
  if (dpu_error_t status = collectBlocks(all, *source, length, flags, blocks); status != DPU_OK)
    return status;
  Direction direction = xfer == DPU_XFER_TO_DPU ? Direction::To : Direction::From;
  auto next = blocks.begin();
  for (dpu_t *one : all) {
    uint32_t at = place.address, end = at + static_cast<uint32_t>(length);
    for (; next != blocks.end() && next->one == one; at += next++->length)
      move(*one, {at, true}, direction, next->data, next->length);
    if (direction == Direction::To && at < end) {
      std::vector<std::byte> zeros(end - at);
      move(*one, {at, true}, direction, zeros.data(), zeros.size());
    }
  }
  charge(call, all, place, direction, false, length, name, flags & DPU_SG_XFER_ASYNC);
  return DPU_OK;
}

constexpr const char *unnamed = "(by address)";

} // namespace

NB_API dpu_error_t dpu_prepare_xfer(dpu_set_t set, void *buffer) {
  for (dpu_t *one : dpusOf(set))
    one->transferBuffer = buffer;
  return DPU_OK;
}

#define NB_LOOK_UP(set, name)                                                                                          \
  Call call;                                                                                                           \
  dpu_symbol_t symbol{};                                                                                               \
  if (dpu_error_t status = lookUp(dpusOf(set), name, symbol); status != DPU_OK)                                        \
  return status

NB_API dpu_error_t dpu_push_xfer(dpu_set_t set, dpu_xfer_t xfer, const char *name, uint32_t offset, size_t length,
                                 dpu_xfer_flags_t flags) {
  NB_LOOK_UP(set, name);
  return push(set, xfer, symbol, name, offset, length, flags, call);
}
NB_API dpu_error_t dpu_push_xfer_symbol(dpu_set_t set, dpu_xfer_t xfer, dpu_symbol_t symbol, uint32_t offset,
                                        size_t length, dpu_xfer_flags_t flags) {
  Call call;
  return push(set, xfer, symbol, unnamed, offset, length, flags, call);
}
NB_API dpu_error_t dpu_broadcast_to(dpu_set_t set, const char *name, uint32_t offset, const void *source, size_t length,
                                    dpu_xfer_flags_t flags) {
  NB_LOOK_UP(set, name);
  return broadcast(set, symbol, name, offset, source, length, flags & DPU_XFER_ASYNC, false, call);
}
NB_API dpu_error_t dpu_broadcast_to_symbol(dpu_set_t set, dpu_symbol_t symbol, uint32_t offset, const void *source,
                                           size_t length, dpu_xfer_flags_t flags) {
  Call call;
  return broadcast(set, symbol, unnamed, offset, source, length, flags & DPU_XFER_ASYNC, false, call);
}
NB_API dpu_error_t dpu_copy_to(dpu_set_t set, const char *name, uint32_t offset, const void *source, size_t length) {
  NB_LOOK_UP(set, name);
  return broadcast(set, symbol, name, offset, source, length, false, true, call);
}
NB_API dpu_error_t dpu_copy_to_symbol(dpu_set_t set, dpu_symbol_t symbol, uint32_t offset, const void *source,
                                      size_t length) {
  Call call;
  return broadcast(set, symbol, unnamed, offset, source, length, false, true, call);
}
NB_API dpu_error_t dpu_copy_from(dpu_set_t set, const char *name, uint32_t offset, void *target, size_t length) {
  NB_LOOK_UP(set, name);
  return copyFrom(set, symbol, name, offset, target, length, call);
}
NB_API dpu_error_t dpu_copy_from_symbol(dpu_set_t set, dpu_symbol_t symbol, uint32_t offset, void *target,
                                        size_t length) {
  Call call;
  return copyFrom(set, symbol, unnamed, offset, target, length, call);
}
NB_API dpu_error_t dpu_push_sg_xfer(dpu_set_t set, dpu_xfer_t xfer, const char *name, uint32_t offset, size_t length,
                                    get_block_t *blocks, dpu_sg_xfer_flags_t flags) {
  NB_LOOK_UP(set, name);
  return pushBlocks(set, xfer, symbol, name, offset, length, blocks, flags, call);
}
NB_API dpu_error_t dpu_push_sg_xfer_symbol(dpu_set_t set, dpu_xfer_t xfer, dpu_symbol_t symbol, uint32_t offset,
                                           size_t length, get_block_t *blocks, dpu_sg_xfer_flags_t flags) {
  Call call;
  return pushBlocks(set, xfer, symbol, unnamed, offset, length, blocks, flags, call);
}
