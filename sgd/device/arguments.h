/* SPDX-License-Identifier: Apache-2.0 */
/* What the host tells a DPU before each launch. Offsets are bytes from the start of the MRAM heap, multiples of 8. */
#ifndef NEARBANK_SGD_ARGUMENTS_H
#define NEARBANK_SGD_ARGUMENTS_H

#include <stdint.h>

#define SGD_NO_TERM 63
#define SGD_ABSENT 0xffffffffu /* Index that fills up rows with fewer entries. */

#ifndef SGD_ARGUMENTS
#define SGD_ARGUMENTS sgd_arguments
#endif

struct SgdArguments {
  uint32_t features;
  uint32_t numRows;   /* Of this DPU. */
  uint32_t firstStep; /* Steps already done in this epoch. */
  uint32_t numSteps;  /* Of this launch. */
  uint32_t batch;
  uint32_t batchLog2;
  uint32_t rowEntries; /* Sparse rows: entries with padding, an even number. */
  uint32_t shift;      /* Learning rate and weight exponent; under PIM-Opt the learning rate. */
  uint32_t decayShift; /* Rate and L2 or rho; SGD_NO_TERM for none. */
  uint32_t weightExponent;
  int32_t classWeights[2]; /* In 1/256. */
  uint32_t hasPull;        /* ADMM: u - z is added before weights decay. */
  uint32_t isGradientOnly; /* GA-SGD: leaves the gradient, takes no step. */
  float stepRate, decayRate;
  float floatClassWeights[2];
  uint32_t rowsAt, labelsAt, modelAt, pullAt, gradientAt, biasAt, tableAt;
  uint32_t block; /* Features of a block, an even number of at most 64. */
};

#endif
