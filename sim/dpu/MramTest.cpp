// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/Mram.h"

#include <gmock/gmock.h>
#include <numeric>

using namespace nearbank::dpu;
using testing::Each;
using testing::Eq;

namespace {

std::vector<uint8_t> readBytes(const Mram &mram, uint32_t address, size_t size) {
  std::vector<uint8_t> bytes(size, 0xee);
  mram.read(address, bytes.data(), size);
  return bytes;
}

TEST(MramTest, UntouchedMemoryIsZeroAndCostsNothing) {
  Mram mram;
  EXPECT_THAT(readBytes(mram, Mram::Bytes - 64, 64), Each(0));
  EXPECT_EQ(mram.numPages(), 0u);
}

TEST(MramTest, WritesAcrossPagesComeBack) {
  Mram mram;
  std::vector<uint8_t> bytes(3 * Mram::PageBytes);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  mram.write(Mram::PageBytes - 8, bytes.data(), bytes.size());
  EXPECT_EQ(readBytes(mram, Mram::PageBytes - 8, bytes.size()), bytes);
  EXPECT_EQ(mram.numPages(), 4u);
}

TEST(MramTest, SharedPagesPartWhenOneOwnerWrites) {
  Mram first, second;
  uint64_t value = 42, other = 7;
  first.write(0, &value, 8);
  second.share(0, first.page(0));
  EXPECT_EQ(first.page(0)->numOwners, 2u);
  second.write(8, &other, 8);
  EXPECT_EQ(first.page(0)->numOwners, 1u);
  EXPECT_THAT(readBytes(first, 8, 8), Each(0));
  EXPECT_EQ(readBytes(second, 0, 8), readBytes(first, 0, 8));
  EXPECT_EQ(readBytes(second, 8, 1), std::vector<uint8_t>{7});
}

TEST(MramTest, ASharedPageOutlivesItsFirstOwner) {
  Mram second;
  uint64_t value = 42;
  {
    Mram first;
    first.write(0, &value, 8);
    second.share(0, first.page(0));
  }
  EXPECT_EQ(readBytes(second, 0, 1), std::vector<uint8_t>{42});
}

} // namespace
