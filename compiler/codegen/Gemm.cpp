// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/Gemm.h"

#include <algorithm>
#include <cblas.h>
#include <mutex>

namespace {

/// Kernels split their work over threads themselves, so BLAS must not.
void useOneBlasThread() {
  static std::once_flag once;
  std::call_once(once, [] { openblas_set_num_threads(1); });
}

/// Leading dimension for BLAS, which wants at least the row length even for a single row.
blasint leading(int64_t stride, int64_t length) { return static_cast<blasint>(std::max<int64_t>({stride, length, 1})); }

void gemm(CBLAS_TRANSPOSE lhs, CBLAS_TRANSPOSE rhs, int64_t m, int64_t n, int64_t k, const float *a, blasint lda,
          const float *b, blasint ldb, float beta, float *c, blasint ldc) {
  cblas_sgemm(CblasRowMajor, lhs, rhs, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}
void gemm(CBLAS_TRANSPOSE lhs, CBLAS_TRANSPOSE rhs, int64_t m, int64_t n, int64_t k, const double *a, blasint lda,
          const double *b, blasint ldb, double beta, double *c, blasint ldc) {
  cblas_dgemm(CblasRowMajor, lhs, rhs, m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
}
void gemv(CBLAS_TRANSPOSE transpose, int64_t rows, int64_t columns, const float *a, blasint lda, const float *x,
          blasint stride, float beta, float *y) {
  cblas_sgemv(CblasRowMajor, transpose, rows, columns, 1.0f, a, lda, x, stride, beta, y, 1);
}
void gemv(CBLAS_TRANSPOSE transpose, int64_t rows, int64_t columns, const double *a, blasint lda, const double *x,
          blasint stride, double beta, double *y) {
  cblas_dgemv(CblasRowMajor, transpose, rows, columns, 1.0, a, lda, x, stride, beta, y, 1);
}

template <typename T>
void multiply(const T *lhs, const T *rhs, T *out, int64_t m, int64_t n, int64_t k, int64_t lhsStrideM,
              int64_t lhsStrideK, int64_t rhsStrideK, int64_t rhsStrideN, int64_t outStrideM, int64_t accumulates) {
  if (m <= 0 || n <= 0)
    return;
  useOneBlasThread();
  T beta = accumulates ? T(1) : T(0);
  bool isRhsTransposed = rhsStrideK == 1 && (rhsStrideN != 1 || n == 1);
  if (m == 1) {
    // y[n] = B^T x: B is k x n in memory, or n x k when transposed.
    if (isRhsTransposed)
      gemv(CblasNoTrans, n, k, rhs, leading(rhsStrideN, k), lhs, lhsStrideK, beta, out);
    else
      gemv(CblasTrans, k, n, rhs, leading(rhsStrideK, n), lhs, lhsStrideK, beta, out);
    return;
  }
  bool isLhsTransposed = lhsStrideK != 1;
  gemm(isLhsTransposed ? CblasTrans : CblasNoTrans, isRhsTransposed ? CblasTrans : CblasNoTrans, m, n, k, lhs,
       isLhsTransposed ? leading(lhsStrideK, m) : leading(lhsStrideM, k), rhs,
       isRhsTransposed ? leading(rhsStrideN, k) : leading(rhsStrideK, n), beta, out, leading(outStrideM, n));
}

} // namespace

void nearbankGemmF32(const float *lhs, const float *rhs, float *out, int64_t m, int64_t n, int64_t k,
                     int64_t lhsStrideM, int64_t lhsStrideK, int64_t rhsStrideK, int64_t rhsStrideN, int64_t outStrideM,
                     int64_t accumulates) {
  multiply(lhs, rhs, out, m, n, k, lhsStrideM, lhsStrideK, rhsStrideK, rhsStrideN, outStrideM, accumulates);
}

void nearbankGemmF64(const double *lhs, const double *rhs, double *out, int64_t m, int64_t n, int64_t k,
                     int64_t lhsStrideM, int64_t lhsStrideK, int64_t rhsStrideK, int64_t rhsStrideN, int64_t outStrideM,
                     int64_t accumulates) {
  multiply(lhs, rhs, out, m, n, k, lhsStrideM, lhsStrideK, rhsStrideK, rhsStrideN, outStrideM, accumulates);
}
