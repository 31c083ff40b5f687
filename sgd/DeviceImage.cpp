// SPDX-License-Identifier: Apache-2.0
// Lays out and fills a DPU's memory.
#include "sgd/DeviceImage.h"

#include "runtime/Error.h"
#include "sgd/Sigmoid.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

namespace nearbank::sgd {

namespace {

constexpr int64_t kMaxEntries = 256;         // MAX_ENTRIES of train.c.
constexpr int64_t kMaxFloatFeatures = 65536; // MAX_BLOCKS of 64.
static_assert(sizeof(SgdArguments) % 8 == 0, "transfers go in units of 8 B");

uint32_t roundUp(int64_t value) { return static_cast<uint32_t>((value + 7) / 8 * 8); }

[[noreturn]] void refuse(const std::string &expected, const std::string &actual) {
  throw UserError({"NB0709", "the training kernel cannot take this job", "", expected, actual,
                   "compute with the twin: --simulate twin"});
}

} // namespace

std::string kernelVariant(const Settings &settings, bool isSparse, bool hasValues) {
  return fmt::format("{}-{}-{}", settings.loss == Loss::Hinge ? "svm" : "lr",
                     !isSparse   ? "dense"
                     : hasValues ? "values"
                                 : "onehot",
                     settings.arithmetic == Arithmetic::Float32 ? "f32"
                     : settings.isPimOpt                        ? "pimopt"
                                                                : "q31");
}

template <class T> T DeviceImage::get(uint32_t at) const {
  T value;
  std::memcpy(&value, heap_.data() + at, sizeof value);
  return value;
}

template <class T> void DeviceImage::put(uint32_t at, T value) { std::memcpy(heap_.data() + at, &value, sizeof value); }

DeviceImage::DeviceImage(const Settings &settings, int64_t features, bool isSparse, bool hasValues,
                         int64_t maxRowEntries, int64_t numRows)
    : settings_(settings), isSparse_(isSparse), hasValues_(hasValues),
      sizes_(settings, features, isSparse, maxRowEntries, hasValues) {
  if (isSparse && maxRowEntries > kMaxEntries)
    refuse(fmt::format("sparse rows of at most {} entries", kMaxEntries), fmt::format("{}", maxRowEntries));
  if (!isSparse && settings.arithmetic == Arithmetic::Float32 && features > kMaxFloatFeatures)
    refuse(fmt::format("float32 rows of at most {} features", kMaxFloatFeatures), fmt::format("{}", features));
  SgdArguments &a = arguments_;
  a.features = static_cast<uint32_t>(features);
  a.numRows = static_cast<uint32_t>(numRows);
  a.batch = static_cast<uint32_t>(settings.batch);
  a.batchLog2 = static_cast<uint32_t>(std::bit_width(uint64_t(settings.batch)) - 1);
  a.rowEntries = isSparse ? static_cast<uint32_t>(sizes_.rowBytes / (hasValues ? 8 : 4)) : 0;
  bool isFloat = settings.arithmetic == Arithmetic::Float32;
  a.shift = isFloat ? 0
                    : static_cast<uint32_t>(settings.isPimOpt
                                                ? settings.rateShift
                                                : settings.rateShift + settings.weightExponent - settings.classShift);
  a.decayShift = settings.l2Shift == kNoTerm || isFloat ? SGD_NO_TERM
                                                        : static_cast<uint32_t>(settings.rateShift + settings.l2Shift);
  a.weightExponent = static_cast<uint32_t>(settings.weightExponent);
  a.isGradientOnly = settings.algorithm == Algorithm::GaSgd;
  a.hasPull = settings.algorithm == Algorithm::Admm;
  a.stepRate = settings.rate / static_cast<float>(settings.batch);
  a.decayRate = settings.rate * settings.l2;
  for (int c : {0, 1}) {
    a.classWeights[c] = settings.classWeights[c];
    a.floatClassWeights[c] = settings.floatClassWeights[c];
  }
  uint32_t at = 0;
  auto reserve = [&](int64_t bytes) {
    uint32_t begin = at;
    at += roundUp(bytes);
    return begin;
  };
  a.rowsAt = reserve(numRows * sizes_.rowBytes);
  a.labelsAt = reserve(numRows * 4);
  a.modelAt = reserve(sizes_.modelBytes);
  a.pullAt = reserve(a.hasPull ? sizes_.modelBytes : 0);
  a.gradientAt = reserve(sizes_.gradientBytes);
  a.biasAt = reserve(8);
  bool hasTable = settings.loss == Loss::Logistic;
  a.tableAt = reserve(!hasTable           ? 0
                      : settings.isPimOpt ? int64_t(4) << PimOptSigmoid::kTableLog2
                                          : SigmoidTable::kEntries * 4);
  heap_.resize(at);
}

void DeviceImage::load(const Rows &rows) {
  const SgdArguments &a = arguments_;
  for (int64_t r = 0; r < rows.count; ++r) {
    put(a.labelsAt + static_cast<uint32_t>(r) * 4, uint32_t(rows.labels[r]));
    uint32_t at = a.rowsAt + static_cast<uint32_t>(r * sizes_.rowBytes);
    if (!isSparse_) {
      const void *from = rows.dense ? static_cast<const void *>(rows.dense + r * rows.features)
                                    : static_cast<const void *>(rows.denseFloat + r * rows.features);
      std::memcpy(heap_.data() + at, from, size_t(rows.features) * 4);
      continue;
    }
    uint32_t count = static_cast<uint32_t>(rows.offsets[r + 1] - rows.offsets[r]);
    for (uint32_t k = 0; k < a.rowEntries; ++k) {
      int64_t entry = rows.offsets[r] + k;
      put(at + k * 4, k < count ? rows.indices[entry] : uint32_t(SGD_ABSENT));
      if (hasValues_ && k < count)
        put(at + (a.rowEntries + k) * 4,
            rows.values ? uint32_t(rows.values[entry]) : std::bit_cast<uint32_t>(rows.valuesFloat[entry]));
    }
  }
  if (settings_.loss != Loss::Logistic)
    return;
  auto copyTable = [&](const auto &table) { std::memcpy(heap_.data() + a.tableAt, table.data(), table.size() * 4); };
  if (settings_.isPimOpt)
    copyTable(PimOptSigmoid::shared().table());
  else if (settings_.arithmetic == Arithmetic::Float32)
    copyTable(SigmoidTable::shared().f32);
  else
    copyTable(SigmoidTable::shared().q31);
}

template <class A>
void DeviceImage::setModel(const typename A::Weight *weights, typename A::Bias bias, const typename A::Weight *pull) {
  const SgdArguments &a = arguments_;
  std::memcpy(heap_.data() + a.modelAt, weights, size_t(a.features) * 4);
  if (isSparse_)
    put(a.modelAt + a.features * 4, static_cast<typename A::Weight>(bias));
  else
    put(a.biasAt, bias);
  if (pull && a.hasPull)
    std::memcpy(heap_.data() + a.pullAt, pull, size_t(a.features) * 4);
}

void DeviceImage::setSteps(int64_t first, int64_t count) {
  arguments_.firstStep = static_cast<uint32_t>(first);
  arguments_.numSteps = static_cast<uint32_t>(count);
}

template <class A> void DeviceImage::model(std::vector<typename A::Weight> &weights, typename A::Bias &bias) const {
  const SgdArguments &a = arguments_;
  weights.resize(a.features);
  std::memcpy(weights.data(), heap_.data() + a.modelAt, size_t(a.features) * 4);
  bias = isSparse_ ? get<typename A::Weight>(a.modelAt + a.features * 4) : get<typename A::Bias>(a.biasAt);
}

template <class A>
void DeviceImage::gradient(std::vector<typename A::Sum> &gradient, typename A::Sum &biasGradient) const {
  const SgdArguments &a = arguments_;
  bool isNarrow = std::is_same_v<A, Q31> && settings_.isPimOpt && !isSparse_;
  gradient.resize(a.features);
  for (uint32_t j = 0; j < a.features; ++j) {
    if (isNarrow)
      gradient[j] = static_cast<typename A::Sum>(get<int32_t>(a.gradientAt + j * 4));
    else
      gradient[j] = get<typename A::Sum>(a.gradientAt + j * uint32_t(sizeof(typename A::Sum)));
  }
  biasGradient = isSparse_ ? get<typename A::Sum>(a.gradientAt + a.features * uint32_t(sizeof(typename A::Sum)))
                           : get<typename A::Sum>(a.biasAt);
}

template void DeviceImage::setModel<Q31>(const int32_t *, int64_t, const int32_t *);
template void DeviceImage::setModel<F32>(const float *, float, const float *);
template void DeviceImage::model<Q31>(std::vector<int32_t> &, int64_t &) const;
template void DeviceImage::model<F32>(std::vector<float> &, float &) const;
template void DeviceImage::gradient<Q31>(std::vector<int64_t> &, int64_t &) const;
template void DeviceImage::gradient<F32>(std::vector<float> &, float &) const;

} // namespace nearbank::sgd
