// SPDX-License-Identifier: Apache-2.0
// The one model of crossings, used with and without execution.
#include "runtime/Residency.h"

#include <algorithm>
#include <cmath>

namespace nearbank {

void ByteSet::add(uint64_t begin, uint64_t end, double weight) {
  if (begin >= end)
    return;
  remove(begin, end);
  auto next = intervals_.lower_bound(begin);
  if (next != intervals_.end() && next->first == end && next->second.weight == weight) {
    end = next->second.end;
    next = intervals_.erase(next);
  }
  if (next != intervals_.begin()) {
    Interval &last = std::prev(next)->second;
    if (last.end == begin && last.weight == weight) {
      last.end = end;
      return;
    }
  }
  intervals_.emplace(begin, Interval{end, weight});
}

void ByteSet::remove(uint64_t begin, uint64_t end) {
  if (begin >= end)
    return;
  auto it = intervals_.upper_bound(begin);
  if (it != intervals_.begin() && std::prev(it)->second.end > begin)
    --it;
  while (it != intervals_.end() && it->first < end) {
    auto [first, interval] = *it;
    it = intervals_.erase(it);
    if (first < begin)
      intervals_.emplace(first, Interval{begin, interval.weight});
    if (interval.end > end)
      intervals_.emplace(end, interval);
  }
}

double ByteSet::overlap(uint64_t begin, uint64_t end) const {
  double sum = 0;
  auto it = intervals_.upper_bound(begin);
  if (it != intervals_.begin())
    --it;
  for (; it != intervals_.end() && it->first < end; ++it) {
    uint64_t from = std::max(begin, it->first), to = std::min(end, it->second.end);
    sum += to > from ? static_cast<double>(to - from) * it->second.weight : 0;
  }
  return sum;
}

CoherenceConfig coherenceBeside(const CoherenceConfig &cost, const MachineConfig &host) {
  CoherenceConfig beside = cost;
  int64_t cores = host.core.count, lastLevels = std::max<int64_t>(1, cores / host.l3SharedBy);
  beside.hostLastLevelBytes = host.l3.sizeBytes * lastLevels;
  beside.parallelLines = cost.parallelLines * cores;
  double bandwidthGBs = static_cast<double>(host.dram.vaults) * host.dram.vaultBandwidthGBs;
  double lineNs = static_cast<double>(cost.lineBytes) / bandwidthGBs;
  beside.flushLineNs = std::max(cost.flushLineNs, lineNs * static_cast<double>(beside.parallelLines));
  beside.fetchLineNs = 0;
  return beside;
}

double dirtyShare(uint64_t versionBytes, const CoherenceConfig &cost) {
  // What the last-level cache cannot hold has been written back on its own already.
  auto held = static_cast<double>(cost.hostLastLevelBytes), written = static_cast<double>(versionBytes);
  return written > held ? held / written : 1;
}

double crossingNs(double bytes, Site site, const CoherenceConfig &cost) {
  double lineNs = site == Site::Pim ? cost.flushLineNs : cost.fetchLineNs;
  return bytes / static_cast<double>(cost.lineBytes) * lineNs / static_cast<double>(cost.parallelLines);
}

std::pair<uint64_t, uint64_t> spanOf(const ProgramOutput &output) {
  uint64_t elementBytes = bytesOf(output.elementType);
  int64_t lowest = output.elementOffset, highest = output.elementOffset;
  for (size_t i = 0; i < output.sizes.size(); ++i) {
    if (output.sizes[i] == 0)
      return {0, 0};
    int64_t reach = (output.sizes[i] - 1) * output.strides[i];
    (reach < 0 ? lowest : highest) += reach;
  }
  return {lowest * elementBytes, (highest + 1) * elementBytes};
}

bool isDenseWrite(const NestOperand &operand) {
  return operand.writes && !operand.reads && operand.distinctBytes == operand.spanEnd - operand.spanBegin;
}

Residency::Residency(const Program &program, const MachineConfig &machine, const NestTransfers *transfers)
    : program_(program), machine_(machine), transfers_(transfers), dirty_(program.buffers.size()) {
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferKind::Input)
      dirty_[i].host.add(0, program.buffers[i].bytes, dirtyShare(program.buffers[i].bytes, machine.coherence));
}

void Residency::moveControl(uint32_t nest, Site site, std::vector<CrossingRecord> &crossings) {
  if (site == site_)
    return;
  site_ = site;
  bool toPim = site == Site::Pim;
  crossings.push_back(
      {nest, toPim ? "launch" : "return", -1, 0, toPim ? machine_.coherence.launchNs : machine_.coherence.returnNs});
}

void Residency::need(uint32_t nest, uint32_t buffer, uint64_t begin, uint64_t end, Site site,
                     std::vector<CrossingRecord> &crossings) {
  bool onPim = site == Site::Pim;
  ByteSet &remote = onPim ? dirty_[buffer].host : dirty_[buffer].pim;
  double bytes = remote.overlap(begin, end);
  if (bytes == 0)
    return;
  remote.remove(begin, end);
  crossings.push_back({nest, onPim ? "flush" : "fetch", buffer, static_cast<uint64_t>(std::llround(bytes)),
                       crossingNs(bytes, site, machine_.coherence)});
}

void Residency::enter(uint32_t nest, Site site, std::vector<CrossingRecord> &crossings) {
  const NestInstance &instance = program_.nests[nest];
  if (instance.isHoisted)
    return;
  if (transfers_) {
    // DPUs take their operands from host memory and give their results back at each launch.
    if (site == Site::Pim)
      crossings.insert(crossings.end(), (*transfers_)[nest].begin(), (*transfers_)[nest].end());
    return;
  }
  moveControl(nest, site, crossings);
  for (const NestOperand &operand : instance.operands)
    if (operand.reads || (operand.writes && !isDenseWrite(operand)))
      need(nest, operand.buffer, operand.spanBegin, operand.spanEnd, site, crossings);
  for (const NestOperand &operand : instance.operands) {
    if (!operand.writes)
      continue;
    Dirty &dirty = dirty_[operand.buffer];
    bool onPim = site == Site::Pim;
    ByteSet &own = onPim ? dirty.pim : dirty.host;
    ByteSet &remote = onPim ? dirty.host : dirty.pim;
    double share = onPim ? 1 : dirtyShare(operand.spanEnd - operand.spanBegin, machine_.coherence);
    own.add(operand.spanBegin, operand.spanEnd, share);
    remote.remove(operand.spanBegin, operand.spanEnd);
  }
}

void Residency::finish(std::vector<CrossingRecord> &crossings) {
  if (program_.nests.empty() || transfers_)
    return;
  auto last = static_cast<uint32_t>(program_.nests.size() - 1);
  moveControl(last, Site::Host, crossings);
  for (const ProgramOutput &output : program_.outputs) {
    auto [begin, end] = spanOf(output);
    need(last, output.buffer, begin, end, Site::Host, crossings);
  }
}

} // namespace nearbank
