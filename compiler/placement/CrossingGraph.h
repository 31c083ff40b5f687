// SPDX-License-Identifier: Apache-2.0
// What data crosses sides as a sum over buffer versions, each a function of its producer's and consumers' sites.
#pragma once

#include "runtime/Executor.h"
#include "runtime/Machine.h"
#include "runtime/Program.h"

#include <optional>
#include <span>
#include <vector>

namespace nearbank::placement {

/// Bytes that one nest wrote, or that the caller passed in, and that the same nests read before they are overwritten.
struct VersionCost {
  std::optional<uint32_t> producer; ///< Nest index; none when the caller wrote it, on the host.
  std::vector<uint32_t> consumers;  ///< Nest indices, ascending.
  bool isReadByCaller = false;      ///< Part of a program output.
  double flushNs = 0;               ///< Once, when the producer runs on the host and a consumer on PIM.
  double fetchNs = 0; ///< Once, when the producer runs on PIM and a consumer, or the caller, is on the host.
};

/// The crossings of a program for every placement: CX-1 to CX-3 of docs/model.md, the model of modelCrossings().
///
/// A write makes a version of each byte that it covers; a strided writer reads the old one first. Slices are versions
/// of their own where they do not overlap. Hoisted nests are outside: what they write is resident on both sides.
class CrossingGraph {
public:
  CrossingGraph(const Program &program, const MachineConfig &machine);

  /// Timed (not hoisted) nests in program order.
  std::span<const uint32_t> timedNests() const { return timed_; }
  std::span<const VersionCost> versions() const { return versions_; }
  double launchNs() const { return launchNs_; }
  double returnNs() const { return returnNs_; }

  /// Time of all crossings of a placement by nest index; equals the sum of modelCrossings().
  double costNs(std::span<const Site> sites) const;
  /// Change of costNs when the timed nest at `position` of timedNests() alone changes sides.
  double changeNs(std::span<const Site> sites, size_t position) const;

private:
  double switchNs(Site from, Site to) const;
  double versionNs(const VersionCost &version, std::span<const Site> sites, std::optional<uint32_t> moved) const;

  std::vector<uint32_t> timed_;
  std::vector<VersionCost> versions_;
  std::vector<std::vector<uint32_t>> versionsOf_; ///< By nest index: versions that it writes or reads.
  double launchNs_ = 0, returnNs_ = 0;
};

} // namespace nearbank::placement
