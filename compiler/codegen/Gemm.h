// SPDX-License-Identifier: Apache-2.0
// C entry points that compiled host kernels call for matrix products.
#pragma once

#include <cstdint>

extern "C" {
/// C[m,n] = (accumulates ? C : 0) + A[m,k] B[k,n] through BLAS, on the calling thread.
/// Strides in elements; one of A's and one of B's two strides is 1, C is contiguous along n.
void nearbankGemmF32(const float *lhs, const float *rhs, float *out, int64_t m, int64_t n, int64_t k,
                     int64_t lhsStrideM, int64_t lhsStrideK, int64_t rhsStrideK, int64_t rhsStrideN, int64_t outStrideM,
                     int64_t accumulates);
void nearbankGemmF64(const double *lhs, const double *rhs, double *out, int64_t m, int64_t n, int64_t k,
                     int64_t lhsStrideM, int64_t lhsStrideK, int64_t rhsStrideK, int64_t rhsStrideN, int64_t outStrideM,
                     int64_t accumulates);
}
