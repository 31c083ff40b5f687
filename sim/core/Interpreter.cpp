// SPDX-License-Identifier: Apache-2.0
// Picks the interpreter build for this host, and keeps its floating-point environment.
#include "sim/core/Interpreter.h"

#include "sim/isa/FloatConvert.h"
#include "sim/isa/HostFeatures.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace nearbank::sim {
namespace {

using Run = void (*)(Core *, const void *const **);

const Run chosenRun = runsFmaBuilds() ? withFma::run : baseline::run;

} // namespace

const void *const *interpreterHandlers() {
  static const void *const *const handlers = [] {
    const void *const *table = nullptr;
    chosenRun(nullptr, &table);
    return table;
  }();
  return handlers;
}

void interpret(Core &core) { chosenRun(&core, nullptr); }

void setHostRounding(uint32_t mode) {
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  std::fesetround(modes[mode & 3]);
}

uint32_t hostFlags() {
  int raised = std::fetestexcept(FE_ALL_EXCEPT);
  return ((raised & FE_INEXACT) != 0 ? flagInexact : 0u) | ((raised & FE_UNDERFLOW) != 0 ? flagUnderflow : 0u) |
         ((raised & FE_OVERFLOW) != 0 ? flagOverflow : 0u) | ((raised & FE_DIVBYZERO) != 0 ? flagDivideByZero : 0u) |
         ((raised & FE_INVALID) != 0 ? flagInvalid : 0u);
}

void takeHostFlags(uint32_t &flags) {
  uint32_t raised = hostFlags();
  if (raised == 0)
    return;
  flags |= raised;
#if defined(__SSE2__)
  // Guest arithmetic raises flags in MXCSR only; clearing them in the x87 unit as well would take ten times as long.
  _mm_setcsr(_mm_getcsr() & ~static_cast<unsigned>(_MM_EXCEPT_MASK));
#else
  std::feclearexcept(FE_ALL_EXCEPT);
#endif
}

GuestFloatEnvironment::GuestFloatEnvironment() {
  std::fegetenv(&saved_);
  std::fesetenv(FE_DFL_ENV);
}

GuestFloatEnvironment::~GuestFloatEnvironment() { std::fesetenv(&saved_); }

} // namespace nearbank::sim
