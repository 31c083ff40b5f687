// SPDX-License-Identifier: Apache-2.0
// What the processor that simulates offers.
#pragma once

namespace nearbank::sim {

/// Whether it runs the builds made for FMA, AVX2 and BMI2.
inline bool runsFmaBuilds() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

} // namespace nearbank::sim
