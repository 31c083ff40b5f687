// SPDX-License-Identifier: Apache-2.0
// The one model of crossings, used with and without execution.
#include "runtime/Residency.h"

#include <algorithm>

namespace nearbank {

void ByteSet::add(uint64_t begin, uint64_t end) {
  if (begin >= end)
    return;
  auto it = intervals_.upper_bound(begin);
  if (it != intervals_.begin() && std::prev(it)->second >= begin)
    --it;
  while (it != intervals_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    it = intervals_.erase(it);
  }
  intervals_.emplace(begin, end);
}

void ByteSet::remove(uint64_t begin, uint64_t end) {
  if (begin >= end)
    return;
  auto it = intervals_.upper_bound(begin);
  if (it != intervals_.begin() && std::prev(it)->second > begin)
    --it;
  while (it != intervals_.end() && it->first < end) {
    auto [first, last] = *it;
    it = intervals_.erase(it);
    if (first < begin)
      intervals_.emplace(first, begin);
    if (last > end)
      intervals_.emplace(end, last);
  }
}

uint64_t ByteSet::overlap(uint64_t begin, uint64_t end) const {
  uint64_t bytes = 0;
  auto it = intervals_.upper_bound(begin);
  if (it != intervals_.begin())
    --it;
  for (; it != intervals_.end() && it->first < end; ++it) {
    uint64_t from = std::max(begin, it->first), to = std::min(end, it->second);
    bytes += to > from ? to - from : 0;
  }
  return bytes;
}

bool isDenseWrite(const NestOperand &operand) {
  return operand.writes && !operand.reads && operand.distinctBytes == operand.spanEnd - operand.spanBegin;
}

Residency::Residency(const Program &program, const MachineConfig &machine)
    : program_(program), machine_(machine), dirty_(program.buffers.size()) {
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferKind::Input)
      dirty_[i].host.add(0, program.buffers[i].bytes);
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
  const CoherenceConfig &cost = machine_.coherence;
  bool onPim = site == Site::Pim;
  ByteSet &remote = onPim ? dirty_[buffer].host : dirty_[buffer].pim;
  uint64_t bytes = remote.overlap(begin, end);
  if (bytes == 0)
    return;
  remote.remove(begin, end);
  // What the host's last-level cache cannot hold has been written back on its own already.
  if (onPim)
    bytes = std::min<uint64_t>(bytes, cost.hostLastLevelBytes);
  uint64_t lines = (bytes + cost.lineBytes - 1) / cost.lineBytes;
  double lineNs = onPim ? cost.flushLineNs : cost.fetchLineNs;
  crossings.push_back({nest, onPim ? "flush" : "fetch", buffer, bytes,
                       static_cast<double>(lines) * lineNs / static_cast<double>(cost.parallelLines)});
}

void Residency::enter(uint32_t nest, Site site, std::vector<CrossingRecord> &crossings) {
  const NestInstance &instance = program_.nests[nest];
  if (instance.isHoisted)
    return;
  moveControl(nest, site, crossings);
  for (const NestOperand &operand : instance.operands)
    if (operand.reads || (operand.writes && !isDenseWrite(operand)))
      need(nest, operand.buffer, operand.spanBegin, operand.spanEnd, site, crossings);
  for (const NestOperand &operand : instance.operands) {
    if (!operand.writes)
      continue;
    Dirty &dirty = dirty_[operand.buffer];
    ByteSet &own = site == Site::Pim ? dirty.pim : dirty.host;
    ByteSet &remote = site == Site::Pim ? dirty.host : dirty.pim;
    own.add(operand.spanBegin, operand.spanEnd);
    remote.remove(operand.spanBegin, operand.spanEnd);
  }
}

void Residency::finish(std::vector<CrossingRecord> &crossings) {
  if (program_.nests.empty())
    return;
  auto last = static_cast<uint32_t>(program_.nests.size() - 1);
  moveControl(last, Site::Host, crossings);
  for (const ProgramOutput &output : program_.outputs) {
    uint64_t elementBytes = bytesOf(output.elementType);
    int64_t lowest = output.elementOffset, highest = output.elementOffset;
    bool isEmpty = false;
    for (size_t i = 0; i < output.sizes.size(); ++i) {
      isEmpty = isEmpty || output.sizes[i] == 0;
      int64_t reach = (output.sizes[i] - 1) * output.strides[i];
      (reach < 0 ? lowest : highest) += reach;
    }
    if (!isEmpty)
      need(last, output.buffer, lowest * elementBytes, (highest + 1) * elementBytes, Site::Host, crossings);
  }
}

} // namespace nearbank
