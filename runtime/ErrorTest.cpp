// SPDX-License-Identifier: Apache-2.0
#include "runtime/Error.h"

#include <gmock/gmock.h>

namespace nearbank {
namespace {

TEST(ErrorTest, TextHasTheOneShape) {
  UserError error({"NB0203", "operand does not fit", "model.py:41", "at most 64 B", "75 B for operand %w", "tile N"});
  EXPECT_STREQ(error.what(), "error[NB0203]: operand does not fit\n"
                             "  where:    model.py:41\n"
                             "  expected: at most 64 B\n"
                             "  actual:   75 B for operand %w\n"
                             "  fix:      tile N\n"
                             "  more:     nearbank explain NB0203");
  EXPECT_STREQ(error.kind(), "user");
}

TEST(ErrorTest, EmptyPartsAreLeftOut) {
  DeviceError error({"NB0501", "trap in device code", "", "", "illegal instruction", ""});
  EXPECT_STREQ(error.what(), "error[NB0501]: trap in device code\n"
                             "  actual:   illegal instruction\n"
                             "  more:     nearbank explain NB0501");
  EXPECT_STREQ(error.kind(), "device");
  EXPECT_EQ(error.report().code, "NB0501");
}

TEST(ErrorTest, InternalErrorsAreTheirOwnKind) {
  EXPECT_STREQ(InternalError({"NB0902", "t", "", "", "", ""}).kind(), "internal");
}

} // namespace
} // namespace nearbank
