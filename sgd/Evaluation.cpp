// SPDX-License-Identifier: Apache-2.0
// Evaluates in blocks of rows; blocks are summed in their order.
#include "sgd/Evaluation.h"

#include "runtime/HostThreads.h"

#include <algorithm>
#include <cmath>

namespace nearbank::sgd {

namespace {

constexpr int64_t kBlockRows = 4096;

struct Block {
  double loss = 0;
  int64_t right = 0;
  std::vector<float> positives, negatives; ///< Scores.
};

double score(const Rows &rows, int64_t row, std::span<const double> model, const Settings &settings) {
  double sum = model[rows.features];
  if (rows.isSparse()) {
    for (int64_t k = rows.offsets[row]; k < rows.offsets[row + 1]; ++k) {
      double value = rows.values ? std::ldexp(double(rows.values[k]), -31)
                                 : (rows.valuesFloat ? double(rows.valuesFloat[k]) : 1.0);
      sum += value * model[rows.indices[k]];
    }
    return sum;
  }
  if (rows.denseFloat) {
    const float *x = rows.denseFloat + row * rows.features;
    for (int64_t j = 0; j < rows.features; ++j)
      sum += double(x[j]) * model[j];
    return sum;
  }
  const int32_t *x = rows.dense + row * rows.features;
  double dot = 0;
  if (settings.isPimOpt)
    for (int64_t j = 0; j < rows.features; ++j)
      dot += double(uint32_t(x[j])) * model[j];
  else
    for (int64_t j = 0; j < rows.features; ++j)
      dot += double(x[j]) * model[j];
  return sum + dot * 0x1p-31;
}

void evaluateBlock(const Settings &settings, const Rows &rows, std::span<const double> model, bool withAuc,
                   Block &block) {
  for (int64_t row = 0; row < rows.count; ++row) {
    double z = score(rows, row, model, settings);
    bool isPositive = rows.labels[row] == 1;
    double signedScore = isPositive ? z : -z;
    if (settings.loss == Loss::Hinge)
      block.loss += std::max(0.0, 1.0 - signedScore);
    else
      block.loss +=
          signedScore > 0 ? std::log1p(std::exp(-signedScore)) : -signedScore + std::log1p(std::exp(signedScore));
    block.right += (z > 0) == isPositive;
    if (withAuc)
      (isPositive ? block.positives : block.negatives).push_back(static_cast<float>(z));
  }
}

} // namespace

double areaUnderCurve(std::vector<float> &positives, std::vector<float> &negatives) {
  if (positives.empty() || negatives.empty())
    return 0.5;
  std::sort(positives.begin(), positives.end());
  std::sort(negatives.begin(), negatives.end());
  double pairs = 0;
  size_t below = 0, upTo = 0;
  for (float value : positives) {
    while (below < negatives.size() && negatives[below] < value)
      ++below;
    upTo = std::max(upTo, below);
    while (upTo < negatives.size() && negatives[upTo] <= value)
      ++upTo;
    pairs += double(below) + 0.5 * double(upTo - below);
  }
  return pairs / (double(positives.size()) * double(negatives.size()));
}

Evaluation evaluate(const Settings &settings, const RowSource &source, std::span<const double> model, bool withAuc) {
  Evaluation result;
  result.rows = source.numRows();
  int64_t numBlocks = (result.rows + kBlockRows - 1) / kBlockRows;
  std::vector<Block> blocks(numBlocks);
  int threads = settings.numThreads > 0 ? settings.numThreads : availableCores();
  HostThreads::shared().run(numBlocks, threads, [&](int64_t index) {
    // Dense generated blocks are large: take them in pieces.
    RowBuffer buffer;
    int64_t end = std::min(result.rows, (index + 1) * kBlockRows);
    for (int64_t begin = index * kBlockRows; begin < end; begin += 256)
      evaluateBlock(settings, source.rows(begin, std::min(end, begin + 256), buffer), model, withAuc, blocks[index]);
  });
  int64_t right = 0;
  std::vector<float> positives, negatives;
  for (Block &block : blocks) {
    result.loss += block.loss;
    right += block.right;
    positives.insert(positives.end(), block.positives.begin(), block.positives.end());
    negatives.insert(negatives.end(), block.negatives.begin(), block.negatives.end());
  }
  result.loss /= double(std::max<int64_t>(1, result.rows));
  result.accuracy = double(right) / double(std::max<int64_t>(1, result.rows));
  if (withAuc)
    result.auc = areaUnderCurve(positives, negatives);
  return result;
}

} // namespace nearbank::sgd
