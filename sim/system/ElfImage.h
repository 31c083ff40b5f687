// SPDX-License-Identifier: Apache-2.0
// A static RV64 executable, checked and copied into simulator memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nearbank::sim {

struct ElfSegment {
  uint64_t guestBase = 0;
  std::vector<std::byte> bytes; ///< Memory image.
  bool isWritable = false, isExecutable = false;
  uint64_t end() const { return guestBase + bytes.size(); }
};

struct ElfImage {
  uint64_t entry = 0;
  std::vector<ElfSegment> segments; ///< Sorted by guestBase.
};

/// Reads PT_LOAD segments. Where two overlap, the later program header wins, as it does for a loader that maps them in
/// order. Segments grow by zeros to multiples of `alignment` where no other one is in the way.
/// @throws DeviceError NB0505 when the file is not a static little-endian RV64 executable that lies in bounds
ElfImage loadElf(std::span<const std::byte> file, uint64_t alignment);

} // namespace nearbank::sim
