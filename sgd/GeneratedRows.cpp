// SPDX-License-Identifier: Apache-2.0
// Rows from counters: each number is a hash of seed, row and feature.
#include "sgd/GeneratedRows.h"

#include <algorithm>
#include <cmath>

namespace nearbank::sgd {

namespace {

/// splitmix64's finaliser.
uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A 32-bit finaliser (constants of Wellons' hash prospector, lowbias32).
uint32_t mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

/// Uniform in [0, 1).
double uniform(uint64_t bits) { return std::ldexp(double(bits >> 11), -53); }

/// Roughly normal: the sum of four uniform numbers, with variance one.
double normal(uint64_t bits) {
  double sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += double((bits >> (16 * i)) & 0xffff) / 65536.0;
  return (sum - 2.0) * std::sqrt(3.0);
}

/// Features of one row in Q31. Noise is the sum of two uniform numbers, of 16 bits each.
__attribute__((target_clones("avx2", "default"))) void
fillRow(int32_t *out, const int32_t *level, const int32_t *direction, int64_t n, uint32_t key, int32_t offset) {
  for (int64_t j = 0; j < n; ++j) {
    uint32_t hash = mix32(key + uint32_t(j) * 0x9e3779b9u);
    int32_t noise = int32_t(hash & 0xffff) + int32_t(hash >> 16) - 65536; // [-2^16, 2^16)
    // Q15 times Q15 offset gives Q30.
    int32_t value = level[j] + (direction[j] >> 15) * offset + noise * (1 << 11);
    value = value < 0 ? 0 : value;
    value = value > 0x3fffffff ? 0x3fffffff : value;
    out[j] = value << 1;
  }
}

} // namespace

YfccLikeRows::YfccLikeRows(const Settings &settings, const Shape &shape)
    : shape_(shape), isFloat_(settings.arithmetic == Arithmetic::Float32), isPimOpt_(settings.isPimOpt) {
  for (int64_t j = 0; j < shape.features; ++j) {
    uint64_t bits = mix64(shape.seed * 0x2545f4914f6cdd1du + uint64_t(j));
    // Descriptors behind a rectifier: levels are low, most features tell little about the class.
    double level = 0.08 * uniform(mix64(bits));
    double direction = 0.01 * normal(mix64(bits + 1));
    level_.push_back(static_cast<int32_t>(std::ldexp(level, 30)));
    direction_.push_back(static_cast<int32_t>(std::ldexp(direction, 30)));
  }
}

Rows YfccLikeRows::rows(int64_t begin, int64_t end, RowBuffer &buffer) const {
  int64_t count = end - begin, n = shape_.features;
  buffer.labels.resize(count);
  buffer.dense.resize(count * n);
  for (int64_t r = 0; r < count; ++r) {
    uint64_t bits = mix64(shape_.seed ^ mix64(uint64_t(shape_.firstRow + begin + r)));
    bool isOne = bits & 1;
    // Where the row lies along the class direction: its class's side, with a spread of its own.
    double along = (isOne ? 0.5 : -0.5) * shape_.separability + 0.25 * normal(mix64(bits + 2));
    bool isFlipped = uniform(mix64(bits + 3)) < shape_.flips;
    buffer.labels[r] = isOne != isFlipped;
    fillRow(buffer.dense.data() + r * n, level_.data(), direction_.data(), n, static_cast<uint32_t>(bits >> 32),
            static_cast<int32_t>(std::lround(along * 32768.0)));
  }
  Rows rows;
  rows.count = count;
  rows.features = n;
  rows.labels = buffer.labels.data();
  rows.dense = buffer.dense.data();
  if (isFloat_) {
    buffer.floats.resize(count * n);
    for (int64_t k = 0; k < count * n; ++k)
      buffer.floats[k] = static_cast<float>(buffer.dense[k]) * 0x1p-31f;
    rows.dense = nullptr;
    rows.denseFloat = buffer.floats.data();
  }
  return rows;
}

CriteoLikeRows::CriteoLikeRows(const Shape &shape) : shape_(shape), trueWeights_(shape.features) {
  for (int64_t j = 0; j < shape.features; ++j)
    trueWeights_[j] = static_cast<float>(shape.signal * normal(mix64(shape.seed * 0x9e3779b97f4a7c15u + uint64_t(j))));
  // The bias that makes the share of positives right, by bisection over a fixed sample.
  std::vector<float> scores;
  std::vector<uint32_t> indices(kFields);
  for (int64_t r = 0; r < 20000; ++r)
    scores.push_back(fill(-1 - r, indices.data()));
  double low = -50, high = 50;
  for (int step = 0; step < 60; ++step) {
    double middle = 0.5 * (low + high), mean = 0;
    for (float score : scores)
      mean += 1.0 / (1.0 + std::exp(-(score + middle)));
    (mean / double(scores.size()) < shape.positiveShare ? low : high) = middle;
  }
  bias_ = static_cast<float>(low);
}

float CriteoLikeRows::fill(int64_t row, uint32_t *indices) const {
  uint64_t key = mix64(shape_.seed ^ mix64(uint64_t(row)));
  float score = 0;
  int64_t perField = std::max<int64_t>(1, shape_.features / kFields);
  for (int field = 0; field < kFields; ++field) {
    uint64_t bits = mix64(key + uint64_t(field));
    // Popular values are frequent: the cube of a uniform number, spread over the field's own range.
    float u = static_cast<float>(bits >> 40) * 0x1p-24f;
    int64_t value = static_cast<int64_t>(u * u * u * static_cast<float>(perField));
    uint32_t index = static_cast<uint32_t>(std::min(field * perField + value, shape_.features - 1));
    indices[field] = index;
    score += trueWeights_[index];
  }
  return score * 0.16f; // About 1 / sqrt(39).
}

Rows CriteoLikeRows::rows(int64_t begin, int64_t end, RowBuffer &buffer) const {
  int64_t count = end - begin;
  buffer.labels.resize(count);
  buffer.indices.resize(count * kFields);
  buffer.offsets.resize(count + 1);
  for (int64_t r = 0; r < count; ++r) {
    int64_t row = shape_.firstRow + begin + r;
    buffer.offsets[r] = r * kFields;
    float score = fill(row, buffer.indices.data() + r * kFields) + bias_;
    double draw = uniform(mix64(shape_.seed + 0x5851f42d4c957f2du + mix64(uint64_t(row) * 3 + 1)));
    buffer.labels[r] = draw < 1.0 / (1.0 + std::exp(-double(score)));
  }
  buffer.offsets[count] = count * kFields;
  Rows rows;
  rows.count = count;
  rows.features = shape_.features;
  rows.labels = buffer.labels.data();
  rows.offsets = buffer.offsets.data();
  rows.indices = buffer.indices.data();
  return rows;
}

} // namespace nearbank::sgd
