/* SPDX-License-Identifier: Apache-2.0 */
/* Mini-batch SGD on one DPU for GA-SGD, MA-SGD and ADMM. Tasklets share the features of each row in blocks (dense
 * rows), or the entries by their index (sparse rows), and the model in blocks. Variants: SGD_HINGE, SGD_SPARSE (1:
 * ones, 2: with values), SGD_F32, SGD_PIMOPT. */
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

#include "arguments.h"
#include "numbers.h"

#define MAX_BLOCK 64 /* Features of a block; dense float32 rows always have so many, as sums follow blocks. */
#define CACHED_BLOCKS (NR_TASKLETS > 16 ? 2 : 4)
#define MAX_ENTRIES 256 /* Of a sparse row. */
#define MAX_BLOCKS 1024 /* Of a dense float32 row: 65,536 features. */

__host struct SgdArguments SGD_ARGUMENTS;

BARRIER_INIT(everybody, NR_TASKLETS);

/* Shared by all tasklets. */
static sum_t partial_sums[NR_TASKLETS];
#if !(SGD_PIMOPT && SGD_HINGE && !SGD_SPARSE)
static sum_t coefficient;
#endif
static uint32_t is_active, is_positive;
static uint32_t block_size, stride;  /* Features of a block, and of one of each tasklet. */
static uint32_t firsts[NR_TASKLETS]; /* Where each tasklet's first block begins. */
static sum_t bias, bias_gradient;
static __dma_aligned uint32_t label_pair[2];
#if SGD_SPARSE
/* Two rows: tasklet 0 reads the next one while others still add this one. */
static __dma_aligned uint32_t index_rows[2][MAX_ENTRIES];
#if SGD_SPARSE == 2
static __dma_aligned value_t value_rows[2][MAX_ENTRIES];
#endif
static uint8_t owners[32];
#endif
#if SGD_F32 && SGD_SPARSE
static float products[MAX_ENTRIES];
#elif SGD_F32
static float block_sums[MAX_BLOCKS];
#endif
#if !SGD_HINGE && !SGD_PIMOPT
static __dma_aligned value_t sigmoid_table[SIGMOID_ENTRIES];
#endif

/* Of one tasklet each. */
static __dma_aligned value_t w_cache[NR_TASKLETS][MAX_BLOCK];
static __dma_aligned gradient_t g_cache[NR_TASKLETS][MAX_BLOCK];
#if SGD_SPARSE
static __dma_aligned value_t p_cache[NR_TASKLETS][MAX_BLOCK];
#else
static __dma_aligned value_t x_cache[NR_TASKLETS][CACHED_BLOCKS][MAX_BLOCK];
#endif

static __mram_ptr uint8_t *heap_at(uint32_t offset) { return (__mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER + offset; }

static uint32_t even(uint32_t count) { return (count + 1) & ~1u; }

/* Elements of a vector of the model: sparse ones hold the bias at the end. */
static uint32_t vector_length(void) { return even(SGD_ARGUMENTS.features + (SGD_SPARSE ? 1 : 0)); }

static uint32_t block_length(uint32_t first, uint32_t length) {
  uint32_t rest = length - first;
  return rest < block_size ? rest : block_size;
}

#if SGD_PIMOPT && !SGD_HINGE
/* exp from a table of 2^20 floats over [0, 1), after range extension by powers of two. */
static float exponential(float x) {
  uint32_t bits = bits_of(x * 1.44269504089f);
  int32_t exponent = (int32_t)((bits >> 23) & 255) - 127;
  uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
  uint32_t magnitude = exponent < 0 ? mantissa >> (-exponent & 31) : mantissa << (exponent & 31);
  int32_t fixed = (int32_t)(bits >> 31 ? 0u - magnitude : magnitude);
  int32_t power = fixed >> 23;
  float fraction = scaled_float((float)(fixed - (power << 23)), -23) * 0.69314718056f;
  uint32_t index = (uint32_t)((int32_t)scaled_float(fraction, 21) + 1) >> 1;
  __dma_aligned float pair[2];
  mram_read(heap_at(SGD_ARGUMENTS.tableAt + (index & ~1u) * 4), pair, 8);
  return scaled_float(pair[index & 1], power);
}
#endif

/* Decides what the row contributes; tasklet 0 only. */
static void settle_row(sum_t dot, uint32_t row) {
  mram_read(heap_at(SGD_ARGUMENTS.labelsAt + (row & ~1u) * 4), label_pair, 8);
  is_positive = label_pair[row & 1] == 1;
  is_active = 1;
#if SGD_F32
#if SGD_HINGE
  is_active = !((is_positive ? dot : -dot) >= 1.0f);
  coefficient = is_positive ? -1.0f : 1.0f;
#else
  coefficient = sigmoid_f32(sigmoid_table, dot) - (is_positive ? 1.0f : 0.0f);
#endif
  coefficient = coefficient * SGD_ARGUMENTS.floatClassWeights[is_positive];
  if (is_active)
    bias_gradient = bias_gradient + coefficient;
#elif SGD_PIMOPT
  int64_t step;
#if SGD_HINGE
  is_active = (is_positive ? dot : -dot) < 0x10000;
  step = ONE >> SGD_ARGUMENTS.shift;
#else
  float exponent = -((float)dot / 2147483648.0f);
  coefficient = (int64_t)(2147483648.0 / (1.0 + exponential(exponent))) - (is_positive ? ONE : 0);
  step = coefficient >> SGD_ARGUMENTS.shift;
#endif
  if (step == -1) {
#if SGD_SPARSE
    is_active = 0;
#else
    step = 0;
#endif
  }
#if SGD_SPARSE
  int64_t weighted = is_positive ? (step << 4) - step : step >> 1;
  if (weighted != -1)
    step = weighted;
#endif
  if (SGD_HINGE && is_positive)
    step = -step;
#if SGD_SPARSE
  coefficient = step;
#endif
  if (is_active)
    bias_gradient += step;
#else
  int64_t z = dot << SGD_ARGUMENTS.weightExponent;
  int64_t weight = SGD_ARGUMENTS.classWeights[is_positive];
#if SGD_HINGE
  is_active = (is_positive ? z : -z) < ONE;
  coefficient = weight << 23;
#else
  coefficient = ((sigmoid_q31(sigmoid_table, z) - (is_positive ? ONE : 0)) * weight) >> 8;
#endif
  int64_t step = shift_away(coefficient, SGD_ARGUMENTS.shift);
  if (SGD_HINGE && is_positive)
    step = -step;
  if (is_active)
    bias_gradient += step;
#endif
}

#if !SGD_SPARSE
/* How a feature's share of the gradient is computed in the default fixed point. */
enum share_kind {
  SHARE_OF_HIGH_WORD, /* (x c) >> 32 >> (shift - 1): the low half of the product is not needed. */
  SHARE_OF_PRODUCT,   /* A shift of zero. */
  SHARE_WITHOUT       /* Hinge loss with a weight of one: x >> shift. */
};

/* Adds one feature's share to its gradient. Save under PIM-Opt the coefficient fits 32 bits. */
static inline gradient_t with_share(gradient_t gradient, value_t x, enum share_kind kind) {
  (void)kind;
#if SGD_F32
  return gradient + x * coefficient;
#elif SGD_PIMOPT && SGD_HINGE
  int32_t step = x >> SGD_ARGUMENTS.shift;
  if (step == -1)
    return gradient;
  return (gradient_t)(is_positive ? (uint32_t)gradient - (uint32_t)step : (uint32_t)gradient + (uint32_t)step);
#elif SGD_PIMOPT
  int32_t step = (int32_t)(((int64_t)(uint32_t)x * coefficient) >> (31 + SGD_ARGUMENTS.shift));
  return step == -1 ? gradient : (gradient_t)((uint32_t)gradient + (uint32_t)step);
#else
  int32_t step;
  if (kind == SHARE_WITHOUT)
    step = x >> SGD_ARGUMENTS.shift;
  else if (kind == SHARE_OF_PRODUCT)
    step = (int32_t)(((int64_t)x * (int32_t)coefficient) >> 31);
  else
    step = (int32_t)(((int64_t)x * (int32_t)coefficient) >> 32) >> (SGD_ARGUMENTS.shift - 1);
  if (step == -1)
    step = 0;
  return SGD_HINGE && is_positive ? gradient - step : gradient + step;
#endif
}

/* Adds the shares of `count` features. */
static inline void add_shares(gradient_t *g, const value_t *x, uint32_t count, enum share_kind kind) {
  for (uint32_t j = 0; j < count; ++j)
    g[j] = with_share(g[j], x[j], kind);
}
#endif

#if SGD_SPARSE

static sum_t row_dot(uint32_t tasklet, uint32_t row) {
  uint32_t entries = SGD_ARGUMENTS.rowEntries;
  const uint32_t *row_indices = index_rows[row & 1];
#if SGD_SPARSE == 2
  const value_t *row_values = value_rows[row & 1];
#endif
  if (tasklet == 0) {
    uint32_t at = SGD_ARGUMENTS.rowsAt + row * entries * 4 * SGD_SPARSE;
    mram_read(heap_at(at), index_rows[row & 1], entries * 4);
#if SGD_SPARSE == 2
    mram_read(heap_at(at + entries * 4), value_rows[row & 1], entries * 4);
#endif
  }
  barrier_wait(&everybody);
  sum_t sum = 0;
  for (uint32_t k = 0; k < entries; ++k) {
    uint32_t index = row_indices[k];
    if (index == SGD_ABSENT || owners[index & 31] != tasklet)
      continue;
    mram_read(heap_at(SGD_ARGUMENTS.modelAt + (index & ~1u) * 4), w_cache[tasklet], 8);
    value_t weight = w_cache[tasklet][index & 1];
#if SGD_F32
#if SGD_SPARSE == 2
    weight = row_values[k] * weight;
#endif
    products[k] = weight;
#elif SGD_SPARSE == 2
    sum += ((int64_t)row_values[k] * weight) >> 31;
#else
    sum += weight;
#endif
  }
  return sum;
}

static void add_row(uint32_t tasklet, uint32_t row) {
  const uint32_t *row_indices = index_rows[row & 1];
#if SGD_SPARSE == 2
  const value_t *row_values = value_rows[row & 1];
#endif
  for (uint32_t k = 0; k < SGD_ARGUMENTS.rowEntries; ++k) {
    uint32_t index = row_indices[k];
    if (index == SGD_ABSENT || owners[index & 31] != tasklet)
      continue;
#if SGD_F32 /* Gradients of 4 B come in pairs; both of a pair have one owner. */
    __mram_ptr uint8_t *at = heap_at(SGD_ARGUMENTS.gradientAt + (index & ~1u) * 4);
    mram_read(at, g_cache[tasklet], 8);
#if SGD_SPARSE == 2
    g_cache[tasklet][index & 1] += row_values[k] * coefficient;
#else
    g_cache[tasklet][index & 1] += coefficient;
#endif
#else
    __mram_ptr uint8_t *at = heap_at(SGD_ARGUMENTS.gradientAt + index * 8);
    mram_read(at, g_cache[tasklet], 8);
#if SGD_PIMOPT
    if (g_cache[tasklet][0] == -1)
      continue;
    g_cache[tasklet][0] += coefficient;
#elif SGD_SPARSE == 2
    int64_t step = shift_away((int64_t)row_values[k] * coefficient, 31 + SGD_ARGUMENTS.shift);
    g_cache[tasklet][0] += SGD_HINGE && is_positive ? -step : step;
#else
    int64_t step = shift_away(coefficient, SGD_ARGUMENTS.shift);
    g_cache[tasklet][0] += SGD_HINGE && is_positive ? -step : step;
#endif
#endif
    mram_write(g_cache[tasklet], at, 8);
  }
}

#else

/* Reads a tasklet's block number `slot` of the row, into the cache where it has a place there. */
static value_t *read_x(uint32_t tasklet, uint32_t at, uint32_t slot, uint32_t length, uint32_t is_again) {
  value_t *cache = x_cache[tasklet][slot < CACHED_BLOCKS ? slot : CACHED_BLOCKS - 1];
  uint32_t is_kept = slot + 1 < CACHED_BLOCKS || vector_length() <= CACHED_BLOCKS * stride;
  if (!is_again || !is_kept)
    mram_read(heap_at(SGD_ARGUMENTS.rowsAt + at * 4), cache, length * 4);
  return cache;
}

static sum_t row_dot(uint32_t tasklet, uint32_t row) {
  uint32_t length = vector_length(), row_at = row * length;
  sum_t sum = 0;
  for (uint32_t first = firsts[tasklet], slot = 0; first < length; first += stride, ++slot) {
    uint32_t count = block_length(first, length);
    value_t *x = read_x(tasklet, row_at + first, slot, count, 0);
    value_t *w = w_cache[tasklet];
    mram_read(heap_at(SGD_ARGUMENTS.modelAt + first * 4), w, count * 4);
#if SGD_F32
    float lanes[8] = {0};
    for (uint32_t j = 0; j < count; ++j)
      lanes[j & 7] = lanes[j & 7] + x[j] * w[j];
    block_sums[first / MAX_BLOCK] =
        ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
#elif SGD_PIMOPT
    for (uint32_t j = 0; j < count; ++j)
      sum += ((int64_t)(uint32_t)x[j] * w[j]) >> 31;
#else
    for (uint32_t j = 0; j < count; ++j)
      sum += ((int64_t)x[j] * w[j]) >> 31;
#endif
  }
  return sum;
}

static void add_row(uint32_t tasklet, uint32_t row) {
  uint32_t length = vector_length(), row_at = row * length;
  gradient_t *g = g_cache[tasklet];
  for (uint32_t first = firsts[tasklet], slot = 0; first < length; first += stride, ++slot) {
    uint32_t count = block_length(first, length);
    value_t *x = read_x(tasklet, row_at + first, slot, count, 1);
    __mram_ptr uint8_t *at = heap_at(SGD_ARGUMENTS.gradientAt + first * sizeof(gradient_t));
    mram_read(at, g, count * sizeof(gradient_t));
    /* A loop each: in one the compiler would multiply in any case, which is cheap elsewhere. */
    if (SGD_HINGE && !SGD_F32 && SGD_ARGUMENTS.classWeights[is_positive] == 256)
      add_shares(g, x, count, SHARE_WITHOUT);
    else if (SGD_F32 || SGD_PIMOPT || SGD_ARGUMENTS.shift != 0)
      add_shares(g, x, count, SHARE_OF_HIGH_WORD);
    else
      add_shares(g, x, count, SHARE_OF_PRODUCT);
    mram_write(g, at, count * sizeof(gradient_t));
  }
}

#endif

/* Sum of the tasklets' parts and the bias; tasklet 0 only. */
static sum_t whole_dot(uint32_t row) {
#if SGD_F32
  float sum = 0;
#if SGD_SPARSE
  const uint32_t *row_indices = index_rows[row & 1];
  for (uint32_t k = 0; k < SGD_ARGUMENTS.rowEntries; ++k)
    if (row_indices[k] != SGD_ABSENT)
      sum = sum + products[k];
#else
  for (uint32_t block = 0; block * MAX_BLOCK < vector_length(); ++block)
    sum = sum + block_sums[block];
#endif
  (void)row;
  return sum + bias;
#else
  (void)row;
  int64_t sum = bias;
  for (uint32_t t = 0; t < NR_TASKLETS; ++t)
    sum += partial_sums[t];
  return sum;
#endif
}

static void clear_gradient(uint32_t tasklet) {
  uint32_t length = vector_length();
  gradient_t *g = g_cache[tasklet];
  for (uint32_t j = 0; j < block_size; ++j)
    g[j] = 0;
  for (uint32_t first = firsts[tasklet]; first < length; first += stride)
    mram_write(g, heap_at(SGD_ARGUMENTS.gradientAt + first * sizeof(gradient_t)),
               block_length(first, length) * sizeof(gradient_t));
}

static inline value_t stepped(value_t weight, gradient_t gradient, value_t pull) {
#if SGD_F32
  float pulled = SGD_ARGUMENTS.hasPull ? weight + pull : weight;
  return weight - (gradient * SGD_ARGUMENTS.stepRate + pulled * SGD_ARGUMENTS.decayRate);
#else
  int64_t pulled = (int64_t)weight + pull;
  int64_t update = shift_away(gradient, SGD_ARGUMENTS.batchLog2) + shift_away(pulled, SGD_ARGUMENTS.decayShift);
  return (value_t)saturated(weight - update);
#endif
}

static void update_model(uint32_t tasklet) {
  uint32_t length = vector_length();
#if SGD_SPARSE
  value_t *p = p_cache[tasklet];
#else
  value_t *p = x_cache[tasklet][0]; /* No row is being added. */
#endif
  value_t *w = w_cache[tasklet];
  gradient_t *g = g_cache[tasklet];
  for (uint32_t j = 0; j < block_size; ++j)
    p[j] = 0;
  for (uint32_t first = firsts[tasklet]; first < length; first += stride) {
    uint32_t count = block_length(first, length);
    __mram_ptr uint8_t *at = heap_at(SGD_ARGUMENTS.modelAt + first * 4);
    mram_read(at, w, count * 4);
    mram_read(heap_at(SGD_ARGUMENTS.gradientAt + first * sizeof(gradient_t)), g, count * sizeof(gradient_t));
    if (SGD_ARGUMENTS.hasPull)
      mram_read(heap_at(SGD_ARGUMENTS.pullAt + first * 4), p, count * 4);
    for (uint32_t j = 0; j < count; ++j)
      if (first + j < SGD_ARGUMENTS.features)
        w[j] = stepped(w[j], g[j], p[j]);
    mram_write(w, at, count * 4);
  }
}

static void update_bias(void) {
#if SGD_F32
  bias = bias - bias_gradient * SGD_ARGUMENTS.stepRate;
#else
  bias = saturated(bias - shift_away(bias_gradient, SGD_ARGUMENTS.batchLog2));
#if SGD_PIMOPT && SGD_SPARSE
  bias = (int32_t)bias;
#endif
#endif
}

/* Dense jobs keep the bias in 8 B of its own, sparse ones behind the last weight; the same for its gradient. */
static void move_bias(uint32_t is_load) {
#if SGD_SPARSE
  __dma_aligned value_t pair[2];
  uint32_t n = SGD_ARGUMENTS.features;
  __mram_ptr uint8_t *at = heap_at(SGD_ARGUMENTS.modelAt + (n & ~1u) * 4);
  mram_read(at, pair, 8);
  if (is_load) {
    bias = pair[n & 1];
    return;
  }
  if (!SGD_ARGUMENTS.isGradientOnly) {
    pair[n & 1] = (value_t)bias;
    mram_write(pair, at, 8);
    return;
  }
#if SGD_F32
  at = heap_at(SGD_ARGUMENTS.gradientAt + (n & ~1u) * 4);
  mram_read(at, pair, 8);
  pair[n & 1] = bias_gradient;
  mram_write(pair, at, 8);
#else
  __dma_aligned int64_t whole = bias_gradient;
  mram_write(&whole, heap_at(SGD_ARGUMENTS.gradientAt + n * 8), 8);
#endif
#else
  __dma_aligned sum_t whole[8 / sizeof(sum_t)];
  __mram_ptr uint8_t *at = heap_at(SGD_ARGUMENTS.biasAt);
  if (is_load) {
    mram_read(at, whole, 8);
    bias = whole[0];
    return;
  }
  whole[8 / sizeof(sum_t) - 1] = 0;
  whole[0] = SGD_ARGUMENTS.isGradientOnly ? bias_gradient : bias;
  mram_write(whole, at, 8);
#endif
}

static void prepare(void) {
  block_size = SGD_ARGUMENTS.block;
  stride = 0;
  for (uint32_t t = 0; t < NR_TASKLETS; ++t) {
    firsts[t] = stride;
    stride += block_size;
  }
#if SGD_SPARSE
  for (uint32_t i = 0; i < 32; ++i)
    owners[i] = (uint8_t)((SGD_F32 ? i >> 1 : i) % NR_TASKLETS);
#endif
#if !SGD_HINGE && !SGD_PIMOPT
  for (uint32_t at = 0; at < SIGMOID_ENTRIES; at += 256) {
    uint32_t count = SIGMOID_ENTRIES - at < 256 ? SIGMOID_ENTRIES - at : 256;
    mram_read(heap_at(SGD_ARGUMENTS.tableAt + at * 4), sigmoid_table + at, count * 4);
  }
#endif
  move_bias(1);
}

int main(void) {
  uint32_t tasklet = me();
  if (tasklet == 0)
    prepare();
  barrier_wait(&everybody);
  uint32_t last_step = SGD_ARGUMENTS.firstStep + SGD_ARGUMENTS.numSteps;
  for (uint32_t step = SGD_ARGUMENTS.firstStep; step < last_step; ++step) {
    uint32_t row = step * SGD_ARGUMENTS.batch, end = row + SGD_ARGUMENTS.batch;
    if (end > SGD_ARGUMENTS.numRows)
      end = SGD_ARGUMENTS.numRows;
    clear_gradient(tasklet);
    if (tasklet == 0)
      bias_gradient = 0;
    barrier_wait(&everybody);
    for (; row < end; ++row) {
      partial_sums[tasklet] = row_dot(tasklet, row);
      barrier_wait(&everybody);
      if (tasklet == 0)
        settle_row(whole_dot(row), row);
      barrier_wait(&everybody);
      if (is_active)
        add_row(tasklet, row);
    }
    barrier_wait(&everybody);
    if (!SGD_ARGUMENTS.isGradientOnly) {
      update_model(tasklet);
      if (tasklet == 0)
        update_bias();
    }
    barrier_wait(&everybody);
  }
  if (tasklet == 0)
    move_bias(0);
  return 0;
}
