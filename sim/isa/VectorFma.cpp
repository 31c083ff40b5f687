// SPDX-License-Identifier: Apache-2.0
// Vector arithmetic for hosts with FMA instructions.
#define NB_VECTOR_BUILD vectorFma
#include "sim/isa/VectorExecute.inc"
