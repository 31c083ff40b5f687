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
constexpr int64_t kMaxBlock = 64;            // MAX_BLOCK of train.c.
static_assert(sizeof(SgdArguments) % 8 == 0, "transfers go in units of 8 B");

[[noreturn]] void refuse(const std::string &expected, const std::string &actual) {
  throw UserError({"NB0709", "the training kernel cannot take this job", "", expected, actual,
                   "compute with the twin: --simulate twin"});
}

} // namespace

int64_t blockLength(const Settings &settings, int64_t length, bool isSparse) {
  if (settings.arithmetic == Arithmetic::Float32 && !isSparse)
    return kMaxBlock; // FT-1.
  int64_t tasklets = std::max<int64_t>(1, settings.numTasklets);
  int64_t blocks = tasklets * ((length + kMaxBlock * tasklets - 1) / (kMaxBlock * tasklets));
  return std::min(kMaxBlock, ((length + blocks - 1) / blocks + 1) / 2 * 2);
}

std::string kernelVariant(const Settings &settings, bool isSparse, bool hasValues) {
  return fmt::format("{}-{}-{}", settings.loss == Loss::Hinge ? "svm" : "lr",
                     !isSparse   ? "dense"
                     : hasValues ? "values"
                                 : "onehot",
                     settings.arithmetic == Arithmetic::Float32 ? "f32"
                     : settings.isPimOpt                        ? "pimopt"
                                                                : "q31");
}

DeviceImage::DeviceImage(const Settings &settings, const RowSource &source, int64_t numRows)
    : loss_(settings.loss), arithmetic_(settings.arithmetic), isPimOpt_(settings.isPimOpt),
      isSparse_(source.isSparse()), hasValues_(source.hasValues()),
      sizes_(settings, source.numFeatures(), isSparse_, source.maxRowEntries(), hasValues_) {
  int64_t features = source.numFeatures();
  if (isSparse_ && source.maxRowEntries() > kMaxEntries)
    refuse(fmt::format("sparse rows of at most {} entries", kMaxEntries), fmt::format("{}", source.maxRowEntries()));
  bool isFloat = arithmetic_ == Arithmetic::Float32;
  if (!isSparse_ && isFloat && features > kMaxFloatFeatures)
    refuse(fmt::format("float32 rows of at most {} features", kMaxFloatFeatures), fmt::format("{}", features));
  if (!std::has_single_bit(uint64_t(settings.batch)) && !isFloat)
    refuse("a batch that is a power of two", fmt::format("{}", settings.batch));
  SgdArguments &a = arguments_;
  a.features = static_cast<uint32_t>(features);
  a.numRows = static_cast<uint32_t>(numRows);
  a.batch = static_cast<uint32_t>(settings.batch);
  a.batchLog2 = static_cast<uint32_t>(std::bit_width(uint64_t(settings.batch)) - 1);
  a.rowEntries = isSparse_ ? static_cast<uint32_t>(sizes_.rowBytes / (hasValues_ ? 8 : 4)) : 0;
  a.shift = isFloat
                ? 0
                : static_cast<uint32_t>(isPimOpt_ ? settings.rateShift
                                                  : settings.rateShift + settings.weightExponent - settings.classShift);
  a.decayShift = settings.l2Shift == kNoTerm || isFloat ? SGD_NO_TERM
                                                        : static_cast<uint32_t>(settings.rateShift + settings.l2Shift);
  a.block = static_cast<uint32_t>(blockLength(settings, (features + (isSparse_ ? 2 : 1)) / 2 * 2, isSparse_));
  a.weightExponent = static_cast<uint32_t>(settings.weightExponent);
  a.isGradientOnly = settings.algorithm == Algorithm::GaSgd;
  a.hasPull = settings.algorithm == Algorithm::Admm;
  a.stepRate = settings.rate / static_cast<float>(settings.batch);
  a.decayRate = settings.rate * settings.l2;
  for (int c : {0, 1}) {
    a.classWeights[c] = settings.classWeights[c];
    a.floatClassWeights[c] = settings.floatClassWeights[c];
  }
  auto reserve = [&](int64_t bytes) {
    int64_t begin = size_;
    size_ += (bytes + 7) / 8 * 8;
    return static_cast<uint32_t>(begin);
  };
  a.rowsAt = reserve(numRows * sizes_.rowBytes);
  a.labelsAt = reserve(numRows * 4);
  a.modelAt = reserve(sizes_.modelBytes);
  a.pullAt = reserve(a.hasPull ? sizes_.modelBytes : 0);
  a.gradientAt = reserve(sizes_.gradientBytes);
  a.biasAt = reserve(8);
  bool hasTable = loss_ == Loss::Logistic;
  a.tableAt = reserve(!hasTable ? 0 : isPimOpt_ ? int64_t(4) << PimOptSigmoid::kTableLog2 : SigmoidTable::kEntries * 4);
}

void DeviceImage::load(DeviceMemory &memory, const Rows &rows) const {
  const SgdArguments &a = arguments_;
  std::vector<uint32_t> row(static_cast<size_t>(sizes_.rowBytes / 4));
  for (int64_t r = 0; r < rows.count; ++r) {
    if (!isSparse_) {
      const void *from = rows.dense ? static_cast<const void *>(rows.dense + r * rows.features)
                                    : static_cast<const void *>(rows.denseFloat + r * rows.features);
      std::memcpy(row.data(), from, size_t(rows.features) * 4);
    } else {
      std::fill(row.begin(), row.end(), 0);
      std::fill_n(row.begin(), a.rowEntries, uint32_t(SGD_ABSENT));
      for (int64_t entry = rows.offsets[r]; entry < rows.offsets[r + 1]; ++entry) {
        size_t k = static_cast<size_t>(entry - rows.offsets[r]);
        row[k] = rows.indices[entry];
        if (hasValues_)
          row[a.rowEntries + k] =
              rows.values ? uint32_t(rows.values[entry]) : std::bit_cast<uint32_t>(rows.valuesFloat[entry]);
      }
    }
    memory.write(a.rowsAt + static_cast<uint32_t>(r * sizes_.rowBytes), row.data(), row.size() * 4);
  }
  std::vector<uint32_t> labels(rows.labels, rows.labels + rows.count);
  memory.write(a.labelsAt, labels.data(), labels.size() * 4);
  if (loss_ != Loss::Logistic)
    return;
  auto copyTable = [&](const auto &table) { memory.write(a.tableAt, table.data(), table.size() * 4); };
  if (isPimOpt_)
    copyTable(PimOptSigmoid::shared().table());
  else if (arithmetic_ == Arithmetic::Float32)
    copyTable(SigmoidTable::shared().f32);
  else
    copyTable(SigmoidTable::shared().q31);
}

template <class A>
void DeviceImage::setModel(DeviceMemory &memory, const typename A::Weight *weights, typename A::Bias bias,
                           const typename A::Weight *pull) const {
  const SgdArguments &a = arguments_;
  // Whole padded vectors, as transfers to MRAM need them.
  std::vector<typename A::Weight> vector(static_cast<size_t>(sizes_.modelBytes / 4));
  std::copy_n(weights, a.features, vector.begin());
  if (isSparse_)
    vector[a.features] = static_cast<typename A::Weight>(bias);
  memory.write(a.modelAt, vector.data(), vector.size() * 4);
  if (!isSparse_) {
    typename A::Bias whole[8 / sizeof bias] = {bias};
    memory.write(a.biasAt, whole, sizeof whole);
  }
  if (pull && a.hasPull) {
    std::fill(std::copy_n(pull, a.features, vector.begin()), vector.end(), typename A::Weight(0));
    memory.write(a.pullAt, vector.data(), vector.size() * 4);
  }
}

void DeviceImage::setSteps(int64_t first, int64_t count) {
  arguments_.firstStep = static_cast<uint32_t>(first);
  arguments_.numSteps = static_cast<uint32_t>(count);
}

template <class A>
void DeviceImage::getModel(const DeviceMemory &memory, typename A::Weight *weights, typename A::Bias &bias) const {
  const SgdArguments &a = arguments_;
  std::vector<typename A::Weight> vector(static_cast<size_t>(sizes_.modelBytes / 4));
  memory.read(a.modelAt, vector.data(), vector.size() * 4);
  std::copy_n(vector.begin(), a.features, weights);
  bias = isSparse_ ? vector[a.features] : readBias<typename A::Bias>(memory);
}

template <class T> T DeviceImage::readBias(const DeviceMemory &memory) const {
  T whole[8 / sizeof(T)];
  memory.read(arguments_.biasAt, whole, sizeof whole);
  return whole[0];
}

template <class A> void DeviceImage::addGradientTo(const DeviceMemory &memory, typename A::Sum *sum) const {
  using Sum = typename A::Sum;
  const SgdArguments &a = arguments_;
  auto add = [&]<class T>(std::vector<T> vector) {
    memory.read(a.gradientAt, vector.data(), vector.size() * sizeof(T));
    for (uint32_t j = 0; j < a.features; ++j)
      sum[j] += static_cast<Sum>(vector[j]);
    sum[a.features] += isSparse_ ? static_cast<Sum>(vector[a.features]) : readBias<Sum>(memory);
  };
  size_t entries = static_cast<size_t>(sizes_.modelBytes / 4);
  if (std::is_same_v<A, Q31> && isPimOpt_ && !isSparse_)
    add(std::vector<int32_t>(entries));
  else
    add(std::vector<Sum>(entries));
}

template void DeviceImage::setModel<Q31>(DeviceMemory &, const int32_t *, int64_t, const int32_t *) const;
template void DeviceImage::setModel<F32>(DeviceMemory &, const float *, float, const float *) const;
template void DeviceImage::getModel<Q31>(const DeviceMemory &, int32_t *, int64_t &) const;
template void DeviceImage::getModel<F32>(const DeviceMemory &, float *, float &) const;
template void DeviceImage::addGradientTo<Q31>(const DeviceMemory &, int64_t *) const;
template void DeviceImage::addGradientTo<F32>(const DeviceMemory &, float *) const;

} // namespace nearbank::sgd
