// SPDX-License-Identifier: Apache-2.0
// Transfers from a measured table, DPU work from instruction and DMA counts.
#include "sgd/TimeModel.h"

#include "sgd/Sigmoid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace nearbank::sgd {

namespace {

// Aggregate GB/s measured on an UPMEM server in November 2024 (downmem, tools: benbii/downmem e96e167, MRAM tables).
constexpr std::array<double, 8> kBytes = {32, 1024, 8192, 65536, 524288, 1048576, 8388608, 33554432};
constexpr std::array<double, 6> kToDpus = {64, 128, 256, 512, 1024, 2560};
constexpr double kToRate[8][6] = {{0.03, 0.05, 0.09, 0.08, 0.15, 0.25}, {0.76, 0.96, 1.96, 2.03, 4.03, 5.31},
                                  {3.38, 3.62, 5.22, 7.53, 9.14, 14.0}, {4.77, 5.96, 9.40, 7.71, 11.8, 39.1},
                                  {10.4, 12.6, 24.7, 8.94, 28.9, 49.3}, {10.2, 12.4, 24.3, 18.9, 24.3, 57.3},
                                  {8.93, 11.0, 22.3, 19.0, 31.0, 57.7}, {6.58, 6.56, 13.2, 15.4, 28.0, 50.0}};
constexpr std::array<double, 5> kFromDpus = {64, 256, 512, 1024, 2560};
constexpr double kFromRate[8][5] = {{0.01, 0.05, 0.06, 0.12, 0.19}, {0.31, 1.02, 0.97, 1.86, 2.76},
                                    {1.44, 2.19, 2.53, 3.36, 5.67}, {1.81, 3.49, 3.26, 3.82, 11.3},
                                    {2.87, 5.67, 4.50, 6.92, 13.4}, {3.35, 5.70, 4.76, 7.34, 13.3},
                                    {2.86, 5.13, 4.74, 7.87, 14.0}, {2.73, 5.13, 4.78, 8.23, 14.4}};

/// Position of a value among ascending ones, on a logarithmic scale: index below and share towards the next.
std::pair<size_t, double> place(std::span<const double> values, double value) {
  value = std::clamp(value, values.front(), values.back());
  size_t below = 0;
  while (below + 2 < values.size() && values[below + 1] <= value)
    ++below;
  return {below, std::log(value / values[below]) / std::log(values[below + 1] / values[below])};
}

template <size_t columns>
double rateAt(const double (&rates)[8][columns], std::span<const double> dpus, double bytes, double numDpus) {
  auto [row, down] = place(kBytes, bytes);
  auto [column, right] = place(dpus, numDpus);
  auto logAt = [&](size_t r, size_t c) { return std::log(rates[r][c]); };
  double upper = logAt(row, column) * (1 - right) + logAt(row, column + 1) * right;
  double lower = logAt(row + 1, column) * (1 - right) + logAt(row + 1, column + 1) * right;
  return std::exp(upper * (1 - down) + lower * down);
}

/// Instructions per operation: 350 MHz over the throughput that PrIM (IEEE Access 2022, Fig. 4) measured on one DPU,
/// less the six or seven instructions around the operation there.
struct Costs {
  static constexpr double multiply64 = 130, multiply32 = 28;
  static constexpr double floatAdd = 65, floatMultiply = 177, floatDivide = 1023;
  static constexpr double doubleAdd = 98, doubleDivide = 2181;
  static constexpr double loop = 3, load = 1, store = 1, add64 = 2, shift64 = 4, compare = 2;
};

/// Work of one DPU in one round: instructions of all tasklets, those of one tasklet while others wait, DMA cycles.
struct DpuWork {
  double parallel = 0, serial = 0, dmaCycles = 0;

  void read(const DpuMachine &machine, double bytes, double block) {
    dmaCycles += std::ceil(bytes / block) * machine.dmaReadCycles + bytes * machine.dmaCyclesPerByte;
  }
  void write(const DpuMachine &machine, double bytes, double block) {
    dmaCycles += std::ceil(bytes / block) * machine.dmaWriteCycles + bytes * machine.dmaCyclesPerByte;
  }
};

double sigmoidInstructions(const Settings &settings) {
  if (settings.loss == Loss::Hinge)
    return 8;
  if (settings.arithmetic == Arithmetic::Float32)
    return 2 * Costs::floatMultiply + 3 * Costs::floatAdd + 30;
  if (!settings.isPimOpt)
    return Costs::multiply32 + 25;
  return Costs::floatDivide + 2 * Costs::floatMultiply + Costs::doubleAdd + Costs::doubleDivide + 120;
}

/// One sample: dot product, coefficient, gradient.
void addSample(const Settings &settings, const DpuMachine &machine, const WorkShape &shape, DpuWork &work) {
  bool isFloat = settings.arithmetic == Arithmetic::Float32;
  double gradientBytes = isFloat || (settings.isPimOpt && !shape.isSparse) ? 4 : 8;
  double entries = double(shape.entriesPerRow);
  double tasklets = double(settings.numTasklets);
  double multiplyAdd = isFloat ? Costs::floatMultiply + Costs::floatAdd + 2 * Costs::load
                               : Costs::multiply64 + Costs::shift64 + Costs::add64 + 2 * Costs::load;
  bool hasProducts = !shape.isSparse || shape.hasValues;
  double dot = hasProducts ? multiplyAdd : isFloat ? Costs::floatAdd : Costs::add64 + Costs::load;
  bool isCheap = settings.loss == Loss::Hinge && !isFloat;
  double gradient = hasProducts && !isCheap ? multiplyAdd + Costs::compare + Costs::store
                    : isFloat               ? Costs::floatAdd + Costs::load + Costs::store
                                            : 2 * Costs::add64 + Costs::compare + Costs::load + Costs::store;
  work.parallel += entries * (dot + gradient + 2 * Costs::loop) + tasklets * 30;
  work.serial += sigmoidInstructions(settings) + tasklets * 4 + 20;
  if (shape.isSparse) {
    work.parallel += entries * 16; // Addresses of single weights.
    for (double e = 0; e < entries; ++e) {
      work.read(machine, 8, 8);
      work.read(machine, 8, 8);
      work.write(machine, 8, 8);
    }
    work.read(machine, entries * 4, std::max(8.0, entries * 4 / tasklets));
    return;
  }
  double block = std::clamp(double(shape.features) * 4 / tasklets, 8.0, 512.0);
  double blockOfGradient = block * gradientBytes / 4;
  work.read(machine, 8 * entries, block);
  work.read(machine, gradientBytes * entries, blockOfGradient);
  work.write(machine, gradientBytes * entries, blockOfGradient);
}

/// One step of the model: zeroing the gradient, update.
void addStep(const Settings &settings, const DpuMachine &machine, const WorkShape &shape, bool hasUpdate,
             DpuWork &work) {
  bool isFloat = settings.arithmetic == Arithmetic::Float32;
  double n = double(shape.features);
  double gradientBytes = isFloat || (settings.isPimOpt && !shape.isSparse) ? 4 : 8;
  double block = std::clamp(n * 4 / double(settings.numTasklets), 8.0, 512.0);
  work.write(machine, gradientBytes * n, block * gradientBytes / 4);
  if (!hasUpdate)
    return;
  double vectors = settings.algorithm == Algorithm::Admm ? 2 : 1;
  work.parallel += n * (isFloat ? 2 * Costs::floatMultiply + 2 * Costs::floatAdd + 6 : 26 + 3 * vectors);
  work.read(machine, 4 * n * vectors, block);
  work.read(machine, gradientBytes * n, block * gradientBytes / 4);
  work.write(machine, 4 * n, block);
}

double linkSeconds(const Settings &settings, const DpuMachine &machine, const WireSizes &sizes) {
  if (settings.synchronisation == Synchronisation::ParameterServer || machine.linkGBs <= 0)
    return 0;
  double payload = double(closedFormLinkBytes(settings, sizes)) / double(settings.numDpus);
  double bytesPerSecond = machine.linkGBs * 1e9;
  // Levels of the tree of chips, ranks and the rest; a ring has as many steps as messages.
  double levels = 1 + (settings.numDpus > machine.dpusPerChip) + (settings.numDpus > machine.dpusPerRank);
  double steps = settings.synchronisation == Synchronisation::Ring     ? 2 * double(settings.numDpus - 1)
                 : settings.synchronisation == Synchronisation::Gossip ? 2
                                                                       : 2 * levels;
  return payload / bytesPerSecond + steps * machine.linkLatencySeconds;
}

} // namespace

double transferSeconds(bool isToDpu, int64_t bytesPerDpu, int64_t numDpus) {
  if (bytesPerDpu <= 0)
    return 0;
  // Fewer than 64 DPUs of a rank take as long as all of them.
  double dpus = std::max<double>(64, double(numDpus)), bytes = double(bytesPerDpu);
  double tableBytes = std::clamp(bytes, kBytes.front(), kBytes.back());
  double rate = isToDpu ? rateAt(kToRate, kToDpus, tableBytes, dpus) : rateAt(kFromRate, kFromDpus, tableBytes, dpus);
  return std::max(bytes, kBytes.front()) * dpus / (rate * 1e9);
}

RoundTime roundTime(const Settings &settings, const DpuMachine &machine, const WorkShape &shape,
                    const WireSizes &sizes) {
  RoundTime time;
  int64_t dpus = settings.numDpus;
  bool isServer = settings.synchronisation == Synchronisation::ParameterServer;
  bool isGradient = settings.algorithm == Algorithm::GaSgd;
  if (isServer) {
    time.toDpu = transferSeconds(true, sizes.modelBytes, dpus) + transferSeconds(true, sizes.biasBytes, dpus);
    if (settings.algorithm == Algorithm::Admm)
      time.toDpu += transferSeconds(true, sizes.modelBytes, dpus);
    int64_t up = isGradient ? sizes.gradientBytes : sizes.modelBytes;
    time.fromDpu = transferSeconds(false, up, dpus) + transferSeconds(false, sizes.biasBytes, dpus);
    double passes = settings.algorithm == Algorithm::Admm ? 6 : 1; // Sums of w and u, u and u - z read and written.
    time.aggregation = passes * double(up) * double(dpus) / (machine.hostBandwidthGBs * 1e9);
  }
  time.launch = machine.launchSeconds;
  time.link = linkSeconds(settings, machine, sizes);

  int64_t steps = (shape.rowsPerDpu + settings.batch - 1) / settings.batch;
  if (settings.algorithm == Algorithm::GaSgd)
    steps = 1;
  else if (settings.algorithm == Algorithm::MaSgd && settings.averageEvery > 0)
    steps = std::min(steps, settings.averageEvery);
  double samples = std::min<double>(double(shape.rowsPerDpu), double(steps * settings.batch));
  DpuWork sample, step;
  addSample(settings, machine, shape, sample);
  addStep(settings, machine, shape, !isGradient, step);
  double rate = double(std::max<int64_t>(settings.numTasklets, 1));
  double cyclesPerInstruction = std::max(1.0, double(machine.pipelineDepth) / rate);
  double compute = samples * (sample.parallel * cyclesPerInstruction + sample.serial * double(machine.pipelineDepth)) +
                   double(steps) * step.parallel * cyclesPerInstruction;
  double dma = samples * sample.dmaCycles + double(steps) * step.dmaCycles;
  // With one tasklet nothing overlaps; with eleven or more, computing hides DMA up to its own length.
  double hidden = std::min(dma, compute) * std::min(1.0, (rate - 1) / 10.0);
  double cycleSeconds = 1e-6 / machine.clockMHz;
  time.compute = compute * cycleSeconds;
  time.movement = (dma - hidden) * cycleSeconds;
  return time;
}

int64_t mramBytes(const Settings &settings, const WorkShape &shape, const WireSizes &sizes) {
  int64_t labels = (shape.rowsPerDpu * 4 + 7) / 8 * 8;
  int64_t models = sizes.modelBytes * (settings.algorithm == Algorithm::Admm ? 2 : 1);
  int64_t tables = settings.loss != Loss::Logistic ? 0
                   : settings.isPimOpt             ? int64_t(4) << PimOptSigmoid::kTableLog2
                                                   : SigmoidTable::kEntries * 4;
  return shape.rowsPerDpu * sizes.rowBytes + labels + models + sizes.gradientBytes + 2 * sizes.biasBytes + tables;
}

double loadSeconds(const Settings &settings, const DpuMachine &machine, const WorkShape &shape,
                   const WireSizes &sizes) {
  (void)machine;
  int64_t tables = mramBytes(settings, {shape.features, 0, 0, shape.isSparse, shape.hasValues}, {});
  return transferSeconds(true, shape.rowsPerDpu * sizes.rowBytes, settings.numDpus) +
         transferSeconds(true, shape.rowsPerDpu * 4, settings.numDpus) +
         transferSeconds(true, tables, settings.numDpus);
}

} // namespace nearbank::sgd
