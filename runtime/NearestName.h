// SPDX-License-Identifier: Apache-2.0
// Finds the valid name that a mistyped one most likely meant, for error messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nearbank {

/// Number of single-character insertions, deletions and substitutions between two names.
inline size_t editDistance(std::string_view left, std::string_view right) {
  std::vector<size_t> row(right.size() + 1);
  for (size_t j = 0; j <= right.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= left.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= right.size(); ++j) {
      size_t substituted = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[right.size()];
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
