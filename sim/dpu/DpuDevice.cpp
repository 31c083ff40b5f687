// SPDX-License-Identifier: Apache-2.0
#include "sim/dpu/DpuDevice.h"

#include "runtime/Error.h"
#include "runtime/HostThreads.h"
#include "sim/dpu/Decode.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <set>

#include <fmt/format.h>

namespace nearbank::dpu {
namespace {

/// Address of a variable of the emitted program. @throws InternalError NB0902 when emitted code lacks it
uint32_t addressOf(const Program &program, const char *name) {
  const Symbol *symbol = program.find(name);
  if (!symbol)
    throw InternalError({"NB0902", "the placed program is inconsistent", "a DPU program", name, "no such symbol",
                         "report this with the command that shows it"});
  return symbol->address;
}

/// A whole launch from cut ones, which are linear in the pieces of work and in the iterations of the reduction (SA-5).
class CutLaunches {
public:
  CutLaunches(const DpuKernel &layout, std::function<PimTiming(int64_t items, int64_t depth)> run)
      : layout_(layout), run_(std::move(run)) {}

  PimTiming estimate() {
    int64_t tasklets = layout_.tasklets, block = layout_.depthBlock;
    bool canCutDepth = block > 0 && layout_.depth >= leastBlocks * block;
    first_ = {firstRounds * tasklets, canCutDepth ? block : 0};
    second_ = {secondRounds * tasklets, canCutDepth ? 2 * block : 0};
    bool canCutItems = layout_.items > 2 * second_.items;
    if (!canCutItems)
      first_.items = second_.items = 0;
    if (!canCutItems && !canCutDepth)
      return run_(0, 0);
    PimTiming shortest = run_(first_.items, first_.depth);
    if (cyclesOf(shortest) * shareOf(first_) <= DpuDevice::wholeCycles)
      return run_(0, 0);
    PimTiming middle = canCutItems && canCutDepth ? run_(second_.items, first_.depth) : shortest;
    PimTiming longest = run_(second_.items, second_.depth);
    auto grow = [&](auto of) { return whole(of(shortest), of(middle), of(longest)); };
    PimTiming timing = longest;
    timing.timeNs = grow([](const PimTiming &one) { return one.timeNs; });
    timing.coreCycles = static_cast<uint64_t>(grow(cyclesOf));
    timing.instructions = static_cast<uint64_t>(grow([](const PimTiming &one) { return double(one.instructions); }));
    timing.dramBytes = static_cast<uint64_t>(grow([](const PimTiming &one) { return double(one.dramBytes); }));
    timing.isSampled = true;
    double halfWidth = extrapolatedError * (timing.timeNs - longest.timeNs);
    timing.lowNs = timing.timeNs - halfWidth;
    timing.highNs = timing.timeNs + halfWidth;
    return timing;
  }

private:
  struct Cut {
    int64_t items = 0, depth = 0; ///< 0 means all.
  };

  static double cyclesOf(const PimTiming &timing) { return static_cast<double>(timing.coreCycles); }

  /// How many times as much work a whole launch is, roughly.
  double shareOf(const Cut &cut) const {
    double items = cut.items ? double(layout_.items) / double(cut.items) : 1;
    return items * (cut.depth ? double(layout_.depth) / double(cut.depth) : 1);
  }

  double whole(double shortest, double middle, double longest) const {
    double perDepth = 0, perItem = 0, all = longest;
    if (second_.depth) {
      perDepth = (longest - middle) / double(second_.depth - first_.depth);
      all += perDepth * double(layout_.depth - second_.depth);
    }
    if (second_.items) {
      double end = second_.depth ? middle : longest; // Of the launches that differ in items only.
      perItem = (end - shortest) / double(second_.items - first_.items);
      if (second_.depth)
        perItem += perDepth / double(second_.items) * double(layout_.depth - first_.depth);
      all += perItem * double(layout_.items - second_.items);
    }
    return all;
  }

  /// Pieces of work of each tasklet in launches that are cut, and least blocks of a reduction that is.
  static constexpr int64_t firstRounds = 2, secondRounds = 4, leastBlocks = 6;
  /// Half of the interval, as a share of what was extrapolated.
  static constexpr double extrapolatedError = 0.02;

  const DpuKernel &layout_;
  std::function<PimTiming(int64_t, int64_t)> run_;
  Cut first_, second_;
};

} // namespace

/// One launch on some of the kernel's DPUs.
struct DpuDevice::Launch {
  const PimKernel &kernel;
  std::span<const BoundBuffer> buffers;
  std::span<const NestOperand> operands;
  std::shared_ptr<const Program> program;
  std::vector<int64_t> dpus;
  int64_t items = 0, depth = 0; ///< Most pieces of work of each DPU, and iterations of its reduction; 0 means all.
  bool keepsResults = true;

  std::byte *hostOf(const DpuKernel::Operand &operand) const {
    const NestOperand &bound = operands[operand.argument];
    return static_cast<std::byte *>(buffers[bound.buffer].host) + bound.byteOffset;
  }
};

DpuDevice::DpuDevice(const MachineConfig &machine, int threads)
    : config_(machine.dpus),
      engine_(config_->translator.empty() ? makeExactEngine(*config_) : makeFastEngine(*config_, config_->translator)),
      numThreads_(static_cast<unsigned>(threads > 0 ? threads : availableCores())) {}

PimTiming DpuDevice::run(const Launch &launch, KernelStatus &status) {
  const DpuKernel &layout = *launch.kernel.dpu;
  uint32_t heap = addressOf(*launch.program, "__sys_used_mram_end") - MramBase;
  uint32_t arguments = addressOf(*launch.program, "arguments"), words = addressOf(*launch.program, "status");
  std::vector<std::vector<std::byte>> shared(layout.operands.size()); // Of operands that all DPUs hold alike.
  for (size_t i = 0; i < shared.size(); ++i)
    if (const DpuKernel::Operand &operand = layout.operands[i]; operand.isRead && operand.isBroadcast()) {
      shared[i].resize(operand.bytes);
      layout.pack(operand, layout.partOf(0), launch.hostOf(operand), shared[i].data());
    }
  std::vector<LaunchStats> stats(launch.dpus.size());
  std::vector<KernelStatus> statuses(launch.dpus.size());
  std::vector<std::string> faults(launch.dpus.size());
  auto runOne = [&](int64_t number) {
    DpuKernel::Part part = layout.partOf(launch.dpus[number]);
    Dpu dpu;
    dpu.load(launch.program);
    std::vector<std::byte> packed;
    for (size_t i = 0; i < shared.size(); ++i) {
      const DpuKernel::Operand &operand = layout.operands[i];
      if (!operand.isRead)
        continue;
      if (shared[i].empty()) {
        packed.assign(operand.bytes, std::byte{0});
        layout.pack(operand, part, launch.hostOf(operand), packed.data());
      }
      const std::vector<std::byte> &bytes = shared[i].empty() ? packed : shared[i];
      dpu.mram.write(heap + static_cast<uint32_t>(operand.mramOffset), bytes.data(), bytes.size());
    }
    size_t splits = std::max<size_t>(1, layout.splits.size());
    std::vector<uint32_t> values(2 * splits + 2);
    for (size_t i = 0; i < layout.splits.size(); ++i) {
      values[i] = static_cast<uint32_t>(part.first[i]);
      values[splits + i] = static_cast<uint32_t>(part.count[i]);
    }
    values[2 * splits] = static_cast<uint32_t>(launch.items);
    values[2 * splits + 1] = static_cast<uint32_t>(launch.depth);
    std::memcpy(dpu.wram() + arguments, values.data(), values.size() * sizeof(uint32_t));
    engine_->run(dpu, {});
    stats[number] = dpu.last;
    if (dpu.fault) {
      faults[number] = describeFault(dpu, *dpu.fault);
      return;
    }
    int32_t found[2];
    std::memcpy(found, dpu.wram() + words, sizeof found);
    statuses[number] = {found[0], found[1]};
    if (!launch.keepsResults)
      return;
    for (const DpuKernel::Operand &operand : layout.operands) {
      if (!operand.isWritten)
        continue;
      packed.resize(operand.bytes);
      dpu.mram.read(heap + static_cast<uint32_t>(operand.mramOffset), packed.data(), packed.size());
      layout.unpack(operand, part, packed.data(), launch.hostOf(operand));
    }
  };
  std::mutex thrownMutex;
  std::exception_ptr thrown; // The pool's work must not throw.
  auto runGuarded = [&](int64_t number) {
    try {
      runOne(number);
    } catch (...) {
      std::lock_guard lock(thrownMutex);
      thrown = std::current_exception();
    }
  };
  HostThreads::shared().run(static_cast<int64_t>(launch.dpus.size()), static_cast<int>(numThreads_), runGuarded);
  if (thrown)
    std::rethrow_exception(thrown);
  for (size_t i = 0; i < faults.size(); ++i)
    if (!faults[i].empty())
      throw DeviceError({"NB0806", "a DPU is in fault", fmt::format("DPU {}", launch.dpus[i]), "", faults[i], ""});
  for (const KernelStatus &found : statuses)
    if (found.code != 0 && status.code == 0)
      status = found;

  LaunchStats sum;
  PimTiming timing;
  for (const LaunchStats &one : stats) {
    sum.add(one);
    timing.coreCycles = std::max(timing.coreCycles, one.cycles);
  }
  timing.timeNs = static_cast<double>(timing.coreCycles) / config_->clockMHz * 1e3;
  timing.instructions = sum.instructions;
  timing.dramBytes = sum.dmaReadBytes + sum.dmaWriteBytes;
  timing.coresUsed = layout.dpus();
  auto count = [&](const char *name, double value) { timing.counters.emplace_back(name, value); };
  count("dpuSlots", static_cast<double>(sum.slots));
  for (unsigned kind = 0; kind < NumSlotKinds; ++kind)
    count((std::string(SlotKindNames[kind]) + "Slots").c_str(), static_cast<double>(sum.slotsOf[kind]));
  count("dmaTransfers", static_cast<double>(sum.dmaReads + sum.dmaWrites));
  count("dmaStallCycles", static_cast<double>(sum.dmaStallCycles));
  count("dmaBusyCycles", static_cast<double>(sum.dmaBusyCycles));
  count("simulatedDpus", static_cast<double>(launch.dpus.size()));
  count("slotsPerCycle", sum.cycles ? static_cast<double>(sum.slots) / static_cast<double>(sum.cycles) : 0);
  return timing;
}

PimTiming DpuDevice::execute(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                             std::span<const NestOperand> operands, KernelStatus &status) {
  Launch launch{kernel, buffers, operands, Program::load(kernel.elf, "", *config_), {}};
  for (int64_t dpu = 0; dpu < kernel.dpu->dpus(); ++dpu)
    launch.dpus.push_back(dpu);
  return run(launch, status);
}

PimTiming DpuDevice::estimate(const PimKernel &kernel, std::span<const BoundBuffer> buffers,
                              std::span<const NestOperand> operands) {
  const DpuKernel &layout = *kernel.dpu;
  Launch launch{kernel, buffers, operands, Program::load(kernel.elf, "", *config_), {}, 0, 0, false};
  std::set<int64_t> chosen = {0, layout.dpus() / 2, layout.dpus() - 1};
  launch.dpus.assign(chosen.begin(), chosen.end());
  PimTiming timing = CutLaunches(layout, [&](int64_t items, int64_t depth) {
                       launch.items = items;
                       launch.depth = depth;
                       KernelStatus status;
                       return run(launch, status);
                     }).estimate();
  double share = static_cast<double>(layout.dpus()) / static_cast<double>(launch.dpus.size());
  timing.instructions = static_cast<uint64_t>(static_cast<double>(timing.instructions) * share);
  timing.dramBytes = static_cast<uint64_t>(static_cast<double>(timing.dramBytes) * share);
  if (share > 1 && !timing.isSampled) {
    timing.isSampled = true;
    timing.lowNs = timing.highNs = timing.timeNs;
  }
  return timing;
}

std::vector<CrossingRecord> transfersOf(const DpuKernel &kernel, const DpuConfig &config, uint32_t nest,
                                        std::span<const NestOperand> operands, const std::vector<bool> &isResident,
                                        double hostBandwidthGBs) {
  auto dpus = static_cast<unsigned>(kernel.dpus());
  unsigned ranks = (dpus + config.dpusPerRank() - 1) / config.dpusPerRank();
  unsigned inRank = std::min(dpus, config.dpusPerRank());
  std::vector<CrossingRecord> records;
  auto add = [&](const DpuKernel::Operand &operand, bool isTo) {
    auto buffer = static_cast<int64_t>(operands[operand.argument].buffer);
    bool isBroadcast = isTo && operand.isBroadcast();
    auto size = static_cast<double>(operand.bytes);
    double us = isBroadcast ? config.broadcastUs(size, ranks)
                            : config.transferUs(isTo ? config.toMram : config.fromMram, size, ranks, inRank);
    uint64_t bytes = operand.bytes * dpus;
    records.push_back({nest, !isTo ? "gather" : isBroadcast ? "broadcast" : "scatter", buffer, bytes, us * 1e3});
    // Read once and written once by the host.
    uint64_t copied = isBroadcast ? operand.bytes : bytes;
    if (!operand.isContiguous())
      records.push_back({nest, "arrange", buffer, 0, 2.0 * static_cast<double>(copied) / hostBandwidthGBs});
  };
  for (const DpuKernel::Operand &operand : kernel.operands)
    if (operand.isRead && !isResident[operand.argument])
      add(operand, true);
  records.push_back({nest, "launch", -1, 0, config.launchUs * 1e3});
  for (const DpuKernel::Operand &operand : kernel.operands)
    if (operand.isWritten)
      add(operand, false);
  return records;
}

} // namespace nearbank::dpu
