// SPDX-License-Identifier: Apache-2.0
// Transfers from the machine's measured tables, DPU work from instruction and DMA counts.
#include "sgd/TimeModel.h"

#include "sgd/DeviceImage.h"
#include "sgd/Sigmoid.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nearbank::sgd {

namespace {

/// Instructions per operation: 350 MHz over the throughput that PrIM (IEEE Access 2022, Fig. 4) measured on one DPU,
/// less the six or seven instructions around the operation there.
struct Costs {
  static constexpr double multiply64 = 130, multiply32 = 28;
  static constexpr double floatAdd = 65, floatMultiply = 177, floatDivide = 1023;
  static constexpr double doubleAdd = 98, doubleDivide = 2181;
  /// Counted in the training kernel's code (clang 22, -O2): a tasklet passes over an entry that is another one's, and
  /// updates a weight with a 64-bit gradient.
  static constexpr double scan = 9, update = 60;
  /// What a tasklet does while others wait, beside arithmetic: counted by simulating rows of four features.
  static constexpr double sampleAlone = 300, stepAlone = 600, launchAlone = 1000;
  static constexpr double loop = 3, load = 1, store = 1, add64 = 2, shift64 = 4, compare = 2;
};

/// Work of one DPU in one round: instructions of all tasklets, of those that own an entry of a sparse row, and of one
/// tasklet while others wait; DMA.
struct DpuWork {
  double parallel = 0, owned = 0, serial = 0, dmaCycles = 0, dmaBytes = 0;

  void read(const dpu::DpuConfig &machine, double bytes, double block) {
    dmaBytes += bytes;
    dmaCycles += std::ceil(bytes / block) * machine.dmaReadCycles + bytes * machine.dmaCyclesPerByte;
  }
  void write(const dpu::DpuConfig &machine, double bytes, double block) {
    dmaBytes += bytes;
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
void addSample(const Settings &settings, const dpu::DpuConfig &machine, const WorkShape &shape, DpuWork &work) {
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
  (shape.isSparse ? work.owned : work.parallel) += entries * (dot + gradient + 2 * Costs::loop);
  work.parallel += tasklets * 30;
  work.serial += sigmoidInstructions(settings) + tasklets * 4 + 20 + Costs::sampleAlone;
  if (shape.isSparse) {
    // Addresses of single weights; every tasklet looks at every entry, for the dot product and for the gradient.
    work.owned += entries * 16;
    work.parallel += entries * 2 * Costs::scan * tasklets;
    if (isFloat) // Summed in their order.
      work.serial += entries * (Costs::floatAdd + Costs::load + Costs::loop);
    for (double e = 0; e < entries; ++e) {
      work.read(machine, 8, 8);
      work.read(machine, 8, 8);
      work.write(machine, 8, 8);
    }
    work.read(machine, entries * 4, std::max(8.0, entries * 4 / tasklets));
    return;
  }
  double block = 4 * double(blockLength(settings, shape.features, shape.isSparse));
  double blockOfGradient = block * gradientBytes / 4;
  work.read(machine, 8 * entries, block);
  work.read(machine, gradientBytes * entries, blockOfGradient);
  work.write(machine, gradientBytes * entries, blockOfGradient);
}

/// One step of the model: zeroing the gradient, update.
void addStep(const Settings &settings, const dpu::DpuConfig &machine, const WorkShape &shape, bool hasUpdate,
             DpuWork &work) {
  bool isFloat = settings.arithmetic == Arithmetic::Float32;
  double n = double(shape.features);
  double gradientBytes = isFloat || (settings.isPimOpt && !shape.isSparse) ? 4 : 8;
  double block = 4 * double(blockLength(settings, shape.features, shape.isSparse));
  work.write(machine, gradientBytes * n, block * gradientBytes / 4);
  work.serial += Costs::stepAlone;
  if (!hasUpdate)
    return;
  double vectors = settings.algorithm == Algorithm::Admm ? 2 : 1;
  work.parallel += n * (isFloat ? 2 * Costs::floatMultiply + 2 * Costs::floatAdd + 6 : Costs::update + 3 * vectors);
  work.read(machine, 4 * n * vectors, block);
  work.read(machine, gradientBytes * n, block * gradientBytes / 4);
  work.write(machine, 4 * n, block);
}

/// Cycles of an instruction of what tasklets share in blocks of a vector of `length`: one where eleven are at work,
/// more where few are, or where one has more than its share.
double cyclesOfShared(const Settings &settings, const dpu::DpuConfig &machine, int64_t length, bool isSparse) {
  int64_t stride = blockLength(settings, length, isSparse) * settings.numTasklets;
  double busiest = double(std::min(length, (length + stride - 1) / stride * stride / settings.numTasklets));
  return std::max(1.0, double(machine.dispatchCycles) * busiest / double(length));
}

/// The levels of links that the DPUs of a job cross, innermost first.
std::vector<dpu::LinkLevel> crossedLevels(const Settings &settings, const dpu::DpuConfig &machine) {
  std::vector<dpu::LinkLevel> levels;
  if (settings.synchronisation == Synchronisation::Shared) {
    levels.push_back(double(settings.sharedDpus) > machine.dpusPerChip ? machine.rankLink : machine.chipLink);
    return levels;
  }
  if (settings.numDpus > 1)
    levels.push_back(machine.chipLink);
  if (double(settings.numDpus) > machine.dpusPerChip)
    levels.push_back(machine.rankLink);
  if (settings.numDpus > machine.dpusPerRank())
    levels.push_back(machine.moduleLink);
  if (double(settings.numDpus) > machine.dpusPerRank() * machine.ranksPerModule)
    levels.push_back(machine.systemLink);
  return levels;
}

double linkSeconds(const Settings &settings, const dpu::DpuConfig &machine, const WireSizes &sizes) {
  if (settings.synchronisation == Synchronisation::ParameterServer || !hasLinks(settings, machine))
    return 0;
  // Of one DPU; DPUs that share memory take turns.
  double bytes = double(closedFormLinkBytes(settings, sizes)) / double(settings.numDpus);
  if (settings.synchronisation == Synchronisation::Shared)
    bytes *= double(std::min(settings.sharedDpus, settings.numDpus));
  double messages = settings.synchronisation == Synchronisation::Ring ? 2 * double(settings.numDpus - 1)
                    : settings.algorithm == Algorithm::Admm           ? 3
                                                                      : 2;
  double slowest = 0, sum = 0;
  for (const dpu::LinkLevel &level : crossedLevels(settings, machine)) {
    double seconds = messages * level.seconds(bytes / messages);
    slowest = std::max(slowest, seconds);
    sum += seconds;
  }
  return settings.synchronisation == Synchronisation::InNetwork ? sum : slowest;
}

} // namespace

bool hasLinks(const Settings &settings, const dpu::DpuConfig &machine) {
  std::vector<dpu::LinkLevel> levels = crossedLevels(settings, machine);
  return settings.synchronisation == Synchronisation::ParameterServer ||
         std::all_of(levels.begin(), levels.end(), [](const dpu::LinkLevel &level) { return level.bandwidthGBs > 0; });
}

double transferSeconds(const dpu::DpuConfig &machine, bool isToDpu, int64_t bytesPerDpu, int64_t numDpus,
                       int64_t jobDpus) {
  if (bytesPerDpu <= 0)
    return 0;
  double perRank = machine.dpusPerRank();
  auto ranks = static_cast<unsigned>(std::ceil(double(jobDpus) / perRank));
  auto most = static_cast<unsigned>(std::ceil(double(numDpus) / ranks));
  return machine.transferUs(isToDpu ? machine.toMram : machine.fromMram, double(bytesPerDpu), ranks, most) * 1e-6;
}

RoundTime roundTime(const Settings &settings, const dpu::DpuConfig &machine, const WorkShape &shape,
                    const WireSizes &sizes) {
  RoundTime time;
  int64_t dpus = settings.numDpus;
  bool isGradient = settings.algorithm == Algorithm::GaSgd;
  for (const Transfer &transfer : transfersOfRound(settings, sizes))
    if (transfer.cargo != Cargo::Link) {
      double seconds = transferSeconds(machine, transfer.isToDpu, transfer.bytesPerDpu, transfer.numDpus, dpus);
      (transfer.isToDpu ? time.toDpu : time.fromDpu) += seconds;
      if (!transfer.isToDpu && transfer.cargo != Cargo::Bias) {
        // Sums of w and u, u and u - z read and written.
        double passes = settings.algorithm == Algorithm::Admm ? 6 : 1;
        time.aggregation +=
            passes * double(transfer.bytesPerDpu) * double(transfer.numDpus) / (machine.memoryGBs * 1e9);
      }
    }
  time.launch = machine.launchUs * 1e-6;
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
  double rate = double(settings.numTasklets), alone = double(machine.dispatchCycles);
  double ofAll = std::max(1.0, alone / rate),
         ofStep = cyclesOfShared(settings, machine, shape.features, shape.isSparse);
  // Entries belong to tasklets by chance: the largest of `rate` loads of `mean` is about mean + sqrt(2 mean log(rate)).
  double mean = double(shape.entriesPerRow) / rate;
  double busiest = std::min(double(shape.entriesPerRow), mean + std::sqrt(2 * mean * std::log(rate)));
  double ofOwned = std::max(1.0, alone * busiest / std::max(1.0, double(shape.entriesPerRow)));
  double ofSamples =
      samples * (sample.parallel * (shape.isSparse ? ofAll : ofStep) + sample.owned * ofOwned + sample.serial * alone);
  double ofSteps = double(steps) * (step.parallel * ofStep + step.serial * alone);
  // With one tasklet nothing overlaps; with eleven or more, computing hides DMA up to its own length. Samples and steps
  // follow each other.
  auto shown = [&](double dma, double compute) {
    return dma - std::min(dma, compute) * std::min(1.0, (rate - 1) / 10.0);
  };
  double compute = ofSamples + ofSteps + Costs::launchAlone * alone;
  double movement = shown(samples * sample.dmaCycles, ofSamples) + shown(double(steps) * step.dmaCycles, ofSteps);
  time.dmaBytes = samples * sample.dmaBytes + double(steps) * step.dmaBytes;
  double cycleSeconds = 1e-6 / machine.clockMHz;
  time.compute = compute * cycleSeconds;
  time.movement = movement * cycleSeconds;
  return time;
}

double ownTransferSeconds(const Settings &settings, const dpu::DpuConfig &machine, const WireSizes &sizes) {
  int64_t dpus = std::min(settings.numDpus, static_cast<int64_t>(machine.dpusPerRank()));
  double seconds = 0;
  for (const Transfer &transfer : transfersOfRound(settings, sizes))
    if (transfer.cargo != Cargo::Link)
      seconds +=
          transferSeconds(machine, transfer.isToDpu, transfer.bytesPerDpu, std::min(transfer.numDpus, dpus), dpus);
  return seconds;
}

namespace {

/// What the sigmoid needs.
int64_t tableBytes(const Settings &settings) {
  if (settings.loss != Loss::Logistic)
    return 0;
  return settings.isPimOpt ? int64_t(4) << PimOptSigmoid::kTableLog2 : SigmoidTable::kEntries * 4;
}

} // namespace

int64_t mramBytes(const Settings &settings, const WorkShape &shape, const WireSizes &sizes) {
  int64_t labels = (shape.rowsPerDpu * 4 + 7) / 8 * 8;
  int64_t models = sizes.modelBytes * (settings.algorithm == Algorithm::Admm ? 2 : 1);
  return shape.rowsPerDpu * sizes.rowBytes + labels + models + sizes.gradientBytes + 2 * sizes.biasBytes +
         tableBytes(settings);
}

double loadSeconds(const Settings &settings, const dpu::DpuConfig &machine, const WorkShape &shape,
                   const WireSizes &sizes) {
  double seconds = 0;
  for (int64_t bytes : {shape.rowsPerDpu * sizes.rowBytes, shape.rowsPerDpu * 4})
    seconds += transferSeconds(machine, true, bytes, settings.numDpus, settings.numDpus);
  return seconds;
}

double setUpSeconds(const Settings &settings, const dpu::DpuConfig &machine) {
  double tables = transferSeconds(machine, true, tableBytes(settings), settings.numDpus, settings.numDpus);
  return machine.loadUs * 1e-6 + tables / machine.broadcastSpeedup;
}

} // namespace nearbank::sgd
