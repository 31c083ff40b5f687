// SPDX-License-Identifier: Apache-2.0
// The table of every key that a machine file has, with unit and bound.
#pragma once

#include "runtime/Machine.h"

#include <string>
#include <vector>

namespace nearbank {

/// What values a key admits.
enum class FieldBound { Positive, NonNegative, Share, PowerOfTwo, Text };

/// One key of a machine file. Exactly one of the accessors is set.
struct MachineField {
  const char *path;
  const char *unit;
  FieldBound bound;
  int64_t *(*integer)(MachineConfig &) = nullptr;
  double *(*real)(MachineConfig &) = nullptr;
  std::string *(*text)(MachineConfig &) = nullptr;
};

/// Every key, in the order of the built-in files.
const std::vector<MachineField> &machineFields();
/// The field at "vault.bandwidthGBs"; null when there is none.
const MachineField *findMachineField(const std::string &path);
/// Whether `path` is a section such as "host" or "host.l1d".
bool isSection(const std::string &path);
/// Valid keys directly below a section, or at the top for "": "count", "clockGHz", ...
std::vector<std::string> keysBelow(const std::string &section);
/// Keys at the top that hold a plain text instead of a value with unit and source.
const std::vector<std::string> &topLevelTexts();

} // namespace nearbank
