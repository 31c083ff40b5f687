// SPDX-License-Identifier: Apache-2.0
// A nest as its DPU kernel sees it: loops, memory by loop, and how both are shared out among DPUs and tasklets.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "runtime/DpuKernel.h"
#include "sim/dpu/DpuConfig.h"

#include <optional>
#include <string>
#include <vector>

namespace nearbank::codegen {

/// Tasklets of emitted programs: 11 fill the pipeline, the others hide transfers.
inline constexpr int64_t dpuTasklets = 16;

struct DpuLoop {
  int64_t extent = 1;
  bool isParallel = true;
  int split = -1; ///< Number in DpuKernel::splits; -1 when every DPU runs all of it.
};

/// One dimension of memory, and how far loops move in it.
struct DpuDimension {
  int64_t size = 1, stride = 1, offset = 0;
  std::vector<int64_t> steps; ///< Elements by loop.
};

/// How the kernel brings elements to WRAM.
enum class DpuFetch {
  Block,  ///< Along the innermost loop, a block at a time.
  Single, ///< One element, as soon as its loops are known.
  Table   ///< At computed positions: one element for each use.
};

/// Memory that the nest reads or writes through one operand.
struct DpuMemory {
  std::string name;
  mlir::Value memory;       ///< Argument of the kernel function.
  mlir::Value bodyArgument; ///< What the body calls the element; null for tables.
  mlir::Type element;
  bool isRead = false, isWritten = false;
  std::vector<DpuDimension> dimensions; ///< In the order in which MRAM holds them, the outermost first.
  std::vector<int64_t> packedSteps;     ///< Elements in MRAM by loop.
  DpuFetch fetch = DpuFetch::Block;
};

struct DpuNest {
  mlir::linalg::GenericOp op;
  std::vector<DpuLoop> loops;
  std::vector<int> loopOf;         ///< Loop by dimension of `op`; -1 where it makes one iteration only.
  std::vector<DpuMemory> memories; ///< Inputs, then outputs, then tables.
  size_t numInputs = 0, numOutputs = 0;
  std::optional<size_t> vectorLoop; ///< Parallel loop whose blocks are pieces of work.
  std::optional<size_t> innerLoop;  ///< Reduction loop that runs innermost; none without reductions.
  int64_t blockLength = 1;          ///< Of `vectorLoop`.
  int64_t innerBlock = 1;           ///< Of `innerLoop`.
  int64_t pieces = 1;               ///< Tasklets that share each sum; more than 1 only when all sums are made at once.
  int64_t blockBytes = 8;           ///< Room in WRAM for one block.
  /// By output: whether its sum is made of the sums of blocks of `innerLoop`, whose rounding errors grow with the
  /// length of a block and the number of blocks, not with their product.
  std::vector<bool> sumsByBlock;

  bool usesLoop(const DpuMemory &memory, size_t loop) const { return memory.packedSteps[loop] != 0; }
};

/// Reads the nest and chooses blocks and splits for a machine.
/// @param kernel the outlined nest, its mathematics expanded
/// @return nothing when the nest cannot run on these DPUs; `reason` then says why
std::optional<DpuNest> shareOut(mlir::func::FuncOp kernel, const dpu::DpuConfig &config, DpuKernel &layout,
                                std::string &reason);

} // namespace nearbank::codegen
