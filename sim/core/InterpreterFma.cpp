// SPDX-License-Identifier: Apache-2.0
// The interpreter for hosts with FMA, AVX2 and BMI2; the build file gives it the flags.
#define NB_INTERPRETER_BUILD withFma
#include "sim/core/InterpreterLoop.inc"
