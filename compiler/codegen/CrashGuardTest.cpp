// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/CrashGuard.h"

#include "llvm/Support/ErrorHandling.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <stdexcept>

namespace nearbank::codegen {
namespace {

TEST(CrashGuardTest, FinishedWorkIsReported) {
  std::string reason;
  bool isRun = false;
  EXPECT_TRUE(survivesCrash([&] { isRun = true; }, reason));
  EXPECT_TRUE(isRun);
  EXPECT_EQ(reason, "");
}

TEST(CrashGuardTest, FatalErrorsOfLlvmAreCaughtWithTheirReason) {
  std::string reason;
  EXPECT_FALSE(survivesCrash([] { llvm::report_fatal_error("cannot select", /*gen_crash_diag=*/false); }, reason));
  EXPECT_THAT(reason, testing::HasSubstr("cannot select"));
}

TEST(CrashGuardTest, AbortsAreCaught) {
  std::string reason;
  EXPECT_FALSE(survivesCrash([] { std::abort(); }, reason));
  EXPECT_TRUE(survivesCrash([] {}, reason)) << "the guard works again afterwards";
}

TEST(CrashGuardTest, ExceptionsPassThrough) {
  std::string reason;
  EXPECT_THROW(survivesCrash([] { throw std::runtime_error("mine"); }, reason), std::runtime_error);
}

} // namespace
} // namespace nearbank::codegen
