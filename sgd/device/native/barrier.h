/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers of tasklets that are threads. */
#ifndef NEARBANK_SGD_NATIVE_BARRIER_H
#define NEARBANK_SGD_NATIVE_BARRIER_H

typedef struct {
  int unused;
} barrier_t;

#define BARRIER_INIT(name, count) static barrier_t name

void barrier_wait(barrier_t *barrier);

#endif
