// SPDX-License-Identifier: Apache-2.0
#define NB_INTERPRETER_BUILD tracingBaseline
#include "sim/core/InterpreterTracing.inc"
