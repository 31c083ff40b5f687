// SPDX-License-Identifier: Apache-2.0
#include "runtime/DpuKernel.h"

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

namespace nearbank {
namespace {

using Operand = DpuKernel::Operand;
using testing::ElementsAre;

std::vector<int32_t> numbers(size_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

std::vector<int32_t> packed(const DpuKernel &kernel, const Operand &operand, int64_t dpu, size_t hostElements) {
  std::vector<int32_t> host = numbers(hostElements), part(operand.bytes / 4, -1);
  kernel.pack(operand, kernel.partOf(dpu), reinterpret_cast<const std::byte *>(host.data()),
              reinterpret_cast<std::byte *>(part.data()));
  return part;
}

Operand operandOf(std::vector<DpuKernel::Dimension> dimensions, uint64_t elements) {
  Operand operand;
  operand.bytes = elements * 4;
  operand.isRead = true;
  operand.dimensions = std::move(dimensions);
  return operand;
}

TEST(DpuKernelTest, PartsCoverSplitLoopsOnceAndTheLastIsShorter) {
  DpuKernel kernel;
  kernel.splits = {{5, 2}, {7, 4}};
  ASSERT_EQ(kernel.dpus(), 6);
  std::vector<int> visits(35);
  for (int64_t dpu = 0; dpu < kernel.dpus(); ++dpu) {
    DpuKernel::Part part = kernel.partOf(dpu);
    for (int64_t i = part.first[0]; i < part.first[0] + part.count[0]; ++i)
      for (int64_t j = part.first[1]; j < part.first[1] + part.count[1]; ++j)
        ++visits.at(static_cast<size_t>(i * 7 + j));
  }
  EXPECT_THAT(visits, testing::Each(1));
  EXPECT_THAT(kernel.partOf(5).count, ElementsAre(1, 3));
}

TEST(DpuKernelTest, WithoutSplitsOneDpuHasAll) {
  DpuKernel kernel;
  EXPECT_EQ(kernel.dpus(), 1);
  EXPECT_THAT(kernel.partOf(0).first, ElementsAre());
}

TEST(DpuKernelTest, RowsAreSharedOutAsTheyLie) {
  DpuKernel kernel;
  kernel.splits = {{3, 2}};
  Operand rows = operandOf({{3, 4, 0, 2, 4, {1}}, {4, 1, 0, 4, 1, {0}}}, 8);
  EXPECT_TRUE(rows.isContiguous());
  EXPECT_FALSE(rows.isBroadcast());
  EXPECT_THAT(packed(kernel, rows, 0, 12), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(packed(kernel, rows, 1, 12), ElementsAre(8, 9, 10, 11, -1, -1, -1, -1)) << "the last part has one row";
}

TEST(DpuKernelTest, ColumnsAreTransposedOnTheWay) {
  DpuKernel kernel;
  kernel.splits = {{4, 2}};
  Operand columns = operandOf({{4, 1, 0, 2, 3, {1}}, {3, 4, 0, 3, 1, {0}}}, 6);
  EXPECT_FALSE(columns.isContiguous());
  EXPECT_THAT(packed(kernel, columns, 0, 12), ElementsAre(0, 4, 8, 1, 5, 9));
  EXPECT_THAT(packed(kernel, columns, 1, 12), ElementsAre(2, 6, 10, 3, 7, 11));
}

TEST(DpuKernelTest, WindowsOverlap) {
  DpuKernel kernel;
  kernel.splits = {{4, 2}}; // Windows of three elements, two apart.
  Operand windows = operandOf({{9, 1, 0, 5, 1, {2}}}, 6);
  EXPECT_THAT(packed(kernel, windows, 0, 9), ElementsAre(0, 1, 2, 3, 4, -1));
  EXPECT_THAT(packed(kernel, windows, 1, 9), ElementsAre(4, 5, 6, 7, 8, -1));
}

TEST(DpuKernelTest, WhatNoSplitMovesIsABroadcast) {
  EXPECT_TRUE(operandOf({{4, 1, 0, 4, 1, {0, 0}}}, 4).isBroadcast());
}

TEST(DpuKernelTest, UnpackTouchesOnlyThePart) {
  DpuKernel kernel;
  kernel.splits = {{3, 2}, {3, 2}};
  // Rows of results are padded to eight bytes.
  Operand results = operandOf({{3, 3, 0, 2, 2, {1, 0}}, {3, 1, 0, 2, 1, {0, 1}}}, 4);
  std::vector<int32_t> host(9, -1);
  for (int64_t dpu = 0; dpu < kernel.dpus(); ++dpu) {
    std::vector<int32_t> part(4, static_cast<int32_t>(dpu));
    kernel.unpack(results, kernel.partOf(dpu), reinterpret_cast<const std::byte *>(part.data()),
                  reinterpret_cast<std::byte *>(host.data()));
    if (dpu == 0) {
      EXPECT_THAT(host, ElementsAre(0, 0, -1, 0, 0, -1, -1, -1, -1));
    }
  }
  EXPECT_THAT(host, ElementsAre(0, 0, 1, 0, 0, 1, 2, 2, 3));
}

} // namespace
} // namespace nearbank
