// SPDX-License-Identifier: Apache-2.0
// What a DPU's memory holds for the training kernel (sgd/device/train.c), and the way in and out.
#pragma once

#include "sgd/DeviceMemory.h"
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

/// Elements of the blocks in which tasklets share a vector of `length`: as equal shares as blocks of at most 64 allow.
int64_t blockLength(const Settings &settings, int64_t length, bool isSparse);
/// Names the variant of the kernel that a job needs, as the build does: "lr-dense-q31", "svm-onehot-f32",
/// "lr-values-q31", "svm-dense-pimopt".
std::string kernelVariant(const Settings &settings, bool isSparse, bool hasValues);

/// What lies where in the MRAM heap of one DPU, and the arguments of its kernel.
class DeviceImage {
public:
  /// Lays the memory out for `numRows` rows of the shape that `source` has.
  /// @throws UserError NB0709 when the kernel cannot take them.
  DeviceImage(const Settings &settings, const RowSource &source, int64_t numRows);

  /// Puts rows, labels and tables in. Once.
  void load(DeviceMemory &memory, const Rows &rows) const;
  template <class A>
  void setModel(DeviceMemory &memory, const typename A::Weight *weights, typename A::Bias bias,
                const typename A::Weight *pull = nullptr) const;
  /// Steps of the next launch: from `first` within the epoch. GA-SGD leaves a gradient.
  void setSteps(int64_t first, int64_t count);

  template <class A>
  void getModel(const DeviceMemory &memory, typename A::Weight *weights, typename A::Bias &bias) const;
  /// Adds the gradient to `sum`, that of the bias behind the last feature.
  template <class A> void addGradientTo(const DeviceMemory &memory, typename A::Sum *sum) const;

  const SgdArguments &arguments() const { return arguments_; }
  /// Bytes of the heap in use.
  int64_t size() const { return size_; }

private:
  template <class T> T readBias(const DeviceMemory &memory) const;

  const Loss loss_;
  const Arithmetic arithmetic_;
  const bool isPimOpt_;
  const bool isSparse_, hasValues_;
  const WireSizes sizes_;
  SgdArguments arguments_ = {};
  int64_t size_ = 0;
};

} // namespace nearbank::sgd
