// SPDX-License-Identifier: Apache-2.0
// Guest address space.
#include "sim/memory/GuestMemory.h"

#include "runtime/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace nearbank::sim {

void GuestMemory::add(uint64_t guestBase, void *hostBase, uint64_t bytes, bool isWritable, const char *what,
                      bool isScratch) {
  constexpr uint64_t limit = uint64_t{1} << 62;
  auto reject = [&](std::string expected) {
    throw DeviceError({.code = "NB0506",
                       .title = "guest memory range cannot be mapped",
                       .where = what,
                       .expected = std::move(expected),
                       .actual = fmt::format("[{:#x}, {:#x})", guestBase, guestBase + bytes),
                       .fix = "report this with the command that led here"});
  };
  if (bytes == 0 || guestBase >= limit || bytes > limit - guestBase)
    reject("a non-empty range below 1 << 62");
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), guestBase,
                                [](uint64_t a, const MemoryRange &r) { return a < r.begin; });
  if (after != ranges_.end() && after->begin < guestBase + bytes)
    reject(fmt::format("no overlap with [{:#x}, {:#x})", after->begin, after->end));
  if (after != ranges_.begin() && std::prev(after)->end > guestBase)
    reject(fmt::format("no overlap with [{:#x}, {:#x})", std::prev(after)->begin, std::prev(after)->end));
  auto delta = std::bit_cast<int64_t>(reinterpret_cast<uintptr_t>(hostBase) - guestBase);
  ranges_.insert(after, {guestBase, guestBase + bytes, delta, isWritable, isScratch});
}

const MemoryRange *GuestMemory::find(uint64_t address) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](uint64_t a, const MemoryRange &r) { return a < r.begin; });
  if (after == ranges_.begin())
    return nullptr;
  const MemoryRange &range = *std::prev(after);
  return address < range.end ? &range : nullptr;
}

const MemoryRange *GuestMemory::nearest(uint64_t address) const {
  const MemoryRange *best = nullptr;
  uint64_t bestDistance = ~uint64_t{0};
  for (const MemoryRange &range : ranges_) {
    uint64_t distance = address < range.begin ? range.begin - address : address >= range.end ? address - range.end : 0;
    if (distance < bestDistance)
      best = &range, bestDistance = distance;
  }
  return best;
}

} // namespace nearbank::sim
