// SPDX-License-Identifier: Apache-2.0
// Parses lines; an error names file, line and column.
#include "sgd/TextReader.h"

#include "runtime/Error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

namespace nearbank::sgd {

namespace {

/// Words of a file as they can be shown: no bytes beyond ASCII, and not too many.
std::string quoted(std::string_view text) {
  constexpr size_t longest = 40;
  std::string shown = "'";
  for (char c : text.substr(0, longest))
    shown += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", uint8_t(c));
  return shown + (text.size() > longest ? "...'" : "'");
}

/// A line that cannot be parsed: where and why.
struct BadLine {
  size_t column;
  std::string expected;
  std::string actual;
};

/// Gives lines one by one, without holding the file.
class LineStream {
public:
  LineStream(const std::string &path, const ReadOptions &options)
      : path_(path), file_(path, std::ios::binary), end_(options.endByte) {
    if (!file_)
      throw UserError({"NB0703", "data file cannot be read", path, "a readable file", std::strerror(errno),
                       "check the path and its permissions"});
    if (options.beginByte > 0) {
      // Lines belong to the range in which they begin: skip the rest of the one before.
      file_.seekg(options.beginByte - 1);
      position_ = options.beginByte - 1;
      std::string rest;
      std::getline(file_, rest);
      position_ += static_cast<int64_t>(rest.size()) + 1;
    }
  }

  bool next(std::string &line) {
    if (end_ >= 0 && position_ >= end_)
      return false;
    if (!std::getline(file_, line))
      return false;
    position_ += static_cast<int64_t>(line.size()) + 1;
    ++number_;
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    return true;
  }

  [[noreturn]] void fail(const BadLine &bad) const {
    throw UserError({"NB0704", "a line of the data file is not valid",
                     fmt::format("{}:{}:{}", path_, number_, bad.column + 1), bad.expected, bad.actual,
                     "mend the line, or leave out bad lines with --on-bad-line=skip"});
  }

private:
  const std::string path_;
  std::ifstream file_;
  int64_t end_;
  int64_t position_ = 0;
  int64_t number_ = 0; ///< Of the last line, from where reading began.
};

bool isBlank(char c) { return c == ' ' || c == '\t'; }

std::string_view wordAt(std::string_view line, size_t at) {
  size_t end = at;
  while (end < line.size() && !isBlank(line[end]))
    ++end;
  return line.substr(at, end - at);
}

double parseNumber(std::string_view line, size_t at, size_t end, const char *what) {
  size_t from = at < end && line[at] == '+' ? at + 1 : at;
  double value = 0;
  auto [stop, error] = std::from_chars(line.data() + from, line.data() + end, value);
  if (error != std::errc() || stop != line.data() + end || from == end)
    throw BadLine{at, what, quoted(line.substr(at, end - at))};
  if (!std::isfinite(value))
    throw BadLine{at, "a finite number", quoted(line.substr(at, end - at))};
  return value;
}

void parseLibSvmLine(std::string_view line, ParsedRows &rows, bool &isOnes) {
  size_t at = 0;
  while (at < line.size() && isBlank(line[at]))
    ++at;
  std::string_view word = wordAt(line, at);
  double label = parseNumber(line, at, at + word.size(), "a label, then index:value pairs");
  at += word.size();
  int64_t previous = 0;
  while (true) {
    while (at < line.size() && isBlank(line[at]))
      ++at;
    if (at == line.size())
      break;
    word = wordAt(line, at);
    size_t colon = word.find(':');
    if (colon == std::string_view::npos)
      throw BadLine{at, "index:value", quoted(word)};
    int64_t index = 0;
    auto [stop, error] = std::from_chars(word.data(), word.data() + colon, index);
    if (error != std::errc() || stop != word.data() + colon || index < 1 || index > UINT32_MAX)
      throw BadLine{at, "an index from 1 to 4294967295", quoted(word.substr(0, colon))};
    if (index <= previous)
      throw BadLine{at, fmt::format("an index above {}", previous), fmt::format("{}", index)};
    double value = parseNumber(line, at + colon + 1, at + word.size(), "a number");
    at += word.size();
    previous = index;
    if (value == 0)
      continue;
    if (isOnes && value != 1) {
      isOnes = false;
      rows.values.assign(rows.indices.size(), 1.0);
    }
    rows.indices.push_back(static_cast<uint32_t>(index - 1));
    if (!isOnes)
      rows.values.push_back(value);
  }
  rows.numFeatures = std::max(rows.numFeatures, previous);
  rows.labels.push_back(label);
  rows.offsets.push_back(static_cast<int64_t>(rows.indices.size()));
}

/// FNV-1a over field number and text, folded to `bits` bits.
uint32_t hashField(uint32_t field, std::string_view text, int bits) {
  uint64_t hash = 0xcbf29ce484222325u;
  auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  add(static_cast<unsigned char>(field));
  for (char c : text)
    add(static_cast<unsigned char>(c));
  return static_cast<uint32_t>((hash ^ (hash >> 32)) & ((uint64_t(1) << bits) - 1));
}

void parseCriteoLine(std::string_view line, ParsedRows &rows, int hashBits) {
  constexpr uint32_t integers = 13, fields = 39;
  size_t at = 0;
  std::vector<uint32_t> indices;
  double label = 0;
  for (uint32_t field = 0; field <= fields; ++field) {
    size_t end = line.find('\t', at);
    if ((end == std::string_view::npos) != (field == fields))
      throw BadLine{std::min(at, line.size()), "40 fields between tabs",
                    fmt::format("{}", std::count(line.begin(), line.end(), '\t') + 1)};
    if (field == fields)
      end = line.size();
    std::string_view text = line.substr(at, end - at);
    if (field == 0) {
      if (text != "0" && text != "1")
        throw BadLine{at, "a label of 0 or 1", quoted(text)};
      label = text == "1";
    } else if (field <= integers && !text.empty()) {
      // Integers are binned by the square of their logarithm, as CTR models do.
      double value = parseNumber(line, at, end, "an integer or nothing");
      double bin = value > 2 ? std::floor(std::log(value) * std::log(value)) : value;
      indices.push_back(hashField(field, fmt::format("{}", static_cast<int64_t>(bin)), hashBits));
    } else {
      if (text.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
        throw BadLine{at, "a hexadecimal category or nothing", quoted(text)};
      indices.push_back(hashField(field, text, hashBits));
    }
    at = end + 1;
  }
  rows.indices.insert(rows.indices.end(), indices.begin(), indices.end());
  rows.labels.push_back(label);
  rows.offsets.push_back(static_cast<int64_t>(rows.indices.size()));
}

/// Takes back what a line that turned out bad has left.
void dropPartialRow(ParsedRows &rows) {
  rows.indices.resize(rows.offsets.back());
  if (!rows.values.empty())
    rows.values.resize(rows.offsets.back());
}

template <class Parse> ParsedRows read(const std::string &path, const ReadOptions &options, Parse parse) {
  LineStream lines(path, options);
  ParsedRows rows;
  std::string line;
  while (lines.next(line)) {
    std::string_view text = line;
    if (text.find_first_not_of(" \t") == std::string_view::npos)
      continue;
    try {
      parse(text, rows);
    } catch (const BadLine &bad) {
      if (!options.skipsBadLines)
        lines.fail(bad);
      dropPartialRow(rows);
      ++rows.numBadLines;
    }
  }
  return rows;
}

} // namespace

ParsedRows readLibSvm(const std::string &path, const ReadOptions &options) {
  bool isOnes = true;
  return read(path, options, [&](std::string_view line, ParsedRows &rows) {
    std::string_view text = line.substr(0, line.find('#'));
    if (text.find_first_not_of(" \t") != std::string_view::npos)
      parseLibSvmLine(text, rows, isOnes);
  });
}

ParsedRows readCriteo(const std::string &path, const ReadOptions &options) {
  ParsedRows rows = read(
      path, options, [&](std::string_view line, ParsedRows &into) { parseCriteoLine(line, into, options.hashBits); });
  rows.numFeatures = int64_t(1) << options.hashBits;
  return rows;
}

} // namespace nearbank::sgd
