// SPDX-License-Identifier: Apache-2.0
// Converts rows to the number type of the job.
#include "sgd/InMemoryRows.h"

#include "runtime/Error.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace nearbank::sgd {

void InMemoryRows::store(const Settings &settings, const double *values, int64_t count, int64_t firstOfRow,
                         int64_t row) {
  if (settings.arithmetic == Arithmetic::Float32) {
    std::transform(values, values + count, floats_.begin() + firstOfRow,
                   [](double value) { return static_cast<float>(value); });
    return;
  }
  double lowest = settings.isPimOpt ? 0.0 : -1.0;
  for (int64_t k = 0; k < count; ++k) {
    double value = values[k];
    if (!(value >= lowest && value <= 1.0))
      throw UserError({"NB0702", "feature beyond the fixed-point range", fmt::format("row {}", row),
                       fmt::format("values from {} to 1", lowest), fmt::format("{}", value),
                       "scale the features (scale=\"minmax\", --scale minmax), or use arithmetic=\"f32\""});
    // PIM-Opt truncates, and its unsigned type holds 2^31.
    int64_t fixed = settings.isPimOpt
                        ? static_cast<int64_t>(std::ldexp(value, 31))
                        : std::clamp<int64_t>(std::llround(std::ldexp(value, 31)), -2147483647, 2147483647);
    fixed_[firstOfRow + k] = static_cast<int32_t>(static_cast<uint32_t>(fixed));
  }
}

InMemoryRows::InMemoryRows(const Settings &settings, const double *values, std::span<const uint8_t> labels,
                           int64_t features, std::span<const int64_t> order)
    : features_(features), isSparse_(false), hasValues_(false), maxRowEntries_(features),
      labels_(labels.begin(), labels.end()) {
  int64_t count = numRows();
  if (settings.arithmetic == Arithmetic::Q31)
    fixed_.resize(count * features);
  else
    floats_.resize(count * features);
  for (int64_t row = 0; row < count; ++row) {
    int64_t from = order.empty() ? row : order[row];
    labels_[row] = labels[from];
    store(settings, values + from * features, features, row * features, from);
  }
}

InMemoryRows::InMemoryRows(const Settings &settings, std::span<const int64_t> offsets, const uint32_t *indices,
                           const double *values, std::span<const uint8_t> labels, int64_t features,
                           std::span<const int64_t> order)
    : features_(features), isSparse_(true), hasValues_(values != nullptr), labels_(labels.begin(), labels.end()),
      offsets_{0} {
  int64_t count = numRows();
  if (hasValues_ && settings.arithmetic == Arithmetic::Q31)
    fixed_.resize(offsets.back());
  else if (hasValues_)
    floats_.resize(offsets.back());
  indices_.reserve(offsets.back());
  for (int64_t row = 0; row < count; ++row) {
    int64_t from = order.empty() ? row : order[row];
    labels_[row] = labels[from];
    int64_t entries = offsets[from + 1] - offsets[from];
    if (hasValues_)
      store(settings, values + offsets[from], entries, offsets_.back(), from);
    indices_.insert(indices_.end(), indices + offsets[from], indices + offsets[from + 1]);
    offsets_.push_back(offsets_.back() + entries);
    maxRowEntries_ = std::max(maxRowEntries_, entries);
  }
}

Rows InMemoryRows::rows(int64_t begin, int64_t end, RowBuffer &) const {
  Rows rows;
  rows.count = end - begin;
  rows.features = features_;
  rows.labels = labels_.data() + begin;
  if (!isSparse_) {
    rows.dense = fixed_.empty() ? nullptr : fixed_.data() + begin * features_;
    rows.denseFloat = floats_.empty() ? nullptr : floats_.data() + begin * features_;
  } else {
    rows.offsets = offsets_.data() + begin;
    rows.indices = indices_.data();
    rows.values = fixed_.empty() ? nullptr : fixed_.data();
    rows.valuesFloat = floats_.empty() ? nullptr : floats_.data();
  }
  return rows;
}

} // namespace nearbank::sgd
