// SPDX-License-Identifier: Apache-2.0
#include "runtime/Program.h"

#include <gmock/gmock.h>

namespace nearbank {
namespace {

struct ElementCase {
  ElementType type;
  const char *name;
  uint64_t bytes;
};

TEST(ProgramTest, EveryElementTypeHasNameAndSize) {
  for (ElementCase element : {ElementCase{ElementType::F64, "f64", 8},
                              {ElementType::F32, "f32", 4},
                              {ElementType::F16, "f16", 2},
                              {ElementType::BF16, "bf16", 2},
                              {ElementType::I64, "i64", 8},
                              {ElementType::I32, "i32", 4},
                              {ElementType::I16, "i16", 2},
                              {ElementType::I8, "i8", 1},
                              {ElementType::I1, "i1", 1}}) {
    EXPECT_STREQ(nameOf(element.type), element.name);
    EXPECT_EQ(bytesOf(element.type), element.bytes) << element.name;
  }
}

} // namespace
} // namespace nearbank
