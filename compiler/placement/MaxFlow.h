// SPDX-License-Identifier: Apache-2.0
// Maximum flow and the minimum cut that bounds it, by Dinic's algorithm.
#pragma once

#include <cstdint>
#include <vector>

namespace nearbank::placement {

/// Directed network with integer capacities; the flow is exact. Capacities add up to less than 2^63.
class MaxFlow {
public:
  explicit MaxFlow(uint32_t numNodes) : edgesOf_(numNodes) {}

  uint32_t addNode();
  void addEdge(uint32_t from, uint32_t to, int64_t capacity);
  /// Largest flow from `source` to `sink`. May be called once.
  int64_t run(uint32_t source, uint32_t sink);
  /// After run(): whether the node lies on the source's side of the minimum cut of fewest nodes on that side.
  bool isOnSourceSide(uint32_t node) const { return level_[node] >= 0; }

private:
  /// Edge `i ^ 1` is the reverse of edge `i`.
  struct Edge {
    uint32_t to;
    int64_t residual;
  };
  bool findLevels(uint32_t source, uint32_t sink);
  int64_t augment(uint32_t source, uint32_t sink);

  std::vector<std::vector<uint32_t>> edgesOf_; ///< Indices into edges_, by node.
  std::vector<Edge> edges_;
  std::vector<int32_t> level_; ///< Distance from the source in the residual network; -1 when out of reach.
  std::vector<uint32_t> next_; ///< By node: first edge that may still lead to the sink in this phase.
};

} // namespace nearbank::placement
