// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/PlacementRemarks.h"

#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace nearbank::driver {
namespace {

constexpr llvm::StringLiteral category = "nearbank-placement";

/// Receives remarks from the engine in place of a file.
class Collector : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Collector(std::vector<CollectedRemark> &target) : target_(target) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    CollectedRemark collected;
    switch (remark.getRemarkType()) {
    case llvm::remarks::Type::Passed:
      collected.kind = "Passed";
      break;
    case llvm::remarks::Type::Missed:
      collected.kind = "Missed";
      break;
    case llvm::remarks::Type::Failure:
      collected.kind = "Failure";
      break;
    default:
      collected.kind = "Analysis";
    }
    collected.status = remark.getRemarkName().str();
    llvm::raw_string_ostream location(collected.location);
    location << remark.getLocation();
    llvm::raw_string_ostream text(collected.text);
    remark.print(text);
    for (const remark::detail::Remark::Arg &argument : remark.getArgs()) {
      if (argument.key == "Nest")
        collected.nest = argument.val;
      collected.arguments.emplace_back(argument.key, argument.val);
    }
    target_.push_back(std::move(collected));
  }

private:
  std::vector<CollectedRemark> &target_;
};

remark::detail::InFlightRemark start(placement::Status status, Location location, remark::RemarkOpts options) {
  switch (status) {
  case placement::Status::Placed:
    return remark::passed(location, options);
  case placement::Status::KeptOnHost:
    return remark::missed(location, options);
  case placement::Status::NotCandidate:
    return remark::analysis(location, options);
  case placement::Status::Failed:
    break;
  }
  return remark::failed(location, options);
}

/// Numbers of the decision, then reason and suggestion.
void emitRemark(const NestInstance &nest, const NestKernel &kernel, const placement::NestDecision &decision,
                Location location) {
  auto options = remark::RemarkOpts::name(placement::nameOf(decision.status)).category(category).function(kernel.name);
  remark::detail::InFlightRemark remark = start(decision.status, location, options);
  remark << remark::metric("Nest", StringRef(nest.id)) << remark::metric("Operations", kernel.facts.operations.total())
         << remark::metric("BytesRead", kernel.facts.bytesRead)
         << remark::metric("BytesWritten", kernel.facts.bytesWritten)
         << remark::metric("ParallelExtent", kernel.facts.parallelExtent);
  for (const placement::EquationRecord &equation : decision.equations) {
    // Keys outlive the call: the engine reads them when the remark is sent.
    std::string key = equation.id + "Value", threshold = equation.id + "Threshold";
    remark << remark::detail::Remark::Arg(key, equation.value)
           << remark::detail::Remark::Arg(threshold, equation.threshold);
  }
  remark << remark::detail::Remark::Arg("Reason", decision.reason);
  if (!decision.suggestion.empty())
    remark << remark::detail::Remark::Arg("Suggestion", decision.suggestion);
}

} // namespace

std::vector<CollectedRemark> emitPlacementRemarks(ModuleOp module, const Program &program,
                                                  const std::vector<placement::NestDecision> &decisions) {
  std::vector<CollectedRemark> collected;
  MLIRContext *context = module.getContext();
  remark::RemarkCategories categories;
  categories.all = category.str();
  if (failed(remark::enableOptimizationRemarks(*context, std::make_unique<Collector>(collected),
                                               std::make_unique<remark::RemarkEmittingPolicyAll>(), categories)))
    return collected;
  llvm::StringMap<Location> locations;
  module.walk([&](func::CallOp call) {
    if (auto id = call->getAttrOfType<StringAttr>(loopnest::idAttr))
      locations.try_emplace(id.getValue(), call.getLoc());
  });
  for (size_t i = 0; i < program.nests.size(); ++i) {
    auto found = locations.find(program.nests[i].id);
    Location location = found == locations.end() ? UnknownLoc::get(context) : found->second;
    emitRemark(program.nests[i], program.kernels[program.nests[i].kernel], decisions[i], location);
  }
  // The engine belongs to the context and refers to the local vector.
  context->setRemarkEngine(nullptr);
  return collected;
}

} // namespace nearbank::driver
