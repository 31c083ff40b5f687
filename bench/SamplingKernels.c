// SPDX-License-Identifier: Apache-2.0
// Loop nests of the sampling study, as kernels for near-memory cores; bench/sampling_kernels.py compiles them.
// Signature: operand table, first task, end, status words. Operands: a and b are read, o is written, x are indices, n
// are the sizes. status[2] limits the trips of the outermost reduction loop when it is not zero.
typedef unsigned u32;
typedef struct {
  const float *a, *b;
  float *o;
  const u32 *x;
  const long *n;
} Operands;

#define KERNEL(name)                                                                                                   \
  __attribute__((section(".text." #name))) void name(const Operands *p, long begin, long end, const long *status)
#define TASKS for (long t = begin; t < end; ++t)
#define OPERANDS                                                                                                       \
  const float *restrict a = p->a, *restrict b = p->b;                                                                  \
  float *restrict o = p->o;                                                                                            \
  const u32 *restrict x = p->x;                                                                                        \
  const long n = p->n[0], m = p->n[1];                                                                                 \
  (void)a, (void)b, (void)o, (void)x, (void)n, (void)m, (void)status

// exp by squaring a Taylor polynomial: branch-free arithmetic.
static inline __attribute__((always_inline)) float power(float v) {
  float y = v * 0.0625f, e = 1 + y * (1 + y * (0.5f + y * 0.16666667f));
  e *= e, e *= e, e *= e;
  return e * e;
}

KERNEL(addRows) { // o = a + b, n elements a task
  OPERANDS;
  TASKS for (long i = t * n; i < t * n + n; ++i) o[i] = a[i] + b[i];
}
KERNEL(scaleRows) { // o = a * row + column
  OPERANDS;
  TASKS for (long i = 0; i < n; ++i) o[t * n + i] = a[t * n + i] * b[i] + b[t % n];
}
KERNEL(geluRows) {
  OPERANDS;
  TASKS for (long i = t * n; i < t * n + n; ++i) o[i] = a[i] / (1 + power(-1.702f * a[i]));
}
KERNEL(sumRows) {
  OPERANDS;
  TASKS {
    float s = 0;
    for (long i = 0; i < n; ++i) s += a[t * n + i];
    o[t] = s;
  }
}
KERNEL(sumColumns) { // column t of m rows of n
  OPERANDS;
  TASKS {
    float s = 0;
    for (long i = 0; i < m; ++i) s += a[i * n + t];
    o[t] = s;
  }
}
KERNEL(softmaxRows) {
  OPERANDS;
  TASKS {
    const float *r = a + t * n;
    float top = r[0], s = 0;
    for (long i = 1; i < n; ++i) top = r[i] > top ? r[i] : top;
    for (long i = 0; i < n; ++i) s += o[t * n + i] = power(r[i] - top);
    for (long i = 0; i < n; ++i) o[t * n + i] /= s;
  }
}
KERNEL(normRows) {
  OPERANDS;
  TASKS {
    const float *r = a + t * n;
    float s = 0, q = 0;
    for (long i = 0; i < n; ++i) s += r[i], q += r[i] * r[i];
    s /= n, q = 1 / (q / n - s * s + 1e-5f);
    for (long i = 0; i < n; ++i) o[t * n + i] = (r[i] - s) * q * b[i];
  }
}
KERNEL(gemvRows) {
  OPERANDS;
  TASKS {
    float s = 0;
    for (long i = 0; i < n; ++i) s += a[t * n + i] * b[i];
    o[t] = s;
  }
}
KERNEL(gemmRows) { // row t of o[T][n] = a[T][m] * b[m][n], four columns at a time
  OPERANDS;
  TASKS for (long j = 0; j < n; j += 4) {
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (long k = 0; k < m; ++k) {
      float v = a[t * m + k];
      const float *c = b + k * n + j;
      s0 += v * c[0], s1 += v * c[1], s2 += v * c[2], s3 += v * c[3];
    }
    float *d = o + t * n + j;
    d[0] = s0, d[1] = s1, d[2] = s2, d[3] = s3;
  }
}
KERNEL(gemmBlocks) { // 16 rows and n columns a task; blocks of 16 of the m reduced elements; status[2] limits these
  OPERANDS;
  long blocks = m / 16;
  if (status[2] != 0 && status[2] < blocks)
    blocks = status[2];
  TASKS for (long q = 0; q < blocks; ++q)
    for (long i = 0; i < 16; ++i)
      for (long j = 0; j < n; j += 4) {
        float *d = o + (t * 16 + i) * n + j;
        float s0 = d[0], s1 = d[1], s2 = d[2], s3 = d[3];
        for (long k = q * 16; k < q * 16 + 16; ++k) {
          float v = a[(t * 16 + i) * m + k];
          const float *c = b + k * n + j;
          s0 += v * c[0], s1 += v * c[1], s2 += v * c[2], s3 += v * c[3];
        }
        d[0] = s0, d[1] = s1, d[2] = s2, d[3] = s3;
      }
}
KERNEL(batchedGemm) { // one n x n product a task
  OPERANDS;
  TASKS {
    const float *l = a + t * n * n, *r = b + t * n * n;
    float *d = o + t * n * n;
    for (long i = 0; i < n; ++i)
      for (long j = 0; j < n; ++j) {
        float s = 0;
        for (long k = 0; k < n; ++k) s += l[i * n + k] * r[k * n + j];
        d[i * n + j] = s;
      }
  }
}
KERNEL(transposeRows) { // o[t][i] = a[i][t], m rows
  OPERANDS;
  TASKS for (long i = 0; i < m; ++i) o[t * m + i] = a[i * n + t];
}
KERNEL(convRows) { // 3 x 3 on rows of n
  OPERANDS;
  TASKS for (long i = 0; i < n - 2; ++i) {
    float s = 0;
    for (long y = 0; y < 3; ++y)
      for (long z = 0; z < 3; ++z) s += a[(t + y) * n + i + z] * b[y * 3 + z];
    o[t * n + i] = s;
  }
}
KERNEL(poolRows) {
  OPERANDS;
  TASKS for (long i = 0; i < n / 2; ++i) {
    const float *r = a + 2 * t * n + 2 * i;
    float u = r[0] > r[1] ? r[0] : r[1], v = r[n] > r[n + 1] ? r[n] : r[n + 1];
    o[t * (n / 2) + i] = u > v ? u : v;
  }
}
KERNEL(scanRows) {
  OPERANDS;
  TASKS {
    float s = 0;
    for (long i = 0; i < n; ++i) o[t * n + i] = s += a[t * n + i];
  }
}
KERNEL(gatherRows) { // embedding: row x[t] of n
  OPERANDS;
  TASKS for (long i = 0; i < n; ++i) o[t * n + i] = a[x[t] * n + i];
}
KERNEL(gatherElements) { // n elements a task
  OPERANDS;
  TASKS for (long i = t * n; i < t * n + n; ++i) o[i] = a[x[i]];
}
KERNEL(scatterElements) {
  OPERANDS;
  TASKS for (long i = t * n; i < t * n + n; ++i) o[x[i]] = a[i];
}
KERNEL(scatterRows) {
  OPERANDS;
  TASKS for (long i = 0; i < n; ++i) o[x[t] * n + i] = a[t * n + i];
}
KERNEL(causalScores) { // row t of a causal q k^T, keys of m
  OPERANDS;
  TASKS for (long j = 0; j <= t; ++j) {
    float s = 0;
    for (long k = 0; k < m; ++k) s += a[t * m + k] * b[j * m + k];
    o[t * n + j] = s;
  }
}
KERNEL(causalSoftmax) {
  OPERANDS;
  TASKS {
    float s = 0;
    for (long i = 0; i <= t; ++i) s += o[t * n + i] = power(a[t * n + i]);
    for (long i = 0; i <= t; ++i) o[t * n + i] /= s;
  }
}
KERNEL(windowScores) { // causal with a window of n keys of m
  OPERANDS;
  TASKS for (long j = t < n ? 0 : t - n + 1; j <= t; ++j) {
    float s = 0;
    for (long k = 0; k < m; ++k) s += a[t * m + k] * b[j * m + k];
    o[t * n + j % n] = s;
  }
}
KERNEL(raggedSums) { // segments x[t] .. x[t + 1]
  OPERANDS;
  TASKS {
    float s = 0;
    for (long i = x[t]; i < x[t + 1]; ++i) s += a[i] * b[i];
    o[t] = s;
  }
}
KERNEL(sparseRows) { // CSR: offsets x[0 .. n], columns behind them
  OPERANDS;
  TASKS {
    float s = 0;
    for (long i = x[t]; i < x[t + 1]; ++i) s += a[i] * b[x[n + 1 + i]];
    o[t] = s;
  }
}
KERNEL(searchRows) { // first element of n above a limit
  OPERANDS;
  TASKS {
    long i = 0;
    while (i < n - 1 && a[t * n + i] < 0.995f) ++i;
    o[t] = i;
  }
}
