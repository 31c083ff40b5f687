// SPDX-License-Identifier: Apache-2.0
// Rows that lie in memory, in the number type of the job.
#pragma once

#include "sgd/Rows.h"
#include "sgd/Settings.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nearbank::sgd {

/// Rows in memory. Values must lie in [-1, 1] for Q31, in [0, 1] under PIM-Opt's arithmetic.
class InMemoryRows : public RowSource {
public:
  /// Dense, row-major. `order` permutes rows and may be empty.
  /// @throws UserError NB0702 when a value is out of range.
  InMemoryRows(const Settings &settings, const double *values, std::span<const uint8_t> labels, int64_t features,
               std::span<const int64_t> order);
  /// Sparse. `values` may be null: all ones.
  InMemoryRows(const Settings &settings, std::span<const int64_t> offsets, const uint32_t *indices,
               const double *values, std::span<const uint8_t> labels, int64_t features, std::span<const int64_t> order);

  int64_t numRows() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t numFeatures() const override { return features_; }
  bool isSparse() const override { return isSparse_; }
  int64_t maxRowEntries() const override { return maxRowEntries_; }
  bool hasValues() const override { return hasValues_; }
  Rows rows(int64_t begin, int64_t end, RowBuffer &) const override;

private:
  void store(const Settings &settings, const double *values, int64_t count, int64_t firstOfRow, int64_t row);

  int64_t features_;
  bool isSparse_, hasValues_;
  int64_t maxRowEntries_ = 0;
  std::vector<uint8_t> labels_;
  std::vector<int32_t> fixed_;
  std::vector<float> floats_;
  std::vector<int64_t> offsets_;
  std::vector<uint32_t> indices_;
};

} // namespace nearbank::sgd
