// SPDX-License-Identifier: Apache-2.0
// Data sets that are computed row by row from a seed, of any size and never held (GEN-1, GEN-2 in docs/model.md).
#pragma once

#include "sgd/Rows.h"
#include "sgd/Settings.h"

#include <cstdint>
#include <vector>

namespace nearbank::sgd {

/// Dense rows shaped like YFCC100M-HNfc6 descriptors: features in [0, 1], two balanced classes.
class YfccLikeRows : public RowSource {
public:
  struct Shape {
    int64_t rows = 0;
    int64_t firstRow = 0; ///< Test rows of the same distribution begin where training rows end.
    int64_t features = 4096;
    double separability = 1.0; ///< Distance of the classes along their direction, in units of GEN-1.
    double flips = 0.01;       ///< Share of labels that are wrong.
    uint64_t seed = 1;
  };
  YfccLikeRows(const Settings &settings, const Shape &shape);

  int64_t numRows() const override { return shape_.rows; }
  int64_t numFeatures() const override { return shape_.features; }
  bool isSparse() const override { return false; }
  int64_t maxRowEntries() const override { return shape_.features; }
  bool hasValues() const override { return false; }
  Rows rows(int64_t begin, int64_t end, RowBuffer &buffer) const override;

private:
  const Shape shape_;
  const bool isFloat_, isPimOpt_;
  std::vector<int32_t> level_;     ///< Of each feature, Q30.
  std::vector<int32_t> direction_; ///< Of the classes, Q30.
};

/// Sparse rows shaped like Criteo's: one of its own values for each of 39 fields, 3.42 % positive.
class CriteoLikeRows : public RowSource {
public:
  struct Shape {
    int64_t rows = 0;
    int64_t firstRow = 0;
    int64_t features = 1000000;
    double positiveShare = 0.0342;
    double signal = 1.0; ///< Standard deviation of a value's true weight.
    uint64_t seed = 1;
  };
  static constexpr int kFields = 39;

  explicit CriteoLikeRows(const Shape &shape);

  int64_t numRows() const override { return shape_.rows; }
  int64_t numFeatures() const override { return shape_.features; }
  bool isSparse() const override { return true; }
  int64_t maxRowEntries() const override { return kFields; }
  bool hasValues() const override { return false; }
  Rows rows(int64_t begin, int64_t end, RowBuffer &buffer) const override;

private:
  /// Indices of a row and its true score without bias.
  float fill(int64_t row, uint32_t *indices) const;

  const Shape shape_;
  float bias_ = 0;
  std::vector<float> trueWeights_;
};

} // namespace nearbank::sgd
