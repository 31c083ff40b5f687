// SPDX-License-Identifier: Apache-2.0
// Means, consensus and all-reduce in fixed point and float32. Compiled without contraction.
#include "sgd/Consensus.h"

#include "sgd/FixedPoint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace nearbank::sgd {

template <> Consensus<Q31>::Consensus(const Settings &settings) : settings_(settings) {
  if (settings.algorithm != Algorithm::Admm)
    return;
  int dpusLog2 = std::bit_width(uint64_t(settings.numDpus)) - 1;
  if (settings.isPimOpt) {
    threshold_ = kOne >> std::clamp(dpusLog2 + settings.l2Shift - settings.alphaShift, 0, 63);
    int64_t numerator = (kOne >> settings.l2Shift) << 31;
    int64_t denominator = (kOne << settings.alphaShift) + scaleBy(kOne, dpusLog2 - settings.l2Shift);
    scale_ = numerator / denominator;
    return;
  }
  double rho = std::ldexp(1.0, -settings.l2Shift) * double(settings.numDpus);
  double alpha = settings.alphaShift == kNoTerm ? 0.0 : std::ldexp(1.0, -settings.alphaShift);
  threshold_ = static_cast<int64_t>(std::ldexp(alpha / rho, 31 - settings.weightExponent));
  scale_ = static_cast<int64_t>(std::ldexp(rho / (alpha + rho), 31));
}

template <> int64_t Consensus<Q31>::clip(int64_t value, bool isBias) const {
  if (!settings_.isPimOpt)
    return saturate(value);
  return isBias ? saturatePimOpt(value) : storedWeight<true>(value);
}

template <> int64_t Consensus<Q31>::mean(int64_t sum, bool isBias) const {
  return clip(sum / settings_.numDpus, isBias);
}

template <> int64_t Consensus<Q31>::consensus(int64_t meanW, int64_t meanU, bool isBias) const {
  int64_t value = meanW + meanU;
  value = settings_.isPimOpt ? saturatePimOpt(value) : saturate(value);
  if (isBias && !settings_.isPimOpt)
    return value; // PIM-Opt regularises the bias too.
  if (settings_.loss == Loss::Hinge)
    return clip((scale_ * value) >> 31, isBias);
  int64_t magnitude = value < 0 ? -value : value;
  if (magnitude <= threshold_)
    return 0;
  return clip(value < 0 ? value + threshold_ : value - threshold_, isBias);
}

template <> int64_t Consensus<Q31>::dual(int64_t u, int64_t w, int64_t z, bool isBias) const {
  return clip(u + (w - z), isBias);
}

template <> int64_t Consensus<Q31>::pull(int64_t u, int64_t z, bool isBias) const { return clip(u - z, isBias); }

template <> Consensus<F32>::Consensus(const Settings &settings) : settings_(settings) {
  if (settings.algorithm != Algorithm::Admm)
    return;
  float rho = settings.l2 * static_cast<float>(settings.numDpus);
  threshold_ = settings.alpha / rho;
  scale_ = rho / (settings.alpha + rho);
}

template <> float Consensus<F32>::clip(float value, bool) const { return value; }
template <> float Consensus<F32>::mean(float sum, bool) const { return sum / static_cast<float>(settings_.numDpus); }

template <> float Consensus<F32>::consensus(float meanW, float meanU, bool isBias) const {
  float value = meanW + meanU;
  if (isBias)
    return value;
  if (settings_.loss == Loss::Hinge)
    return scale_ * value;
  if (std::fabs(value) <= threshold_)
    return 0.0f;
  return value < 0 ? value + threshold_ : value - threshold_;
}

template <> float Consensus<F32>::dual(float u, float w, float z, bool) const { return u + (w - z); }
template <> float Consensus<F32>::pull(float u, float z, bool) const { return u - z; }

template class Consensus<Q31>;
template class Consensus<F32>;

template <class Sum> void addTree(std::span<Sum> groups, int64_t numGroups, int64_t width) {
  for (int64_t stride = 1; stride < numGroups; stride *= 2)
    for (int64_t group = 0; group + stride < numGroups; group += 2 * stride) {
      Sum *into = groups.data() + group * width;
      const Sum *from = groups.data() + (group + stride) * width;
      for (int64_t j = 0; j < width; ++j)
        into[j] += from[j];
    }
}

template <class Sum> void ringAllReduce(std::span<Sum> vectors, int64_t numDpus, int64_t width) {
  auto chunkBegin = [&](int64_t chunk) { return width * chunk / numDpus; };
  auto chunkOf = [&](int64_t dpu) { return ((dpu % numDpus) + numDpus) % numDpus; };
  // All sends of a step happen at once: chunks that one step sends are not those that it receives.
  for (int64_t step = 0; step + 1 < numDpus; ++step)
    for (int64_t dpu = 0; dpu < numDpus; ++dpu) {
      int64_t chunk = chunkOf(dpu - step), next = chunkOf(dpu + 1);
      for (int64_t j = chunkBegin(chunk); j < chunkBegin(chunk + 1); ++j)
        vectors[next * width + j] += vectors[dpu * width + j];
    }
  for (int64_t step = 0; step + 1 < numDpus; ++step)
    for (int64_t dpu = 0; dpu < numDpus; ++dpu) {
      int64_t chunk = chunkOf(dpu + 1 - step), next = chunkOf(dpu + 1);
      for (int64_t j = chunkBegin(chunk); j < chunkBegin(chunk + 1); ++j)
        vectors[next * width + j] = vectors[dpu * width + j];
    }
}

template void addTree(std::span<int64_t>, int64_t, int64_t);
template void addTree(std::span<float>, int64_t, int64_t);
template void ringAllReduce(std::span<int64_t>, int64_t, int64_t);
template void ringAllReduce(std::span<float>, int64_t, int64_t);

} // namespace nearbank::sgd
