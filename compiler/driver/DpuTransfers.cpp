// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/DpuTransfers.h"

#include "runtime/DpuKernel.h"
#include "sim/dpu/DpuConfig.h"
#include "sim/dpu/DpuDevice.h"

#include <algorithm>
#include <numeric>

namespace nearbank::driver {

double DpuTransfers::launchNs(size_t nest) const {
  const std::vector<CrossingRecord> &records = perNest[nest];
  return std::accumulate(records.begin(), records.end(), 0.0,
                         [](double sum, const CrossingRecord &record) { return sum + record.timeNs; });
}

/// Buffers whose content does not change between runs.
static std::vector<bool> fixedBuffers(const Program &program) {
  std::vector<bool> isFixed(program.buffers.size());
  for (size_t i = 0; i < isFixed.size(); ++i)
    isFixed[i] = program.buffers[i].kind == BufferKind::Parameter || program.buffers[i].kind == BufferKind::Constant;
  for (const NestInstance &nest : program.nests)
    for (const NestOperand &operand : nest.operands)
      if (operand.writes)
        isFixed[operand.buffer] = nest.isHoisted;
  return isFixed;
}

DpuTransfers transfersOfProgram(const Program &program, std::span<const PimKernel> kernels,
                                const MachineConfig &machine) {
  std::vector<bool> isFixed = fixedBuffers(program);
  DpuTransfers transfers;
  size_t nests = program.nests.size();
  transfers.perNest.resize(nests);
  transfers.residentBytes.resize(nests);
  transfers.residentOperands.resize(nests);
  auto canStay = [&](const NestInstance &nest, const DpuKernel::Operand &operand) {
    const NestOperand &bound = nest.operands[operand.argument];
    return operand.isRead && !operand.isWritten && isFixed[bound.buffer] && !nest.isHoisted;
  };
  uint64_t working = 0; // Of the nest that needs most beside what may stay.
  for (const NestInstance &nest : program.nests)
    if (const DpuKernel *kernel = kernels[nest.kernel].dpu.get()) {
      uint64_t bytes = 0;
      for (const DpuKernel::Operand &operand : kernel->operands)
        bytes += canStay(nest, operand) ? 0 : operand.bytes;
      working = std::max(working, bytes);
    }
  double instructions = 0; // Of all programs, which one program holds as long as they fit.
  for (const PimKernel &kernel : kernels)
    instructions += kernel.dpu ? static_cast<double>(kernel.dpu->instructions) : 0;
  bool loadsPrograms = instructions > machine.dpus->iramInstructions * machine.dpus->iramMargin;
  uint64_t held = 0;
  for (uint32_t i = 0; i < nests; ++i) {
    const NestInstance &nest = program.nests[i];
    const DpuKernel *kernel = kernels[nest.kernel].dpu.get();
    if (!kernel)
      continue;
    std::vector<bool> isResident(nest.operands.size());
    for (const DpuKernel::Operand &operand : kernel->operands) {
      // A nest that does not keep its weights needs room for them while it runs.
      if (!canStay(nest, operand) || held + working + kernel->mramBytes > DpuKernel::mramRoom)
        continue;
      held += operand.bytes;
      isResident[operand.argument] = true;
      transfers.residentBytes[i] += operand.bytes;
      transfers.residentOperands[i].push_back(operand.argument);
    }
    transfers.perNest[i] =
        dpu::transfersOf(*kernel, *machine.dpus, i, nest.operands, isResident, machine.host.dramBandwidthGBs);
    if (loadsPrograms)
      transfers.perNest[i].push_back({i, "load", -1, 0, machine.dpus->loadUs * 1e3});
  }
  return transfers;
}

} // namespace nearbank::driver
