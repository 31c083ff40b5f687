// SPDX-License-Identifier: Apache-2.0

#include "compiler/placement/MaxFlow.h"

#include <algorithm>
#include <limits>

namespace nearbank::placement {

uint32_t MaxFlow::addNode() {
  edgesOf_.emplace_back();
  return static_cast<uint32_t>(edgesOf_.size() - 1);
}

void MaxFlow::addEdge(uint32_t from, uint32_t to, int64_t capacity) {
  edgesOf_[from].push_back(static_cast<uint32_t>(edges_.size()));
  edges_.push_back({to, capacity});
  edgesOf_[to].push_back(static_cast<uint32_t>(edges_.size()));
  edges_.push_back({from, 0});
}

int64_t MaxFlow::run(uint32_t source, uint32_t sink) {
  int64_t flow = 0;
  while (findLevels(source, sink)) {
    next_.assign(edgesOf_.size(), 0);
    while (int64_t pushed = augment(source, sink))
      flow += pushed;
  }
  return flow;
}

bool MaxFlow::findLevels(uint32_t source, uint32_t sink) {
  level_.assign(edgesOf_.size(), -1);
  level_[source] = 0;
  std::vector<uint32_t> queue = {source};
  for (size_t head = 0; head < queue.size(); ++head)
    for (uint32_t index : edgesOf_[queue[head]]) {
      const Edge &edge = edges_[index];
      if (edge.residual == 0 || level_[edge.to] >= 0)
        continue;
      level_[edge.to] = level_[queue[head]] + 1;
      queue.push_back(edge.to);
    }
  return level_[sink] >= 0;
}

/// Pushes flow along one shortest path; 0 when the phase is over. Programs are long chains: no recursion.
int64_t MaxFlow::augment(uint32_t source, uint32_t sink) {
  std::vector<uint32_t> path; // Edge indices.
  uint32_t node = source;
  while (node != sink) {
    if (next_[node] < edgesOf_[node].size()) {
      uint32_t index = edgesOf_[node][next_[node]];
      const Edge &edge = edges_[index];
      if (edge.residual > 0 && level_[edge.to] == level_[node] + 1) {
        path.push_back(index);
        node = edge.to;
      } else {
        ++next_[node];
      }
      continue;
    }
    if (path.empty())
      return 0;
    // A dead end: go back and leave this edge out from now on.
    node = edges_[path.back() ^ 1].to;
    path.pop_back();
    ++next_[node];
  }
  int64_t pushed = std::numeric_limits<int64_t>::max();
  for (uint32_t index : path)
    pushed = std::min(pushed, edges_[index].residual);
  for (uint32_t index : path) {
    edges_[index].residual -= pushed;
    edges_[index ^ 1].residual += pushed;
  }
  return pushed;
}

} // namespace nearbank::placement
