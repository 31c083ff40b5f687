// SPDX-License-Identifier: Apache-2.0
// The table of every key that a machine file has, with unit and bound.
#pragma once

#include "runtime/Machine.h"

#include <string>
#include <vector>

namespace nearbank {

/// What values a key admits.
enum class FieldBound { Positive, NonNegative, Share, PowerOfTwo, VectorBits, Text };

/// Kinds of machine, as bits.
enum MachineKind : unsigned { NearMemoryKind = 1, HostKind = 2, RooflineKind = 4 };

/// The bit of a kind's name; 0 when there is no such kind.
unsigned machineKindOf(const std::string &name);
/// Names of all kinds.
const std::vector<std::string> &machineKinds();

/// One key of a machine file. Exactly one of the accessors is set.
struct MachineField {
  const char *path;
  const char *unit;
  FieldBound bound;
  unsigned kinds = NearMemoryKind; ///< Machines that have the key.
  unsigned optionalIn = 0;         ///< Machines that may leave out the key's whole group (groupOf).
  int64_t *(*integer)(MachineConfig &) = nullptr;
  double *(*real)(MachineConfig &) = nullptr;
  std::string *(*text)(MachineConfig &) = nullptr;
};

/// Every key, in the order of the built-in files.
const std::vector<MachineField> &machineFields();
/// The field at "vault.bandwidthGBs"; null when no machine of `kinds` has it.
const MachineField *findMachineField(const std::string &path, unsigned kinds);
/// Keys that are given all or none where they are optional: "energy" for its section, "core.vector" for the vector
/// unit.
std::string groupOf(const std::string &path);
/// Whether `path` is a section such as "host" or "host.l1d".
bool isSection(const std::string &path, unsigned kinds);
/// Valid keys directly below a section, or at the top for "": "count", "clockGHz", ...
std::vector<std::string> keysBelow(const std::string &section, unsigned kinds);
/// Keys at the top that hold a plain text instead of a value with unit and source.
const std::vector<std::string> &topLevelTexts();

} // namespace nearbank
