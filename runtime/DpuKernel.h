// SPDX-License-Identifier: Apache-2.0
// How a nest runs on DPUs: which loops are shared out among them, and where each operand lies in their MRAM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nearbank {

struct DpuKernel {
  /// A parallel loop whose iterations are shared out; each DPU has `chunk` of them, the last one what is left.
  struct Split {
    int64_t extent = 1, chunk = 1;
    int64_t parts() const { return (extent + chunk - 1) / chunk; }
  };

  /// One dimension of an operand's memory, as a DPU holds its part of it.
  struct Dimension {
    int64_t size = 1;         ///< Elements along it in host memory.
    int64_t stride = 0;       ///< Between them in host memory, in elements.
    int64_t offset = 0;       ///< First element that the first DPU needs.
    int64_t length = 1;       ///< Elements that a DPU holds.
    int64_t packedStride = 1; ///< Between them in MRAM, in elements.
    /// Elements that the part moves on for each iteration of a split loop, by number in `splits`; 0 where it does not.
    std::vector<int64_t> steps;
  };

  /// Memory that the kernel reads or writes.
  struct Operand {
    std::string name;      ///< In the C text.
    std::string type;      ///< Of its elements, in the C text.
    uint32_t argument = 0; ///< Number among the nest's operands.
    uint32_t elementBytes = 4;
    uint64_t mramOffset = 0; ///< From the start of the heap.
    uint64_t bytes = 0;      ///< In each DPU, a multiple of 8.
    bool isRead = false, isWritten = false;
    std::vector<Dimension> dimensions; ///< In the order in which MRAM holds them, the outermost first.

    bool isBroadcast() const; ///< Every DPU holds the same.
    /// Whether a DPU's part lies in host memory as it does in MRAM, so that a transfer needs no copy before.
    bool isContiguous() const;
  };

  /// MRAM that programs leave to operands: 64 MB without room for a program's own variables.
  static constexpr uint64_t mramRoom = (64u << 20) - (64u << 10);

  std::vector<Split> splits;
  std::vector<Operand> operands;
  int64_t items = 0;    ///< Pieces of work of the DPU with the most; tasklets take them in turn.
  int64_t tasklets = 1; ///< That the program has.
  int64_t depth = 0;    ///< Iterations of its innermost reduction loop, and of these in one block; 0 without one.
  int64_t depthBlock = 0;
  uint64_t mramBytes = 0;   ///< That its operands take in each DPU.
  std::string source;       ///< The C text that the program was made from.
  int64_t instructions = 0; ///< Of the program, in RV32IM.
  /// What PL-10 (docs/model.md) needs: of the longest piece of work, and of the DPU with the most.
  double slotsPerItem = 0, dmaTransfers = 0, dmaBytes = 0;

  int64_t dpus() const; ///< That take part.
  /// First iteration of each split loop on DPU `dpu`, and how many it has.
  struct Part {
    std::vector<int64_t> first, count;
  };
  Part partOf(int64_t dpu) const;

  /// Copies the part of `operand` that DPU `part` needs from host memory to its form in MRAM.
  void pack(const Operand &operand, const Part &part, const std::byte *host, std::byte *packed) const;
  /// The way back; touches what the DPU computed and nothing else.
  void unpack(const Operand &operand, const Part &part, const std::byte *packed, std::byte *host) const;
};

} // namespace nearbank
