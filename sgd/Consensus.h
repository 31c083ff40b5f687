// SPDX-License-Identifier: Apache-2.0
// The parameter server's arithmetic: means, steps with the sum of gradients, and ADMM's consensus (SGD-5 to SGD-7).
#pragma once

#include "sgd/LocalSolver.h"
#include "sgd/Settings.h"

#include <cstdint>
#include <span>

namespace nearbank::sgd {

/// One parameter at the server.
template <class A> class Consensus {
public:
  using Weight = typename A::Weight;
  using Sum = typename A::Sum;

  explicit Consensus(const Settings &settings);

  /// Mean over DPUs of a sum of weights; `isBias` where the 32 bits of a weight do not bind.
  Sum mean(Sum sum, bool isBias = false) const;
  /// z of ADMM from the means of w and u.
  Sum consensus(Sum meanW, Sum meanU, bool isBias) const;
  /// u_i + w_i - z.
  Sum dual(Sum u, Sum w, Sum z, bool isBias) const;
  /// u_i - z, which the DPU adds to w_i and shrinks.
  Sum pull(Sum u, Sum z, bool isBias) const;

private:
  Sum clip(Sum value, bool isBias) const;

  const Settings settings_;
  Sum threshold_ = 0; ///< Of the soft threshold (Logistic).
  Sum scale_ = 0;     ///< Of the shrink (Hinge); Q31 in fixed point.
};

/// Adds up groups along a fixed binary tree, in place: the result is in the first `width` elements.
template <class Sum> void addTree(std::span<Sum> groups, int64_t numGroups, int64_t width);

/// All-reduces K vectors of `width` along a ring in chunks, in place, as DPUs with links would.
template <class Sum> void ringAllReduce(std::span<Sum> vectors, int64_t numDpus, int64_t width);

} // namespace nearbank::sgd
