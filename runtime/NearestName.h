// SPDX-License-Identifier: Apache-2.0
// Finds the valid name that a mistyped one most likely meant, for error messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nearbank {

/// Number of single-character insertions, deletions, substitutions and swaps of neighbours between two names.
inline size_t editDistance(std::string_view left, std::string_view right) {
  std::vector<std::vector<size_t>> cost(left.size() + 1, std::vector<size_t>(right.size() + 1));
  for (size_t i = 0; i <= left.size(); ++i)
    for (size_t j = 0; j <= right.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      size_t substituted = cost[i - 1][j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, substituted});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[left.size()][right.size()];
}

/// The candidate of least edit distance, the first of equals; empty when there is none.
inline std::string nearestName(std::string_view name, const std::vector<std::string> &candidates) {
  std::string best;
  size_t bestDistance = 0;
  for (const std::string &candidate : candidates) {
    size_t distance = editDistance(name, candidate);
    if (best.empty() || distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/// "a, b, c".
inline std::string joinNames(const std::vector<std::string> &names, std::string_view separator = ", ") {
  std::string text;
  for (const std::string &name : names) {
    if (!text.empty())
      text += separator;
    text += name;
  }
  return text;
}

} // namespace nearbank
