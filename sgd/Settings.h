// SPDX-License-Identifier: Apache-2.0
// What a training job is asked to do; docs/model.md (SGD-1 to SGD-9) defines every quantity.
#pragma once

#include <array>
#include <cstdint>

namespace nearbank::sgd {

enum class Algorithm { GaSgd, MaSgd, Admm };
enum class Loss { Logistic, Hinge };
enum class Arithmetic { Q31, Float32 };

/// Who combines what the DPUs computed.
enum class Synchronisation {
  ParameterServer, ///< The host; the only way that UPMEM machines have.
  Ring,            ///< Ring all-reduce over the inter-DPU link.
  Gossip,          ///< Each DPU averages with its two ring neighbours.
  InNetwork,       ///< Switches of the inter-DPU link add up.
  Shared,          ///< DPUs of a chip or rank share memory, where they add up for the host.
};

/// Shift that stands for a factor of zero.
inline constexpr int kNoTerm = 63;

struct Settings {
  Algorithm algorithm = Algorithm::MaSgd;
  Loss loss = Loss::Logistic;
  Arithmetic arithmetic = Arithmetic::Q31;
  Synchronisation synchronisation = Synchronisation::ParameterServer;
  /// Reproduces PIM-Opt's published arithmetic to the bit (SGD-3).
  bool isPimOpt = false;

  int64_t numDpus = 64;
  int64_t numTasklets = 16;
  int64_t batch = 8;        ///< Samples of one step on one DPU; a power of two in Q31.
  int64_t averageEvery = 1; ///< Batches between averages of MA-SGD; 0 means once an epoch.
  int64_t staleness = 0;    ///< Rounds that a DPU's model may be behind (SGD-8).
  int64_t sharedDpus = 8;   ///< DPUs that share memory under Synchronisation::Shared.
  int numThreads = 0;       ///< Of this host; 0 means all cores. The result does not depend on it.

  // Q31: factors are powers of two, given by their negative exponents.
  int rateShift = 0;      ///< Learning rate 2^-rateShift; negative for rates above one.
  int l2Shift = kNoTerm;  ///< L2 strength of GA-SGD and MA-SGD, penalty rho of ADMM: 2^-l2Shift.
  int alphaShift = 12;    ///< Regulariser of ADMM's consensus: 2^-alphaShift; kNoTerm for none.
  int weightExponent = 6; ///< A weight w stands for w * 2^(weightExponent - 31); 0 under isPimOpt.
  /// Weights of class 0 and class 1: classWeights[y] / 256 * 2^classShift, with classWeights at most 256.
  std::array<int32_t, 2> classWeights = {256, 256};
  int classShift = 0;

  // Float32.
  float rate = 1.0f;
  float l2 = 0.0f;    ///< As l2Shift.
  float alpha = 0.0f; ///< As alphaShift.
  std::array<float, 2> floatClassWeights = {1.0f, 1.0f};
};

} // namespace nearbank::sgd
