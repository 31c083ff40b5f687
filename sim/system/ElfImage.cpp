// SPDX-License-Identifier: Apache-2.0
// Reads ELF executables; field offsets are those of the ELF-64 object file format.
#include "sim/system/ElfImage.h"

#include "runtime/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace nearbank::sim {
namespace {

constexpr uint64_t headerBytes = 64, programHeaderBytes = 56;
constexpr uint64_t guestLimit = uint64_t{1} << 40, segmentLimit = uint64_t{1} << 30;

[[noreturn]] void reject(const char *expected, std::string actual) {
  throw DeviceError({.code = "NB0505",
                     .title = "malformed kernel executable",
                     .where = "ELF file of a near-memory kernel",
                     .expected = expected,
                     .actual = std::move(actual),
                     .fix = "link a static RV64 executable (lp64d) below 1 << 40"});
}

template <typename T> T read(std::span<const std::byte> file, uint64_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

ElfSegment readSegment(std::span<const std::byte> file, uint64_t header) {
  uint32_t flags = read<uint32_t>(file, header + 4);
  uint64_t offset = read<uint64_t>(file, header + 8), address = read<uint64_t>(file, header + 16);
  uint64_t fileBytes = read<uint64_t>(file, header + 32), memoryBytes = read<uint64_t>(file, header + 40);
  if (fileBytes > file.size() || offset > file.size() - fileBytes)
    reject("segments inside the file", fmt::format("bytes [{}, {}) of {}", offset, offset + fileBytes, file.size()));
  if (memoryBytes < fileBytes || memoryBytes > segmentLimit || address >= guestLimit ||
      memoryBytes > guestLimit - address)
    reject("segments below 1 << 40 and at most 1 GiB", fmt::format("{} B at {:#x}", memoryBytes, address));
  ElfSegment segment;
  segment.guestBase = address;
  segment.bytes.resize(memoryBytes);
  if (fileBytes != 0)
    std::memcpy(segment.bytes.data(), file.data() + offset, fileBytes);
  segment.isExecutable = (flags & 1) != 0;
  segment.isWritable = (flags & 2) != 0;
  return segment;
}

/// Cuts from `earlier` what `later` covers.
void giveWay(ElfSegment &earlier, const ElfSegment &later) {
  if (earlier.end() <= later.guestBase || later.end() <= earlier.guestBase)
    return;
  if (later.end() >= earlier.end()) {
    earlier.bytes.resize(later.guestBase > earlier.guestBase ? later.guestBase - earlier.guestBase : 0);
  } else if (later.guestBase <= earlier.guestBase) {
    uint64_t cut = later.end() - earlier.guestBase;
    earlier.bytes.erase(earlier.bytes.begin(), earlier.bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    earlier.guestBase += cut;
  } else {
    reject("segments that do not lie inside one another",
           fmt::format("segment at {:#x} inside the one at {:#x}", later.guestBase, earlier.guestBase));
  }
}

void growTo(std::vector<ElfSegment> &segments, uint64_t alignment) {
  for (size_t i = 0; i < segments.size(); ++i) {
    ElfSegment &segment = segments[i];
    uint64_t begin = segment.guestBase / alignment * alignment,
             end = (segment.end() + alignment - 1) / alignment * alignment;
    if (i > 0 && segments[i - 1].end() > begin)
      begin = segment.guestBase;
    if (i + 1 < segments.size() && segments[i + 1].guestBase < end)
      end = segment.end();
    segment.bytes.insert(segment.bytes.begin(), segment.guestBase - begin, std::byte{0});
    segment.guestBase = begin;
    segment.bytes.resize(end - begin);
  }
}

} // namespace

ElfImage loadElf(std::span<const std::byte> file, uint64_t alignment) {
  if (file.size() < headerBytes || std::memcmp(file.data(), "\177ELF", 4) != 0)
    reject("an ELF file", fmt::format("{} B without its mark", file.size()));
  auto byteAt = [&](size_t i) { return static_cast<unsigned>(file[i]); };
  if (byteAt(4) != 2 || byteAt(5) != 1)
    reject("ELF64, little endian", fmt::format("class {}, data {}", byteAt(4), byteAt(5)));
  unsigned type = read<uint16_t>(file, 16), machine = read<uint16_t>(file, 18);
  if (type != 2 || machine != 243)
    reject("type 2 (executable), machine 243 (RISC-V)", fmt::format("type {}, machine {}", type, machine));
  ElfImage image;
  image.entry = read<uint64_t>(file, 24);
  uint64_t table = read<uint64_t>(file, 32), entryBytes = read<uint16_t>(file, 54), count = read<uint16_t>(file, 56);
  if (entryBytes != programHeaderBytes || count == 0 || table > file.size() ||
      count * programHeaderBytes > file.size() - table)
    reject("a program header table inside the file", fmt::format("{} entries of {} B at {}", count, entryBytes, table));
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t header = table + i * programHeaderBytes;
    if (read<uint32_t>(file, header) != 1 || read<uint64_t>(file, header + 40) == 0)
      continue; // not PT_LOAD, or empty
    ElfSegment segment = readSegment(file, header);
    for (ElfSegment &earlier : image.segments)
      giveWay(earlier, segment);
    image.segments.push_back(std::move(segment));
  }
  std::erase_if(image.segments, [](const ElfSegment &s) { return s.bytes.empty(); });
  std::sort(image.segments.begin(), image.segments.end(),
            [](const ElfSegment &a, const ElfSegment &b) { return a.guestBase < b.guestBase; });
  growTo(image.segments, alignment);
  bool entryIsText = std::any_of(image.segments.begin(), image.segments.end(), [&](const ElfSegment &s) {
    return s.isExecutable && image.entry - s.guestBase < s.bytes.size();
  });
  if (!entryIsText)
    reject("an entry point inside an executable segment", fmt::format("{:#x}", image.entry));
  return image;
}

} // namespace nearbank::sim
