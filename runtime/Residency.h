// SPDX-License-Identifier: Apache-2.0
// Which bytes of which buffer were written last on which side, and what it costs when the other side needs them.
#pragma once

#include "runtime/Executor.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace nearbank {

/// A set of byte positions with a weight each, kept as disjoint intervals.
class ByteSet {
public:
  /// Puts [begin, end) in, with the weight that each of its bytes counts in overlap().
  void add(uint64_t begin, uint64_t end, double weight = 1);
  void remove(uint64_t begin, uint64_t end);
  /// Sum of the weights of the bytes of [begin, end) that are in the set.
  double overlap(uint64_t begin, uint64_t end) const;

private:
  struct Interval {
    uint64_t end = 0;
    double weight = 1;
  };
  std::map<uint64_t, Interval> intervals_; ///< By first byte.
};

/// Follows a program nest by nest and records what crosses sides.
///
/// Parameters, constants and what hoisted nests compute are resident on both sides. Inputs start in the host's caches.
/// A dense write makes its bytes dirty on the writer's side only; a strided one needs the lines that it shares with
/// its neighbours, and so counts as a read as well. Each dirty byte crosses once, however many consumers it has.
/// Costs are proportional to bytes, so that the parts in which a version crosses cost what the whole does.
class Residency {
public:
  /// @param transfers what nests on DPUs pay at each launch; null for machines that share the host's memory
  Residency(const Program &program, const MachineConfig &machine, const NestTransfers *transfers = nullptr);

  /// Records what nest `nest` needs when it runs on `site`, then what it leaves behind.
  void enter(uint32_t nest, Site site, std::vector<CrossingRecord> &crossings);
  /// Records the way back to the host of control and of the program's outputs.
  void finish(std::vector<CrossingRecord> &crossings);

private:
  struct Dirty {
    ByteSet host; ///< Written by the host, not yet flushed.
    ByteSet pim;  ///< Written on PIM, not yet fetched.
  };

  void moveControl(uint32_t nest, Site site, std::vector<CrossingRecord> &crossings);
  void need(uint32_t nest, uint32_t buffer, uint64_t begin, uint64_t end, Site site,
            std::vector<CrossingRecord> &crossings);

  const Program &program_;
  const MachineConfig &machine_;
  const NestTransfers *transfers_;
  std::vector<Dirty> dirty_; ///< By buffer index.
  Site site_ = Site::Host;
};

/// CX-4 (docs/model.md): costs of crossings beside a modelled host, whose caches and cores take the place of those that
/// the PIM machine's file assumes. Its launches begin with empty caches, so that their times contain every fetch.
CoherenceConfig coherenceBeside(const CoherenceConfig &cost, const MachineConfig &host);

/// CX-2 (docs/model.md): share of a version of `versionBytes` that is still dirty in the host's caches after its write.
double dirtyShare(uint64_t versionBytes, const CoherenceConfig &cost);

/// CX-2, CX-3: time in which `bytes` that the other side wrote last become readable on `site`.
double crossingNs(double bytes, Site site, const CoherenceConfig &cost);

/// Bytes [first, second) of its buffer that a program output may touch; both 0 when it has no element.
std::pair<uint64_t, uint64_t> spanOf(const ProgramOutput &output);

/// True when the nest writes every byte of the operand's span and reads none of it.
bool isDenseWrite(const NestOperand &operand);

} // namespace nearbank
