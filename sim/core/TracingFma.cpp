// SPDX-License-Identifier: Apache-2.0
// For hosts with FMA, AVX2 and BMI2; the build file gives it the flags.
#define NB_INTERPRETER_BUILD tracingFma
#include "sim/core/InterpreterTracing.inc"
