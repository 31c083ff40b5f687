// SPDX-License-Identifier: Apache-2.0
// How nests are shared out among DPUs, and what is refused; tests/python/test_upmem_torch.py runs what is emitted.
#include "compiler/codegen/upmem/EmitUpmemC.h"
#include "compiler/import/Import.h"

#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>

namespace nearbank::codegen {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Emitted {
  std::unique_ptr<DpuKernel> kernel;
  std::string reason;
};

Emitted emit(const std::string &text, unsigned dpus) {
  mlir::DialectRegistry registry;
  import::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  Emitted result;
  if (!module) {
    result.reason = "the test's text does not parse";
    return result;
  }
  dpu::DpuConfig config = dpu::readDpuConfig(NEARBANK_DPU_MACHINE, dpus);
  result.kernel = emitUpmemC(*module->getOps<mlir::func::FuncOp>().begin(), config, result.reason);
  return result;
}

std::string product(const std::string &rows, const std::string &depth, const std::string &columns) {
  std::string a = "memref<" + rows + "x" + depth + "xi32>", b = "memref<" + depth + "x" + columns + "xi32>",
              c = "memref<" + rows + "x" + columns + "xi32>";
  return R"(func.func private @product(%a: )" + a + ", %b: " + b + ", %c: " + c + R"() {
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                     affine_map<(m, n, k) -> (m, n)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : )" +
         a + ", " + b + ") outs(%c : " + c + R"() {
    ^bb0(%x: i32, %y: i32, %sum: i32):
      %p = arith.muli %x, %y : i32
      %s = arith.addi %sum, %p : i32
      linalg.yield %s : i32
    }
    return
  })";
}

std::string elementwise(const std::string &type, const std::string &operation, const std::string &resultMap,
                        const std::string &resultShape) {
  std::string in = "memref<6x10x" + type + ">", out = "memref<" + resultShape + "x" + type + ">";
  return "func.func private @each(%a: " + in + ", %c: " + out + R"() {
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> )" +
         resultMap + R"(>], iterator_types = ["parallel", "parallel"]}
        ins(%a : )" +
         in + ") outs(%c : " + out + ") {\n    ^bb0(%x: " + type + ", %old: " + type + "):\n      %r = " + operation +
         " %x : " + type + "\n      linalg.yield %r : " + type + "\n    }\n    return\n  }";
}

TEST(EmitUpmemCTest, AProductIsCutByRowsAndColumnsAndItsSecondOperandLiesByColumns) {
  auto [kernel, reason] = emit(product("32", "48", "64"), 16);
  ASSERT_TRUE(kernel) << reason;
  EXPECT_EQ(kernel->dpus(), 16);
  ASSERT_EQ(kernel->operands.size(), 3u);
  const DpuKernel::Operand &b = kernel->operands[1], &c = kernel->operands[2];
  EXPECT_EQ(b.dimensions.back().stride, 64) << "along the sum";
  EXPECT_EQ(b.dimensions.back().length, 48) << "sums are not cut";
  EXPECT_TRUE(c.isRead && c.isWritten);
  uint64_t end = 0;
  for (const DpuKernel::Operand &operand : kernel->operands) {
    EXPECT_EQ(operand.mramOffset, end);
    EXPECT_EQ(operand.bytes % 8, 0u);
    end += operand.bytes;
  }
  EXPECT_EQ(kernel->mramBytes, end);
  EXPECT_THAT(kernel->source, HasSubstr("// product on one of 16 DPUs."));
  EXPECT_THAT(kernel->source, HasSubstr("mram_write("));
}

TEST(EmitUpmemCTest, NoMoreDpusThanResults) {
  auto [kernel, reason] = emit(product("2", "48", "3"), 64);
  ASSERT_TRUE(kernel) << reason;
  EXPECT_LE(kernel->dpus(), 6);
}

TEST(EmitUpmemCTest, TaskletsShareSumsWhereThereAreFewResults) {
  auto [kernel, reason] = emit(product("1", "4096", "8"), 4);
  ASSERT_TRUE(kernel) << reason;
  EXPECT_EQ(kernel->items, 16);
  EXPECT_EQ(kernel->depth % kernel->depthBlock, 0) << "all pieces have as much to do";
  EXPECT_THAT(kernel->source, HasSubstr("barrier_wait(&sums_are_made);"));
  EXPECT_THAT(emit(product("32", "48", "64"), 16).kernel->source, Not(HasSubstr("barrier")));
}

TEST(EmitUpmemCTest, RefusesWhatMramCannotHoldAndSaysHowManyDpusWould) {
  auto [kernel, reason] = emit(product("1", "8192", "8192"), 1);
  EXPECT_FALSE(kernel);
  EXPECT_THAT(reason, HasSubstr("its operands take 256."));
  EXPECT_THAT(reason, HasSubstr("of each DPU's 64 MB on 1 DPUs; about 8 DPUs would hold them"));
  EXPECT_TRUE(emit(product("1", "8192", "8192"), 8).kernel);
}

TEST(EmitUpmemCTest, RefusesTypesAndOperationsWithoutC) {
  EXPECT_THAT(emit(elementwise("f16", "arith.negf", "(i, j)", "6x10"), 4).reason, HasSubstr("type f16"));
  EXPECT_THAT(emit(elementwise("f64", "math.sqrt", "(i, j)", "6x10"), 4).reason,
              HasSubstr("no C for math.sqrt on f64"));
  EXPECT_TRUE(emit(elementwise("f32", "math.exp", "(i, j)", "6x10"), 4).kernel);
}

TEST(EmitUpmemCTest, RefusesResultsWithGaps) {
  EXPECT_THAT(emit(elementwise("f32", "arith.negf", "(i, j * 2)", "6x19"), 4).reason,
              HasSubstr("results with gaps between them"));
}

} // namespace
} // namespace nearbank::codegen
