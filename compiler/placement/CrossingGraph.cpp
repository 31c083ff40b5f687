// SPDX-License-Identifier: Apache-2.0

#include "compiler/placement/CrossingGraph.h"

#include "runtime/Residency.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace nearbank::placement {
namespace {

/// Stands for the caller among nests; sorts behind them.
constexpr uint32_t caller = UINT32_MAX;

/// Bytes of one buffer that are all of one version and were read by the same nests so far.
struct Piece {
  uint64_t end = 0;
  uint32_t producer = caller;
  double dirtyShare = 1; ///< Of what the host writes.
  std::vector<uint32_t> consumers;
};

/// Walks the program as Residency does, with the sites left open.
class VersionWalk {
public:
  VersionWalk(const Program &program, const CoherenceConfig &cost) : cost_(cost), pieces_(program.buffers.size()) {
    for (uint32_t buffer = 0; buffer < program.buffers.size(); ++buffer)
      if (program.buffers[buffer].kind == BufferKind::Input)
        write(buffer, 0, program.buffers[buffer].bytes, caller);
  }

  void read(uint32_t buffer, uint64_t begin, uint64_t end, uint32_t nest) {
    if (begin >= end)
      return;
    split(buffer, begin);
    split(buffer, end);
    auto &pieces = pieces_[buffer];
    for (auto it = pieces.lower_bound(begin); it != pieces.end() && it->first < end; ++it)
      if (it->second.consumers.empty() || it->second.consumers.back() != nest)
        it->second.consumers.push_back(nest);
  }

  void write(uint32_t buffer, uint64_t begin, uint64_t end, uint32_t nest) {
    if (begin >= end)
      return;
    split(buffer, begin);
    split(buffer, end);
    auto &pieces = pieces_[buffer];
    auto first = pieces.lower_bound(begin), last = pieces.lower_bound(end);
    for (auto it = first; it != last; ++it)
      retire(it->first, it->second);
    pieces.erase(first, last);
    pieces.emplace(begin, Piece{end, nest, dirtyShare(end - begin, cost_), {}});
  }

  /// Versions with consumers; those of one producer and the same consumers are one.
  std::vector<VersionCost> finish() {
    for (const auto &pieces : pieces_)
      for (const auto &[begin, piece] : pieces)
        retire(begin, piece);
    std::vector<VersionCost> versions;
    for (const auto &[ends, bytes] : bytes_) {
      VersionCost version;
      std::tie(std::ignore, version.consumers) = ends;
      if (ends.first != caller)
        version.producer = ends.first;
      if (version.consumers.back() == caller) {
        version.isReadByCaller = true;
        version.consumers.pop_back();
      }
      version.flushNs = crossingNs(bytes.dirty, Site::Pim, cost_);
      version.fetchNs = crossingNs(bytes.written, Site::Host, cost_);
      versions.push_back(std::move(version));
    }
    return versions;
  }

private:
  struct Bytes {
    double dirty = 0, written = 0;
  };

  /// Makes `at` a border between pieces where it lies inside one.
  void split(uint32_t buffer, uint64_t at) {
    auto &pieces = pieces_[buffer];
    auto it = pieces.lower_bound(at);
    if (it == pieces.begin())
      return;
    Piece &before = std::prev(it)->second;
    if (before.end <= at)
      return;
    Piece behind = before;
    before.end = at;
    pieces.emplace_hint(it, at, std::move(behind));
  }

  void retire(uint64_t begin, const Piece &piece) {
    if (piece.consumers.empty())
      return;
    Bytes &bytes = bytes_[{piece.producer, piece.consumers}];
    bytes.written += static_cast<double>(piece.end - begin);
    bytes.dirty += static_cast<double>(piece.end - begin) * piece.dirtyShare;
  }

  const CoherenceConfig &cost_;
  std::vector<std::map<uint64_t, Piece>> pieces_; ///< By buffer, then first byte. Bytes of no piece are clean.
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, Bytes> bytes_;
};

} // namespace

CrossingGraph::CrossingGraph(const Program &program, const MachineConfig &machine)
    : versionsOf_(program.nests.size()), launchNs_(machine.coherence.launchNs), returnNs_(machine.coherence.returnNs) {
  VersionWalk walk(program, machine.coherence);
  for (uint32_t nest = 0; nest < program.nests.size(); ++nest) {
    const NestInstance &instance = program.nests[nest];
    if (instance.isHoisted)
      continue;
    timed_.push_back(nest);
    for (const NestOperand &operand : instance.operands)
      if (operand.reads || (operand.writes && !isDenseWrite(operand)))
        walk.read(operand.buffer, operand.spanBegin, operand.spanEnd, nest);
    for (const NestOperand &operand : instance.operands)
      if (operand.writes)
        walk.write(operand.buffer, operand.spanBegin, operand.spanEnd, nest);
  }
  for (const ProgramOutput &output : program.outputs) {
    auto [begin, end] = spanOf(output);
    walk.read(output.buffer, begin, end, caller);
  }
  versions_ = walk.finish();
  for (uint32_t i = 0; i < versions_.size(); ++i) {
    if (versions_[i].producer)
      versionsOf_[*versions_[i].producer].push_back(i);
    for (uint32_t consumer : versions_[i].consumers)
      versionsOf_[consumer].push_back(i);
  }
}

double CrossingGraph::switchNs(Site from, Site to) const {
  return from == to ? 0 : to == Site::Pim ? launchNs_ : returnNs_;
}

/// Cost of a version when nest `moved` is on the other side than `sites` says.
double CrossingGraph::versionNs(const VersionCost &version, std::span<const Site> sites,
                                std::optional<uint32_t> moved) const {
  auto isOnPim = [&](uint32_t nest) { return (sites[nest] == Site::Pim) != (moved == nest); };
  if (version.producer && isOnPim(*version.producer)) {
    bool isFetched =
        version.isReadByCaller || !std::all_of(version.consumers.begin(), version.consumers.end(), isOnPim);
    return isFetched ? version.fetchNs : 0;
  }
  return std::any_of(version.consumers.begin(), version.consumers.end(), isOnPim) ? version.flushNs : 0;
}

double CrossingGraph::costNs(std::span<const Site> sites) const {
  double cost = 0;
  Site site = Site::Host;
  for (uint32_t nest : timed_) {
    cost += switchNs(site, sites[nest]);
    site = sites[nest];
  }
  cost += switchNs(site, Site::Host);
  for (const VersionCost &version : versions_)
    cost += versionNs(version, sites, std::nullopt);
  return cost;
}

double CrossingGraph::changeNs(std::span<const Site> sites, size_t position) const {
  uint32_t nest = timed_[position];
  Site before = position > 0 ? sites[timed_[position - 1]] : Site::Host;
  Site behind = position + 1 < timed_.size() ? sites[timed_[position + 1]] : Site::Host;
  Site site = sites[nest], other = site == Site::Pim ? Site::Host : Site::Pim;
  double change = switchNs(before, other) + switchNs(other, behind) - switchNs(before, site) - switchNs(site, behind);
  for (uint32_t version : versionsOf_[nest])
    change += versionNs(versions_[version], sites, nest) - versionNs(versions_[version], sites, std::nullopt);
  return change;
}

} // namespace nearbank::placement
