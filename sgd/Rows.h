// SPDX-License-Identifier: Apache-2.0
// Training rows as the solvers see them, and where they come from.
#pragma once

#include <cstdint>
#include <vector>

namespace nearbank::sgd {

/// Consecutive rows. Dense: `dense`, or its float twin, holds count x features values. Sparse: row r has the entries
/// offsets[r] to offsets[r + 1] of `indices`, whose values are one unless `values` (or its float twin) is set.
struct Rows {
  int64_t count = 0;
  int64_t features = 0;
  const uint8_t *labels = nullptr; ///< 0 or 1.
  const int32_t *dense = nullptr;  ///< Q31; unsigned (2^31 is one) under Settings::isPimOpt.
  const float *denseFloat = nullptr;
  const int64_t *offsets = nullptr;
  const uint32_t *indices = nullptr;
  const int32_t *values = nullptr; ///< Q31.
  const float *valuesFloat = nullptr;

  bool isSparse() const { return offsets != nullptr; }
};

/// Owns what a generated or decoded block of rows points to. One per thread.
struct RowBuffer {
  std::vector<uint8_t> labels;
  std::vector<int32_t> dense;
  std::vector<float> floats;
  std::vector<int64_t> offsets;
  std::vector<uint32_t> indices;
};

/// A data set that gives any range of its rows, on several threads at a time.
class RowSource {
public:
  virtual ~RowSource() = default;
  virtual int64_t numRows() const = 0;
  virtual int64_t numFeatures() const = 0;
  virtual bool isSparse() const = 0;
  /// Most entries of one row; numFeatures() when dense.
  virtual int64_t maxRowEntries() const = 0;
  /// Whether entries carry values other than one.
  virtual bool hasValues() const = 0;
  /// Rows [begin, end); they may point into `buffer`, which must outlive them.
  virtual Rows rows(int64_t begin, int64_t end, RowBuffer &buffer) const = 0;
};

} // namespace nearbank::sgd
