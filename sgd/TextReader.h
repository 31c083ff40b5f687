// SPDX-License-Identifier: Apache-2.0
// Reads LIBSVM and Criteo files as a stream of blocks, the whole file or the lines that begin in a range of its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nearbank::sgd {

/// Sparse rows as read. Labels are those of the file.
struct ParsedRows {
  std::vector<double> labels;
  std::vector<int64_t> offsets = {0};
  std::vector<uint32_t> indices; ///< From zero.
  std::vector<double> values;    ///< Empty when all are one.
  int64_t numFeatures = 0;       ///< Largest index and one.
  int64_t numBadLines = 0;       ///< Skipped.
};

struct ReadOptions {
  bool skipsBadLines = false; ///< Otherwise a bad line is an error.
  int64_t beginByte = 0;
  int64_t endByte = -1; ///< -1: end of the file.
  int hashBits = 20;    ///< Criteo: features are hashed to 2^hashBits.
};

/// `label index:value ...`, indices from one and ascending, `#` begins a comment.
/// @throws UserError NB0703 (unreadable), NB0704 (bad line).
ParsedRows readLibSvm(const std::string &path, const ReadOptions &options);

/// `label`, 13 integers and 26 hexadecimal categories, tab-separated; fields may be empty. Each row has 39 ones.
/// @throws UserError NB0703, NB0704.
ParsedRows readCriteo(const std::string &path, const ReadOptions &options);

} // namespace nearbank::sgd
