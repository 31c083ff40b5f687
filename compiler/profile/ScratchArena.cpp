// SPDX-License-Identifier: Apache-2.0

#include "compiler/profile/ScratchArena.h"

#include "runtime/Error.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace nearbank::profile {
namespace {

constexpr uint64_t pageBytes = 4096;
constexpr uint64_t hugePageBytes = uint64_t(2) << 20;
constexpr size_t patternElements = 65536;

uint64_t roundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/// xorshift64: cheap and the same on every machine.
struct Random {
  uint64_t state;
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
};

bool isInteger(ElementType type) {
  return type == ElementType::I64 || type == ElementType::I32 || type == ElementType::I16 || type == ElementType::I8;
}

/// Uniform in [-1, 1] away from zero: at least 2^-10, normal in every type.
double nextFloat(Random &random) {
  double value = double(random.next() >> 11) * 0x1p-52 - 1.0;
  return std::copysign(std::max(std::abs(value), 0x1p-10), value);
}

/// Bits of an f16 that is normal and exact to truncation.
uint16_t halfBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  uint32_t sign = (bits >> 16) & 0x8000;
  int32_t exponent = int32_t((bits >> 23) & 0xff) - 127 + 15;
  return uint16_t(sign | uint32_t(exponent) << 10 | ((bits >> 13) & 0x3ff));
}

uint16_t bfloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return uint16_t(bits >> 16);
}

template <typename T> void append(std::vector<std::byte> &bytes, T value) {
  size_t position = bytes.size();
  bytes.resize(position + sizeof(T));
  std::memcpy(bytes.data() + position, &value, sizeof(T));
}

void appendInteger(std::vector<std::byte> &bytes, ElementType type, int64_t value) {
  switch (type) {
  case ElementType::I64:
    return append(bytes, value);
  case ElementType::I32:
    return append(bytes, int32_t(value));
  case ElementType::I16:
    return append(bytes, int16_t(value));
  default:
    return append(bytes, int8_t(value));
  }
}

/// Bytes of elements [0, count) of a buffer's data.
std::vector<std::byte> pattern(ElementType type, uint64_t seed, bool isIndex, int64_t bound,
                               const std::string &indexClass, size_t count) {
  Random random{seed * 0x9e3779b97f4a7c15u + 1};
  std::vector<std::byte> bytes;
  bytes.reserve(count * bytesOf(type));
  for (size_t i = 0; i < count; ++i) {
    if (isInteger(type)) {
      int64_t value = 1 + int64_t(random.next() % 3); // Never zero: it may divide.
      if (isIndex)
        value = bound <= 0 || indexClass == "constant" ? 0
                : indexClass == "arange"               ? int64_t(i) % bound
                                                       : int64_t((random.next() >> 8) % uint64_t(bound));
      appendInteger(bytes, type, value);
    } else if (type == ElementType::I1) {
      append(bytes, uint8_t((random.next() >> 20) & 1));
    } else {
      double value = nextFloat(random);
      if (type == ElementType::F64)
        append(bytes, value);
      else if (type == ElementType::F32)
        append(bytes, float(value));
      else
        append(bytes, type == ElementType::F16 ? halfBits(float(value)) : bfloatBits(float(value)));
    }
  }
  return bytes;
}

} // namespace

ScratchArena::ScratchArena(const Program &program, const NestInstance &nest, const NestFacts &facts,
                           const std::map<uint32_t, int64_t> &indexBounds) {
  collect(program, nest, facts, indexBounds);
  for (Buffer &buffer : buffers_) {
    buffer.offset = bytes_;
    bytes_ += roundUp(std::max<uint64_t>(buffer.end - buffer.begin, 64), pageBytes);
    uint64_t span = buffer.end - buffer.begin;
    spanBytes_ += span;
    distinctBytes_ += std::min(buffer.distinct, span);
    isInPlace_ = isInPlace_ || (buffer.reads && buffer.writes);
  }
  bytes_ = roundUp(std::max(bytes_, pageBytes), hugePageBytes);
  void *memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw DeviceError({"NB0407", "no memory to profile a nest", nest.id, fmt::format("{} B of scratch memory", bytes_),
                       "the system refused", "close other programs, or profile a smaller model"});
  memory_ = static_cast<std::byte *>(memory);
  for (const Buffer &buffer : buffers_)
    fill(buffer);
  for (const NestOperand &operand : nest.operands)
    for (const Buffer &buffer : buffers_)
      if (buffer.index == operand.buffer)
        operands_.push_back(memory_ + buffer.offset + int64_t(operand.byteOffset - buffer.begin));
}

ScratchArena::~ScratchArena() {
  if (memory_)
    munmap(memory_, bytes_);
}

void ScratchArena::collect(const Program &program, const NestInstance &nest, const NestFacts &facts,
                           const std::map<uint32_t, int64_t> &indexBounds) {
  std::map<uint32_t, Buffer> byIndex;
  for (uint32_t number = 0; number < nest.operands.size(); ++number) {
    const NestOperand &operand = nest.operands[number];
    const BufferInfo &info = program.buffers[operand.buffer];
    auto [entry, isNew] = byIndex.try_emplace(operand.buffer);
    Buffer &buffer = entry->second;
    if (isNew) {
      buffer.index = operand.buffer;
      buffer.begin = operand.spanBegin;
      buffer.type = info.elementType;
      buffer.indexClass = info.indexClass;
    }
    buffer.begin = std::min(buffer.begin, operand.spanBegin);
    buffer.end = std::max(buffer.end, operand.spanEnd);
    buffer.reads |= operand.reads;
    buffer.writes |= operand.writes;
    buffer.distinct += operand.distinctBytes;
    auto bound = indexBounds.find(number);
    if (isInteger(info.elementType) && operand.reads && (bound != indexBounds.end() || facts.isDataDependent)) {
      buffer.isIndex = true;
      if (bound != indexBounds.end())
        buffer.indexBound = buffer.indexBound ? std::min(buffer.indexBound, bound->second) : bound->second;
    }
  }
  for (auto &[index, buffer] : byIndex) {
    buffer.begin = buffer.begin / 64 * 64;
    buffer.end = std::max(buffer.end, buffer.begin);
    buffers_.push_back(buffer);
  }
}

void ScratchArena::fill(const Buffer &buffer) {
  std::byte *target = memory_ + buffer.offset;
  uint64_t bytes = buffer.end - buffer.begin;
  if (!buffer.reads) {
    std::memset(target, 0, bytes);
    return;
  }
  size_t count = std::min<uint64_t>(bytes / bytesOf(buffer.type) + 1, patternElements);
  std::vector<std::byte> block =
      pattern(buffer.type, buffer.index + 1, buffer.isIndex, buffer.indexBound, buffer.indexClass, count);
  for (uint64_t done = 0; done < bytes; done += block.size())
    std::memcpy(target + done, block.data(), std::min<uint64_t>(block.size(), bytes - done));
}

void ScratchArena::restore() {
  for (const Buffer &buffer : buffers_)
    if (buffer.reads && buffer.writes)
      fill(buffer);
}

void ScratchArena::zeroIndices() {
  for (Buffer &buffer : buffers_)
    if (buffer.reads && isInteger(buffer.type)) {
      buffer.isIndex = true;
      buffer.indexBound = 0;
      fill(buffer);
    }
}

} // namespace nearbank::profile
