// SPDX-License-Identifier: Apache-2.0
// The interpreter for any host.
#define NB_INTERPRETER_BUILD baseline
#include "sim/core/InterpreterLoop.inc"
