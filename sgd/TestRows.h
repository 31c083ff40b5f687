// SPDX-License-Identifier: Apache-2.0
// Small data sets for tests: separable with noise, from a seed.
#pragma once

#include "sgd/InMemoryRows.h"
#include "sgd/Settings.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace nearbank::sgd {

/// Dense rows in [-1, 1], or [0, 1] under PIM-Opt's arithmetic.
struct DenseSample {
  std::vector<double> values;
  std::vector<uint8_t> labels;
  int64_t features;

  DenseSample(bool isPimOpt, int64_t rows, int64_t width, uint32_t seed = 7) : features(width) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(isPimOpt ? 0.0 : -1.0, 1.0);
    std::vector<double> direction(width);
    for (double &value : direction)
      value = uniform(random) - (isPimOpt ? 0.5 : 0.0);
    for (int64_t r = 0; r < rows; ++r) {
      double score = 0;
      for (int64_t j = 0; j < width; ++j) {
        // Some values at the very end of the range.
        double value = random() % 50 == 0 ? 1.0 : uniform(random);
        values.push_back(value);
        score += direction[j] * (value - (isPimOpt ? 0.5 : 0.0));
      }
      labels.push_back(score + 0.1 * uniform(random) > 0);
    }
  }

  std::shared_ptr<InMemoryRows> rows(const Settings &settings) const {
    return std::make_shared<InMemoryRows>(settings, values.data(), labels, features, std::span<const int64_t>());
  }
};

/// Sparse rows; ones only, or values in [-1, 1].
struct SparseSample {
  std::vector<int64_t> offsets = {0};
  std::vector<uint32_t> indices;
  std::vector<double> values;
  std::vector<uint8_t> labels;
  int64_t features;

  SparseSample(bool hasValues, int64_t rows, int64_t width, int64_t entries, uint32_t seed = 7) : features(width) {
    std::mt19937 random(seed);
    std::vector<double> weights(width);
    for (double &weight : weights)
      weight = double(random()) / 4294967296.0 - 0.5;
    for (int64_t r = 0; r < rows; ++r) {
      double score = 0;
      for (int64_t k = 0; k < entries - int64_t(random() % 2); ++k) {
        uint32_t j = static_cast<uint32_t>((k * width + random() % width) / entries);
        double value = hasValues ? double(random()) / 2147483648.0 - 1.0 : 1.0;
        indices.push_back(j);
        if (hasValues)
          values.push_back(value);
        score += weights[j] * value;
      }
      offsets.push_back(static_cast<int64_t>(indices.size()));
      labels.push_back(score > 0);
    }
  }

  std::shared_ptr<InMemoryRows> rows(const Settings &settings) const {
    return std::make_shared<InMemoryRows>(settings, offsets, indices.data(), values.empty() ? nullptr : values.data(),
                                          labels, features, std::span<const int64_t>());
  }
};

} // namespace nearbank::sgd
