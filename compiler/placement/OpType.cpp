// SPDX-License-Identifier: Apache-2.0
// op-type: only linear, matrix-multiply and convolution nests go to PIM, whatever they cost.

#include "compiler/placement/Policy.h"

#include <fmt/format.h>

namespace nearbank::placement {

void placeOpType(const NestView &nest, NestDecision &decision) {
  const std::string &kind = nest.kernel.facts.kind;
  bool isListed = nest.kernel.facts.isContraction();
  decision.site = isListed ? Site::Pim : Site::Host;
  decision.reason =
      isListed ? fmt::format("op-type places nests of kind {}", kind)
               : fmt::format("op-type places contractions and convolutions only; this nest is of kind {}", kind);
  decision.flip = isListed ? "a policy that weighs cost, or --forbid" : "a policy that weighs cost, or --pin";
}

} // namespace nearbank::placement
