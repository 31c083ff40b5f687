// SPDX-License-Identifier: Apache-2.0
// What a DPU's memory holds for the training kernel (sgd/device/train.c), and the way in and out.
#pragma once

#include "sgd/LocalSolver.h"
#include "sgd/Rows.h"
#include "sgd/Settings.h"
#include "sgd/Traffic.h"
#include "sgd/device/arguments.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nearbank::sgd {

/// Names the variant of the kernel that a job needs, as the build does: "lr-dense-q31", "svm-onehot-f32",
/// "lr-values-q31", "svm-dense-pimopt".
std::string kernelVariant(const Settings &settings, bool isSparse, bool hasValues);

/// MRAM heap of one DPU and the arguments of its kernel.
class DeviceImage {
public:
  /// Lays the memory out for rows of one shape.
  /// @throws UserError NB0709 when the kernel cannot take them.
  DeviceImage(const Settings &settings, int64_t features, bool isSparse, bool hasValues, int64_t maxRowEntries,
              int64_t numRows);

  /// Puts rows, labels and tables in. Once.
  void load(const Rows &rows);
  template <class A>
  void setModel(const typename A::Weight *weights, typename A::Bias bias, const typename A::Weight *pull = nullptr);
  /// Steps of the next launch: from `first` within the epoch. GA-SGD leaves a gradient.
  void setSteps(int64_t first, int64_t count);

  template <class A> void model(std::vector<typename A::Weight> &weights, typename A::Bias &bias) const;
  template <class A> void gradient(std::vector<typename A::Sum> &gradient, typename A::Sum &biasGradient) const;

  const SgdArguments &arguments() const { return arguments_; }
  std::vector<uint8_t> &heap() { return heap_; }
  const std::vector<uint8_t> &heap() const { return heap_; }

private:
  template <class T> T get(uint32_t at) const;
  template <class T> void put(uint32_t at, T value);

  const Settings settings_;
  const bool isSparse_, hasValues_;
  const WireSizes sizes_;
  SgdArguments arguments_ = {};
  std::vector<uint8_t> heap_;
};

} // namespace nearbank::sgd
