// SPDX-License-Identifier: Apache-2.0
#include "runtime/DpuKernel.h"

#include <algorithm>
#include <cstring>

namespace nearbank {
namespace {

/// A dimension as one DPU holds it: where its part begins in host memory, and how long it is there.
struct Range {
  int64_t first = 0, length = 0;
};

Range rangeOf(const DpuKernel::Dimension &dimension, const DpuKernel &kernel, const DpuKernel::Part &part) {
  Range range{dimension.offset, dimension.length};
  for (size_t split = 0; split < kernel.splits.size(); ++split) {
    range.first += dimension.steps[split] * part.first[split];
    // The last DPU may have fewer iterations, and then needs less.
    range.length -= dimension.steps[split] * (kernel.splits[split].chunk - part.count[split]);
  }
  range.length = std::min(range.length, dimension.size - range.first);
  return range;
}

/// Calls `move(host offset, packed offset, elements)` for each run of elements that is contiguous on both sides.
template <typename Move>
void walk(const DpuKernel &kernel, const DpuKernel::Operand &operand, const DpuKernel::Part &part, size_t depth,
          int64_t host, int64_t packed, Move &&move) {
  if (depth == operand.dimensions.size())
    return move(host, packed, int64_t{1});
  const DpuKernel::Dimension &dimension = operand.dimensions[depth];
  Range range = rangeOf(dimension, kernel, part);
  host += range.first * dimension.stride;
  if (depth + 1 == operand.dimensions.size() && dimension.stride == 1 && dimension.packedStride == 1)
    return move(host, packed, range.length);
  for (int64_t i = 0; i < range.length; ++i)
    walk(kernel, operand, part, depth + 1, host + i * dimension.stride, packed + i * dimension.packedStride, move);
}

} // namespace

bool DpuKernel::Operand::isBroadcast() const {
  return std::all_of(dimensions.begin(), dimensions.end(), [](const Dimension &dimension) {
    return std::all_of(dimension.steps.begin(), dimension.steps.end(), [](int64_t step) { return step == 0; });
  });
}

bool DpuKernel::Operand::isContiguous() const {
  return std::all_of(dimensions.begin(), dimensions.end(), [](const Dimension &dimension) {
    return dimension.length == 1 || dimension.stride == dimension.packedStride;
  });
}

int64_t DpuKernel::dpus() const {
  int64_t product = 1;
  for (const Split &split : splits)
    product *= split.parts();
  return product;
}

DpuKernel::Part DpuKernel::partOf(int64_t dpu) const {
  Part part;
  part.first.resize(splits.size());
  part.count.resize(splits.size());
  for (size_t i = splits.size(); i-- > 0;) {
    const Split &split = splits[i];
    part.first[i] = dpu % split.parts() * split.chunk;
    part.count[i] = std::min(split.chunk, split.extent - part.first[i]);
    dpu /= split.parts();
  }
  return part;
}

void DpuKernel::pack(const Operand &operand, const Part &part, const std::byte *host, std::byte *packed) const {
  int64_t width = operand.elementBytes;
  walk(*this, operand, part, 0, 0, 0, [&](int64_t from, int64_t to, int64_t elements) {
    std::memcpy(packed + to * width, host + from * width, static_cast<size_t>(elements * width));
  });
}

void DpuKernel::unpack(const Operand &operand, const Part &part, const std::byte *packed, std::byte *host) const {
  int64_t width = operand.elementBytes;
  walk(*this, operand, part, 0, 0, 0, [&](int64_t to, int64_t from, int64_t elements) {
    std::memcpy(host + to * width, packed + from * width, static_cast<size_t>(elements * width));
  });
}

} // namespace nearbank
