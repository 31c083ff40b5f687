// SPDX-License-Identifier: Apache-2.0
// The input contract: what is read, and what is refused with which words.
#include "compiler/import/Import.h"

#include <gmock/gmock.h>

namespace nearbank::import {
namespace {

using testing::HasSubstr;

/// Imports `text` and returns the diagnostics; "ok" when it was taken.
std::string diagnosticsOf(const std::string &text) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::string diagnostics;
  return importModule(context, text, diagnostics) ? "ok" : diagnostics;
}

TEST(ImportTest, TakesTensorsOfStaticShape) {
  EXPECT_EQ(diagnosticsOf("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"), "ok");
}

TEST(ImportTest, RefusesTextThatDoesNotParse) { EXPECT_THAT(diagnosticsOf("func.func @main( { }"), HasSubstr("1:")); }

TEST(ImportTest, RefusesUnknownDialects) {
  EXPECT_THAT(
      diagnosticsOf("func.func @main(%a: tensor<4xf32>) { \"tm_tensor.scan\"(%a) : (tensor<4xf32>) -> () return }"),
      HasSubstr("unregistered dialect"));
}

TEST(ImportTest, RefusesAModuleWithoutMain) {
  EXPECT_THAT(diagnosticsOf("func.func @other() { return }"), HasSubstr("no function `main`"));
}

TEST(ImportTest, RefusesArgumentsThatAreNoStaticTensors) {
  EXPECT_THAT(diagnosticsOf("func.func @main(%a: tensor<?xf32>) { return }"),
              HasSubstr("not a tensor of static shape"));
  EXPECT_THAT(diagnosticsOf("func.func @main(%a: f32) { return }"), HasSubstr("not a tensor of static shape"));
}

TEST(ImportTest, RefusesDynamicShapesInside) {
  EXPECT_THAT(diagnosticsOf("func.func @main(%a: tensor<4xf32>) {\n"
                            "  %b = tensor.cast %a : tensor<4xf32> to tensor<?xf32>\n"
                            "  return\n}"),
              HasSubstr("specialise the model's shapes"));
}

} // namespace
} // namespace nearbank::import
