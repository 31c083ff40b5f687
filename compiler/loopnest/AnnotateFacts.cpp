// SPDX-License-Identifier: Apache-2.0
#include "compiler/loopnest/NestFacts.h"
#include "compiler/loopnest/Passes.h"

using namespace mlir;

namespace nearbank::loopnest {
#define GEN_PASS_DEF_ANNOTATEFACTSPASS
#include "compiler/loopnest/Passes.h.inc"

namespace {

struct AnnotateFacts : impl::AnnotateFactsPassBase<AnnotateFacts> {
  void runOnOperation() override {
    Builder builder(&getContext());
    getOperation().walk([&](func::FuncOp kernel) {
      if (!kernel->hasAttr(kernelAttr))
        return;
      NestFacts facts = computeFacts(kernel);
      auto count = [&](StringRef name, double value) {
        return builder.getNamedAttr(name, builder.getI64IntegerAttr(static_cast<int64_t>(value)));
      };
      kernel->setAttr(factsAttr, builder.getDictionaryAttr({
                                     builder.getNamedAttr("kind", builder.getStringAttr(facts.kind)),
                                     count("iterations", facts.iterations),
                                     count("parallelExtent", facts.parallelExtent),
                                     count("floatOps", facts.operations.floatOps),
                                     count("divisions", facts.operations.divisions),
                                     count("transcendentals", facts.operations.transcendentals),
                                     count("integerOps", facts.operations.integerOps),
                                     count("loads", facts.operations.loads),
                                     count("stores", facts.operations.stores),
                                     count("bytesRead", facts.bytesRead),
                                     count("bytesWritten", facts.bytesWritten),
                                 }));
    });
  }
};

} // namespace
} // namespace nearbank::loopnest
