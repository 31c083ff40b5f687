// SPDX-License-Identifier: Apache-2.0
#include "sim/dpu/DpuDevice.h"

#include "runtime/Error.h"
#include "runtime/HostThreads.h"
#include "sim/dpu/Decode.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>

#include <fmt/format.h>

namespace nearbank::dpu {
namespace {

/// Cycles up to which a DPU is simulated whole in an estimate: half a second of `exact`.
constexpr double wholeCycles = 20e6;
/// Pieces of work of each tasklet in the two cut launches of a long kernel.
constexpr int64_t firstRounds = 2, secondRounds = 4;

/// Where DPU `dpu` of `of` DPUs finds a name. @throws InternalError NB0902 when emitted code lacks it
uint32_t addressOf(const Program &program, const char *name) {
  const Symbol *symbol = program.find(name);
  if (!symbol)
    throw InternalError({"NB0902", "the placed program is inconsistent", "a DPU program", name, "no such symbol",
                         "report this with the command that shows it"});
  return symbol->address;
}

} // namespace

/// One launch on some of the kernel's DPUs.
struct DpuDevice::Launch {
  const PimKernel &kernel;
  std::span<const BoundBuffer> buffers;
  std::span<const NestOperand> operands;
  std::shared_ptr<const Program> program;
  std::vector<int64_t> dpus;
  int64_t items = 0; ///< Most pieces of work of each DPU; 0 means all.
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
  Launch launch{kernel, buffers, operands, Program::load(kernel.elf, "", *config_), {}, 0, false};
  std::set<int64_t> chosen = {0, layout.dpus() / 2, layout.dpus() - 1};
  launch.dpus.assign(chosen.begin(), chosen.end());
  KernelStatus status;
  int64_t first = firstRounds * layout.tasklets, second = secondRounds * layout.tasklets;
  PimTiming timing;
  bool isCut = layout.items > 2 * second;
  if (isCut) {
    launch.items = first;
    timing = run(launch, status);
    double perItem = static_cast<double>(timing.coreCycles) / static_cast<double>(first);
    isCut = perItem * static_cast<double>(layout.items) > wholeCycles;
    launch.items = isCut ? second : 0;
  }
  PimTiming longer = run(launch, status);
  double share = static_cast<double>(layout.dpus()) / static_cast<double>(launch.dpus.size());
  if (isCut) {
    auto grow = [&](double a, double b) {
      return b + (b - a) / static_cast<double>(second - first) * static_cast<double>(layout.items - second);
    };
    longer.timeNs = grow(timing.timeNs, longer.timeNs);
    double work = grow(static_cast<double>(timing.instructions), static_cast<double>(longer.instructions)) /
                  static_cast<double>(longer.instructions);
    longer.coreCycles = static_cast<uint64_t>(longer.timeNs * config_->clockMHz * 1e-3);
    share *= work;
  }
  longer.instructions = static_cast<uint64_t>(static_cast<double>(longer.instructions) * share);
  longer.dramBytes = static_cast<uint64_t>(static_cast<double>(longer.dramBytes) * share);
  longer.isSampled = isCut || layout.dpus() > static_cast<int64_t>(launch.dpus.size());
  longer.lowNs = longer.highNs = longer.timeNs;
  return longer;
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
