// SPDX-License-Identifier: Apache-2.0
// Vector arithmetic for hosts without FMA instructions.
#define NB_VECTOR_BUILD vectorBaseline
#include "sim/isa/VectorExecute.inc"

namespace nearbank::sim {

bool executeVector(VectorState &state, uint32_t word, uint64_t scalar, uint64_t &scalarResult, uint32_t roundingMode,
                   uint32_t &flags) {
#if defined(__x86_64__)
  static const bool hasFma = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
  if (hasFma)
    return vectorFma::execute(state, word, scalar, scalarResult, roundingMode, flags);
#endif
  return vectorBaseline::execute(state, word, scalar, scalarResult, roundingMode, flags);
}

} // namespace nearbank::sim
