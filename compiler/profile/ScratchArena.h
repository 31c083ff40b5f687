// SPDX-License-Identifier: Apache-2.0
// Scratch memory for one nest: one buffer per program buffer that it touches, filled with data of the right type.
#pragma once

#include "runtime/Program.h"

#include <map>
#include <vector>

namespace nearbank::profile {

/// Owns the memory; freed with the object. The layout depends on the nest only, so addresses relative to base()
/// repeat from run to run.
class ScratchArena {
public:
  /// @param indexBounds by operand number: exclusive upper bound of integer operands that are used as indices
  ScratchArena(const Program &program, const NestInstance &nest, const NestFacts &facts,
               const std::map<uint32_t, int64_t> &indexBounds);
  ~ScratchArena();
  ScratchArena(const ScratchArena &) = delete;
  ScratchArena &operator=(const ScratchArena &) = delete;

  /// One pointer per operand, as the kernel receives them.
  void **operands() { return operands_.data(); }
  /// Whether the nest reads what it writes, so that a repeat needs fresh contents.
  bool isInPlace() const { return isInPlace_; }
  /// Writes the first contents again into the buffers that the nest both reads and writes.
  void restore();
  /// Makes every integer that may be an index zero, which is in range for every non-empty table.
  void zeroIndices();

  const void *base() const { return memory_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t distinctBytes() const { return distinctBytes_; } ///< That one execution touches, each byte once.
  uint64_t spanBytes() const { return spanBytes_; }         ///< Upper bound of the same.

private:
  struct Buffer {
    uint32_t index = 0;          ///< Into Program::buffers.
    uint64_t begin = 0, end = 0; ///< Part of the program buffer that is here.
    uint64_t offset = 0;         ///< In the arena.
    bool reads = false, writes = false, isIndex = false;
    int64_t indexBound = 0; ///< 0 when unknown.
    uint64_t distinct = 0;
    ElementType type = ElementType::F32;
    std::string indexClass;
  };
  void collect(const Program &program, const NestInstance &nest, const NestFacts &facts,
               const std::map<uint32_t, int64_t> &indexBounds);
  void fill(const Buffer &buffer);

  std::vector<Buffer> buffers_;
  std::vector<void *> operands_;
  std::byte *memory_ = nullptr;
  uint64_t bytes_ = 0, distinctBytes_ = 0, spanBytes_ = 0;
  bool isInPlace_ = false;
};

} // namespace nearbank::profile
