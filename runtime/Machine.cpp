// SPDX-License-Identifier: Apache-2.0
// Reads machine files. The table of MachineFields.h serves reading, overriding and listing, so that they agree.

#include "runtime/Machine.h"

#include "runtime/Error.h"
#include "runtime/MachineFields.h"
#include "runtime/NearestName.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace nearbank {
namespace {

const std::vector<std::string> leafKeys = {"value", "unit", "source"};

[[noreturn]] void fail(const char *code, const char *title, std::string where, std::string expected, std::string actual,
                       std::string fix) {
  throw UserError({code, title, std::move(where), std::move(expected), std::move(actual), std::move(fix)});
}

std::string at(const std::string &file, const YAML::Mark &mark) {
  return mark.is_null() ? file : fmt::format("{}:{}:{}", file, mark.line + 1, mark.column + 1);
}

[[noreturn]] void failUnknownKey(const std::string &where, const std::string &section, const std::string &key,
                                 const std::vector<std::string> &valid) {
  std::string full = section.empty() ? key : section + "." + key;
  fail("NB0103", "unknown key in a machine description", where, fmt::format("one of {}", joinNames(valid)), full,
       fmt::format("did you mean '{}'?",
                   section.empty() ? nearestName(key, valid) : section + "." + nearestName(key, valid)));
}

/// A leaf as read or overridden, before it becomes a number.
struct Leaf {
  std::string value, unit, source;
  std::string layer; ///< "machines/nmc-64.yaml:14".
  std::string where; ///< "machines/nmc-64.yaml:14:9", or the --set option.
};

struct Reader {
  std::string file;
  MachineConfig machine;
  unsigned kind = NearMemoryKind; ///< Bit of machine.kind, which decides what keys there are.
  std::map<std::string, Leaf> leaves;
  std::vector<std::string> order;
  YAML::Mark rootMark;
  std::map<std::string, std::string> sectionPlaces; ///< Where each section's key stands.

  void readRoot(const YAML::Node &root) {
    rootMark = root.Mark();
    if (!root.IsMap())
      fail("NB0106", "wrong type in a machine description", at(file, root.Mark()), "a mapping of sections",
           root.IsNull() || !root.IsDefined() ? "an empty file" : "a scalar or a sequence",
           "copy a built-in machine file and edit it (nearbank machines show nmc-64)");
    for (const auto &entry : root)
      if (entry.first.IsScalar() && entry.first.Scalar() == "kind")
        readKind(entry.second);
    readSection(root, "");
    if (machine.name.empty())
      failMissing("name", at(file, rootMark));
    if (machine.kind.empty())
      failMissing("kind", at(file, rootMark));
  }

  void readSection(const YAML::Node &node, const std::string &section) {
    std::vector<std::string> seen;
    for (const auto &entry : node) {
      std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      std::string where = at(file, entry.first.Mark());
      std::string path = section.empty() ? key : section + "." + key;
      if (std::find(seen.begin(), seen.end(), key) != seen.end())
        fail("NB0102", "machine file cannot be parsed", where, "each key once", fmt::format("'{}' again", path),
             "remove one of the two");
      seen.push_back(key);
      bool isTopText =
          section.empty() && std::find(topLevelTexts().begin(), topLevelTexts().end(), key) != topLevelTexts().end();
      if (isTopText)
        readTopText(key, entry.second);
      else if (const MachineField *field = findMachineField(path, kind))
        readLeaf(*field, entry.second, entry.first.Mark());
      else if (isSection(path, kind))
        readSubsection(path, entry.second, where);
      else
        failUnknownKey(where, section, key, keysBelow(section, kind));
    }
  }

  void readSubsection(const std::string &path, const YAML::Node &node, const std::string &where) {
    if (!node.IsMap())
      fail("NB0106", "wrong type in a machine description", where,
           fmt::format("'{}' to be a mapping with {}", path, joinNames(keysBelow(path, kind))),
           node.IsScalar() ? "'" + node.Scalar() + "'" : "nothing", "indent the keys of the section below it");
    sectionPlaces[path] = where;
    readSection(node, path);
  }

  /// The nearest section that is there and would hold `path`, or the start of the file.
  std::string placeOfMissing(std::string path) const {
    for (size_t dot; (dot = path.rfind('.')) != std::string::npos;) {
      path.resize(dot);
      if (auto section = sectionPlaces.find(path); section != sectionPlaces.end())
        return section->second;
    }
    return at(file, rootMark);
  }

  void readTopText(const std::string &key, const YAML::Node &node) {
    if (!node.IsScalar() || node.Scalar().empty())
      fail("NB0106", "wrong type in a machine description", at(file, node.Mark()),
           fmt::format("'{}' to be a text", key), "something else", fmt::format("write {}: TEXT", key));
    if (key == "name")
      machine.name = node.Scalar();
  }

  void readKind(const YAML::Node &node) {
    readTopText("kind", node);
    machine.kind = node.Scalar();
    kind = machineKindOf(machine.kind);
    if (kind == 0)
      fail("NB0105", "impossible value in a machine description", at(file, node.Mark()),
           fmt::format("kind to be one of {}", joinNames(machineKinds())), machine.kind,
           fmt::format("did you mean '{}'?", nearestName(machine.kind, machineKinds())));
  }

  void readLeaf(const MachineField &field, const YAML::Node &node, const YAML::Mark &keyMark) {
    std::string where = at(file, keyMark);
    if (!node.IsMap())
      fail("NB0107", "value without unit and source in a machine description", where,
           fmt::format("{}: {{value: NUMBER, unit: \"{}\", source: \"WHERE IT COMES FROM\"}}", field.path, field.unit),
           node.IsScalar() ? "'" + node.Scalar() + "'" : "nothing", "state the unit and the source beside the value");
    Leaf leaf;
    YAML::Mark valueMark = keyMark;
    for (const auto &entry : node) {
      std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (std::find(leafKeys.begin(), leafKeys.end(), key) == leafKeys.end())
        failUnknownKey(at(file, entry.first.Mark()), field.path, key, leafKeys);
      if (!entry.second.IsScalar())
        fail("NB0106", "wrong type in a machine description", at(file, entry.second.Mark()),
             fmt::format("{}.{} to be a scalar", field.path, key), "a mapping, a sequence or nothing",
             fmt::format("write one value of unit {}", field.unit));
      std::string text = entry.second.Scalar();
      if (key == "value") {
        leaf.value = text;
        valueMark = entry.second.Mark();
      } else if (key == "unit") {
        leaf.unit = text;
      } else {
        leaf.source = text;
      }
    }
    if (leaf.value.empty())
      failMissing(std::string(field.path) + ".value", where);
    if (leaf.unit != field.unit)
      fail("NB0107", "value without unit and source in a machine description", where,
           fmt::format("{} in unit \"{}\"", field.path, field.unit),
           leaf.unit.empty() ? "no unit" : fmt::format("unit \"{}\"", leaf.unit),
           fmt::format("convert the value and write unit: \"{}\"", field.unit));
    if (leaf.source.find_first_not_of(" \t") == std::string::npos)
      fail("NB0107", "value without unit and source in a machine description", where,
           fmt::format("{} with a source", field.path), "no source",
           "add source: \"data sheet, paper and table, or measurement script\"");
    leaf.layer = fmt::format("{}:{}", file, valueMark.line + 1);
    leaf.where = at(file, valueMark);
    leaves[field.path] = leaf;
    order.push_back(field.path);
  }

  void override(const std::string &path, const std::string &value) {
    std::string option = fmt::format("--set {}={}", path, value);
    const MachineField *field = findMachineField(path, kind);
    if (!field) {
      std::vector<std::string> paths;
      for (const MachineField &candidate : machineFields())
        if ((candidate.kinds & kind) != 0)
          paths.push_back(candidate.path);
      std::string nearest = nearestName(path, paths);
      std::string section = isSection(path, kind) ? path : nearest.substr(0, nearest.rfind('.'));
      fail("NB0103", "unknown key in a machine description", option,
           fmt::format("one of {}, below {}", joinNames(keysBelow(section, kind)), section), path,
           fmt::format("did you mean '{}'?", nearest));
    }
    if (!leaves.count(path))
      order.push_back(path);
    leaves[path] = {value, field->unit, "command line", option, option};
  }

  [[noreturn]] void failMissing(const std::string &path, const std::string &where) {
    const MachineField *field = findMachineField(path, kind);
    fail("NB0104", "missing key in a machine description", where, fmt::format("a value for {}", path), "none",
         field ? fmt::format("add {}: {{value: ..., unit: \"{}\", source: \"...\"}}", path, field->unit)
               : fmt::format("add {}", path));
  }

  double number(const MachineField &field, const Leaf &leaf) {
    double value = 0;
    const char *end = leaf.value.data() + leaf.value.size();
    auto [stop, error] = std::from_chars(leaf.value.data(), end, value);
    bool isInteger = field.integer != nullptr;
    if (error != std::errc() || stop != end || !std::isfinite(value) ||
        (isInteger && (value != std::floor(value) || std::abs(value) > 9e15)))
      fail("NB0106", "wrong type in a machine description", leaf.where,
           fmt::format("{} to be {}, in {}", field.path, isInteger ? "an integer" : "a number", field.unit),
           "'" + leaf.value + "'", fmt::format("write a plain number of unit {}", field.unit));
    return value;
  }

  void checkBound(const MachineField &field, const Leaf &leaf, double value) {
    std::string expected;
    if (field.bound == FieldBound::Positive && !(value > 0))
      expected = "positive";
    if (field.bound == FieldBound::NonNegative && value < 0)
      expected = "non-negative";
    if (field.bound == FieldBound::Share && (value < 0 || value > 1))
      expected = "between 0 and 1";
    if (field.bound == FieldBound::PowerOfTwo && (value < 1 || (int64_t(value) & (int64_t(value) - 1)) != 0))
      expected = "a positive power of two";
    if (field.bound == FieldBound::VectorBits && value != 0 && value != 128 && value != 256 && value != 512)
      expected = "0 (no vector unit), 128, 256 or 512";
    if (!expected.empty())
      fail("NB0105", "impossible value in a machine description", leaf.where,
           fmt::format("{} to be {}, in {}", field.path, expected, field.unit), leaf.value,
           "correct the value; nearbank machines show NAME lists valid ones");
  }

  bool hasGroup(const std::string &group) const {
    return std::any_of(leaves.begin(), leaves.end(), [&](const auto &leaf) { return groupOf(leaf.first) == group; });
  }

  void store() {
    if (hasGroup("l2"))
      machine.l2.emplace();
    if (hasGroup("prefetch"))
      machine.prefetch.emplace();
    if (hasGroup("memoryLink"))
      machine.memoryLink.emplace();
    if (hasGroup("energy"))
      machine.energy.emplace();
    for (const MachineField &field : machineFields())
      if ((field.kinds & kind) != 0)
        storeField(field);
    if (kind != RooflineKind)
      checkCores();
    if (kind == NearMemoryKind)
      checkNearMemory();
    if (kind == HostKind) {
      checkHost();
      describeHost();
    }
    for (const std::string &path : order) {
      const Leaf &leaf = leaves[path];
      machine.values.push_back({path, leaf.value, leaf.unit, leaf.source, leaf.layer});
    }
  }

  void storeField(const MachineField &field) {
    auto found = leaves.find(field.path);
    if (found == leaves.end()) {
      bool isOff = groupOf(field.path) == "core.vector" && leaves.count("core.vectorBits") != 0 &&
                   leaves["core.vectorBits"].value == "0";
      if (isOff || ((field.optionalIn & kind) != 0 && !hasGroup(groupOf(field.path))))
        return;
      failMissing(field.path, placeOfMissing(field.path));
    }
    const Leaf &leaf = found->second;
    if (field.text) {
      *field.text(machine) = leaf.value;
      return;
    }
    double value = number(field, leaf);
    checkBound(field, leaf, value);
    if (field.integer)
      *field.integer(machine) = int64_t(value);
    else
      *field.real(machine) = value;
  }

  [[noreturn]] void failValue(const char *path, std::string expected, std::string fix) {
    fail("NB0105", "impossible value in a machine description", leaves[path].where, std::move(expected),
         leaves[path].value, std::move(fix));
  }

  void checkCores() {
    checkCache("l1i", machine.l1i);
    checkCache("l1d", machine.l1d);
    if (machine.l2)
      checkCache("l2", *machine.l2);
    if (machine.core.vectorLanesBits > machine.core.vectorBits)
      failValue("core.vectorLanesBits",
                fmt::format("core.vectorLanesBits to be at most core.vectorBits ({})", machine.core.vectorBits),
                "lower core.vectorLanesBits");
    checkAtLeast("dram.nREFI", machine.dram.nREFI - 1, "dram.nRFC", machine.dram.nRFC);
  }

  void checkNearMemory() {
    checkCache("host.l1d", machine.host.l1d);
    checkCache("host.l2", machine.host.l2);
    checkCache("host.l3", machine.host.l3);
    checkAtLeast("vault.rowBytes", machine.dram.rowBytes, "l1d.lineBytes", machine.l1d.lineBytes);
    checkAtLeast("vault.interleaveBytes", machine.dram.interleaveBytes, "l1d.lineBytes", machine.l1d.lineBytes);
    checkMesh();
    checkHostLines();
  }

  void checkHost() {
    const DramConfig &dram = machine.dram;
    const OutOfOrderConfig &window = machine.outOfOrder;
    checkCache("l3", machine.l3);
    for (auto [path, cache] : {std::pair("l1i.lineBytes", &machine.l1i), std::pair("l2.lineBytes", &*machine.l2),
                               std::pair("l3.lineBytes", &machine.l3)})
      if (cache->lineBytes != machine.l1d.lineBytes)
        failValue(path, fmt::format("{} to equal l1d.lineBytes ({})", path, machine.l1d.lineBytes),
                  "give all caches one line size");
    checkAtLeast("channel.interleaveBytes", dram.interleaveBytes, "l1d.lineBytes", machine.l1d.lineBytes);
    checkAtLeast("channel.rowBytes", dram.rowBytes, "channel.interleaveBytes", dram.interleaveBytes);
    checkAtLeast("channel.banks", dram.banksPerVault, "channel.bankGroups", dram.bankGroups);
    checkAtLeast("core.robEntries", window.robEntries, "core.dispatchWidth", window.dispatchWidth);
    if (machine.core.count % machine.l3SharedBy != 0)
      failValue("l3.sharedBy", fmt::format("l3.sharedBy to divide core.count ({})", machine.core.count),
                "let each last-level cache serve as many cores");
    // What the window and channel models keep tables for.
    constexpr int64_t mostEntries = 4096, mostPorts = 64, mostTicks = 64;
    checkAtMost("dram.nFAW", mostTicks);
    for (const char *path :
         {"core.robEntries", "core.loadQueueEntries", "core.storeQueueEntries", "core.outstandingMisses"})
      checkAtMost(path, mostEntries);
    for (const char *path :
         {"core.dispatchWidth", "core.retireWidth", "core.intPorts", "core.intMulPorts", "core.branchPorts",
          "core.fpPorts", "core.fpAddPorts", "core.fpMulPorts", "core.memoryPorts", "core.loadPorts", "core.storePorts",
          "core.vectorLoadPorts", "core.vectorStorePorts"})
      checkAtMost(path, mostPorts);
  }

  void checkAtMost(const char *path, int64_t bound) {
    if (*findMachineField(path, kind)->integer(machine) > bound)
      failValue(path, fmt::format("{} to be at most {}", path, bound), "lower the value");
  }

  /// What the profile's cache model sees of a modelled host.
  void describeHost() {
    const DramConfig &dram = machine.dram;
    HostConfig &host = machine.host;
    host.name = machine.name;
    host.cores = machine.core.count;
    host.clockGHz = machine.core.clockGHz;
    host.l1d = machine.l1d, host.l2 = *machine.l2, host.l3 = machine.l3;
    host.dramBandwidthGBs = static_cast<double>(dram.vaults) * dram.vaultBandwidthGBs;
    if (machine.memoryLink)
      host.dramBandwidthGBs = std::min(host.dramBandwidthGBs, machine.memoryLink->bandwidthGBs);
    // HM-8 (docs/model.md), without the first two levels.
    host.dramLatencyNs = static_cast<double>(machine.l3.hitCycles) / machine.core.clockGHz + dram.controllerNs +
                         static_cast<double>(dram.nRCD + dram.nCL) * dram.tCkNs +
                         static_cast<double>(machine.l1d.lineBytes) / dram.vaultBandwidthGBs +
                         (machine.memoryLink ? 2 * machine.memoryLink->latencyNs : 0);
  }

  void checkAtLeast(const char *path, int64_t value, const char *boundPath, int64_t bound) {
    if (value >= bound)
      return;
    fail("NB0105", "impossible value in a machine description", leaves[path].where,
         fmt::format("{} to be at least {}, which {} ({}) asks for", path, leaves[boundPath].value, boundPath,
                     leaves[boundPath].layer),
         leaves[path].value, fmt::format("raise {} or lower {}", path, boundPath));
  }

  void checkHostLines() {
    const HostConfig &host = machine.host;
    for (auto [path, cache] : {std::pair("host.l2.lineBytes", &host.l2), std::pair("host.l3.lineBytes", &host.l3)})
      if (cache->lineBytes != host.l1d.lineBytes)
        fail("NB0105", "impossible value in a machine description", leaves[path].where,
             fmt::format("{} to equal host.l1d.lineBytes ({})", path, host.l1d.lineBytes), leaves[path].value,
             "give all host caches one line size");
  }

  void checkMesh() {
    int64_t width = machine.network.meshWidth;
    if (width > 100000 || width * width >= machine.dram.vaults)
      return;
    fail("NB0105", "impossible value in a machine description", leaves["network.meshWidth"].where,
         fmt::format("a mesh with room for the {} vaults of vault.count", machine.dram.vaults),
         fmt::format("{} x {}", width, width), "raise network.meshWidth or lower vault.count");
  }

  void checkCache(const std::string &section, const CacheConfig &cache) {
    if (cache.lineBytes >= 8 && cache.sizeBytes >= cache.ways * cache.lineBytes)
      return;
    const Leaf &leaf = leaves[cache.lineBytes < 8 ? section + ".lineBytes" : section + ".sizeBytes"];
    fail("NB0105", "impossible value in a machine description", leaf.where,
         fmt::format("{} to hold at least one set of {} lines of at least 8 B", section, cache.ways),
         fmt::format("{} B in lines of {} B", cache.sizeBytes, cache.lineBytes),
         fmt::format("raise {}.sizeBytes or lower {}.ways", section, section));
  }
};

std::string readText(const std::filesystem::path &path, const std::string &shown) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    fail("NB0102", "machine file cannot be parsed", shown, "a YAML file", "a folder", "name the file in it");
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream)
    fail("NB0102", "machine file cannot be parsed", shown, "a readable YAML file", "a file that cannot be read",
         "check its permissions");
  return text.str();
}

bool endsWith(const std::string &text, const std::string &suffix) {
  return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

} // namespace

std::vector<std::string> listMachines(const std::string &searchFolder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(searchFolder, error))
    if (entry.path().extension() == ".yaml")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

MachineConfig loadMachine(const std::string &nameOrPath, const std::string &searchFolder,
                          const std::vector<std::pair<std::string, std::string>> &overrides) {
  bool isPath =
      endsWith(nameOrPath, ".yaml") || endsWith(nameOrPath, ".yml") || nameOrPath.find('/') != std::string::npos;
  std::filesystem::path path =
      isPath ? std::filesystem::path(nameOrPath) : std::filesystem::path(searchFolder) / (nameOrPath + ".yaml");
  std::error_code error;
  if (nameOrPath.empty() || !std::filesystem::exists(path, error)) {
    std::vector<std::string> names = listMachines(searchFolder);
    std::string nearest = nearestName(path.stem().string(), names);
    fail("NB0101", "unknown machine", isPath ? nameOrPath : "--machine " + nameOrPath,
         names.empty() ? fmt::format("the path of a .yaml file ({} holds none)", searchFolder)
                       : fmt::format("one of {}, or the path of a .yaml file", joinNames(names)),
         isPath ? "a file that does not exist" : "'" + nameOrPath + "'",
         nearest.empty() ? "name an existing .yaml file" : fmt::format("did you mean '{}'?", nearest));
  }
  Reader reader;
  reader.file = isPath ? nameOrPath : "machines/" + nameOrPath + ".yaml";
  reader.machine.file = reader.file;
  try {
    reader.readRoot(YAML::Load(readText(path, reader.file)));
  } catch (const YAML::Exception &exception) {
    fail("NB0102", "machine file cannot be parsed", at(reader.file, exception.mark), "valid YAML", exception.msg,
         "correct the syntax at that place");
  }
  for (const auto &[key, value] : overrides)
    reader.override(key, value);
  reader.store();
  return std::move(reader.machine);
}

} // namespace nearbank
