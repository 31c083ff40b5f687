// SPDX-License-Identifier: Apache-2.0
// Vector arithmetic for hosts without FMA instructions.
#include "sim/isa/HostFeatures.h"

#define NB_VECTOR_BUILD vectorBaseline
#include "sim/isa/VectorExecute.inc"

namespace nearbank::sim {

bool executeVector(VectorState &state, uint32_t word, uint64_t scalar, uint64_t &scalarResult, uint32_t roundingMode,
                   uint32_t &flags) {
  static const bool runsFma = runsFmaBuilds();
  return (runsFma ? vectorFma::execute : vectorBaseline::execute)(state, word, scalar, scalarResult, roundingMode,
                                                                  flags);
}

} // namespace nearbank::sim
