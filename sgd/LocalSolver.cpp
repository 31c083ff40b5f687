// SPDX-License-Identifier: Apache-2.0
// What the local solvers do alike in fixed point and in float32 with the gradient that they hold.
#include "sgd/LocalSolver.h"

#include <algorithm>
#include <type_traits>

namespace nearbank::sgd {

template <class A> void LocalSolver<A>::addGradientTo(Sum *sum) const {
  if (isSparse_) {
    for (uint32_t j : touched_)
      sum[j] += wide_[j];
    return;
  }
  if constexpr (std::is_same_v<A, Q31>)
    kernels_.addWeights(sum, narrow_.data(), static_cast<int64_t>(narrow_.size()));
  for (size_t j = 0; j < wide_.size(); ++j)
    sum[j] += wide_[j];
}

template <class A> void LocalSolver<A>::clear() {
  if (isSparse_) {
    for (uint32_t j : touched_) {
      wide_[j] = 0;
      isTouched_[j] = 0;
    }
    touched_.clear();
  } else {
    std::fill(wide_.begin(), wide_.end(), Sum(0));
    std::fill(narrow_.begin(), narrow_.end(), 0);
  }
  biasGradient_ = 0;
}

template void LocalSolver<Q31>::addGradientTo(int64_t *) const;
template void LocalSolver<F32>::addGradientTo(float *) const;
template void LocalSolver<Q31>::clear();
template void LocalSolver<F32>::clear();

} // namespace nearbank::sgd
