// SPDX-License-Identifier: Apache-2.0
// Loss, accuracy and area under the ROC curve of a model in real numbers.
#pragma once

#include "sgd/Rows.h"
#include "sgd/Settings.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nearbank::sgd {

struct Evaluation {
  int64_t rows = 0;
  double loss = 0;     ///< Mean of the data term: log loss or hinge loss.
  double accuracy = 0; ///< Share of right labels.
  double auc = 0;      ///< Area under the ROC curve; 0.5 when only one class is there.
};

/// Evaluates `model` (coefficients, then the intercept) in float64, on the job's threads. The same figures for any
/// number of threads.
Evaluation evaluate(const Settings &settings, const RowSource &source, std::span<const double> model, bool withAuc);

/// Area under the ROC curve; ties count half.
double areaUnderCurve(std::vector<float> &positives, std::vector<float> &negatives);

} // namespace nearbank::sgd
