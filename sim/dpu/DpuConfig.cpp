// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/DpuConfig.h"

#include "runtime/Error.h"
#include "runtime/NearestName.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <yaml-cpp/yaml.h>

namespace nearbank::dpu {
namespace {

struct Scalar {
  const char *path;
  const char *unit;
  double DpuConfig::*member;
  LinkLevel DpuConfig::*level = nullptr; ///< Where the member is that of a level of links.
  double LinkLevel::*ofLevel = nullptr;

  double PlacementThresholds::*threshold = nullptr; ///< Where the member is a threshold of placement.

  double &in(DpuConfig &config) const {
    return threshold ? config.thresholds.*threshold : level ? config.*level.*ofLevel : config.*member;
  }
};

const std::vector<Scalar> scalars = {
    {"system.modules", "modules", &DpuConfig::modules},
    {"system.ranksPerModule", "ranks", &DpuConfig::ranksPerModule},
    {"system.chipsPerRank", "chips", &DpuConfig::chipsPerRank},
    {"system.dpusPerChip", "DPUs", &DpuConfig::dpusPerChip},
    {"dpu.clockMHz", "MHz", &DpuConfig::clockMHz},
    {"dpu.tasklets", "tasklets", &DpuConfig::tasklets},
    {"dpu.dispatchCycles", "cycles", &DpuConfig::dispatchCycles},
    {"dpu.iramInstructions", "instructions", &DpuConfig::iramInstructions},
    {"dpu.iramMargin", "ratio", &DpuConfig::iramMargin},
    {"dma.readCycles", "cycles", &DpuConfig::dmaReadCycles},
    {"dma.writeCycles", "cycles", &DpuConfig::dmaWriteCycles},
    {"dma.cyclesPerByte", "cycles/B", &DpuConfig::dmaCyclesPerByte},
    {"dma.occupancyCycles", "cycles", &DpuConfig::dmaOccupancyCycles},
    {"dma.bytesPerWramCycle", "B/cycle", &DpuConfig::dmaBytesPerWramCycle},
    {"slots.multiplyCall", "slots", &DpuConfig::multiplyCallSlots},
    {"slots.divide32", "slots", &DpuConfig::divide32Slots},
    {"slots.multiply64", "slots", &DpuConfig::wideMultiplySlots},
    {"slots.divide64", "slots", &DpuConfig::divide64Slots},
    {"slots.floatAdd", "slots", &DpuConfig::floatAddSlots},
    {"slots.floatSub", "slots", &DpuConfig::floatSubSlots},
    {"slots.floatMul", "slots", &DpuConfig::floatMulSlots},
    {"slots.floatDiv", "slots", &DpuConfig::floatDivSlots},
    {"slots.doubleAdd", "slots", &DpuConfig::doubleAddSlots},
    {"slots.doubleSub", "slots", &DpuConfig::doubleSubSlots},
    {"slots.doubleMul", "slots", &DpuConfig::doubleMulSlots},
    {"slots.doubleDiv", "slots", &DpuConfig::doubleDivSlots},
    {"host.launchUs", "us", &DpuConfig::launchUs},
    {"host.loadUs", "us", &DpuConfig::loadUs},
    {"host.broadcastSpeedup", "ratio", &DpuConfig::broadcastSpeedup},
    {"host.serialShare", "ratio", &DpuConfig::serialShare},
    {"host.memoryGBs", "GB/s", &DpuConfig::memoryGBs},
    {"energy.dpuWatts", "W", &DpuConfig::dpuWatts},
    {"link.chipGBs", "GB/s", nullptr, &DpuConfig::chipLink, &LinkLevel::bandwidthGBs},
    {"link.chipLatencyNs", "ns", nullptr, &DpuConfig::chipLink, &LinkLevel::latencyNs},
    {"link.rankGBs", "GB/s", nullptr, &DpuConfig::rankLink, &LinkLevel::bandwidthGBs},
    {"link.rankLatencyNs", "ns", nullptr, &DpuConfig::rankLink, &LinkLevel::latencyNs},
    {"link.moduleGBs", "GB/s", nullptr, &DpuConfig::moduleLink, &LinkLevel::bandwidthGBs},
    {"link.moduleLatencyNs", "ns", nullptr, &DpuConfig::moduleLink, &LinkLevel::latencyNs},
    {"link.systemGBs", "GB/s", nullptr, &DpuConfig::systemLink, &LinkLevel::bandwidthGBs},
    {"link.systemLatencyNs", "ns", nullptr, &DpuConfig::systemLink, &LinkLevel::latencyNs},
    {"placement.workOperations", "operations", nullptr, nullptr, nullptr, &PlacementThresholds::workOperations},
    {"placement.workShare", "share", nullptr, nullptr, nullptr, &PlacementThresholds::workShare},
    {"placement.mpki", "misses/kilo-instruction", nullptr, nullptr, nullptr, &PlacementThresholds::mpki},
    {"placement.lfmr", "share", nullptr, nullptr, nullptr, &PlacementThresholds::lfmr},
    {"placement.intensity", "operations/B", nullptr, nullptr, nullptr, &PlacementThresholds::intensity},
};

struct Table {
  const char *name;
  TransferTable DpuConfig::*member;
};
const std::vector<Table> tables = {{"toMram", &DpuConfig::toMram},
                                   {"fromMram", &DpuConfig::fromMram},
                                   {"toWram", &DpuConfig::toWram},
                                   {"fromWram", &DpuConfig::fromWram}};

[[noreturn]] void fail(const char *code, const char *title, std::string where, std::string expected, std::string actual,
                       std::string fix = "") {
  throw UserError({code, title, std::move(where), std::move(expected), std::move(actual), std::move(fix)});
}

class Reader {
public:
  Reader(const std::string &path, const std::vector<std::pair<std::string, std::string>> &sets)
      : path_(path), sets_(sets) {}

  DpuConfig read() {
    DpuConfig config;
    config.file = path_;
    collectFile(config);
    for (const auto &[path, value] : sets_)
      set(path, value);
    for (const Scalar &scalar : scalars) {
      scalar.in(config) = number(scalar);
      config.values.push_back(valueOf(scalar.path));
    }
    std::vector<double> ranks = numbers(leaf("transfers.ranks"), "transfers.ranks");
    for (const Table &table : tables)
      config.*table.member = readTable(table.name, ranks);
    return config;
  }

private:
  /// Takes the values of a file, after those of its base.
  void collectFile(DpuConfig &config) {
    YAML::Node root;
    try {
      root = YAML::LoadFile(path_);
    } catch (const YAML::BadFile &) {
      fail("NB0101", "unknown machine", path_, "upmem-N, or the path of a machine file of kind upmem", path_);
    } catch (const YAML::Exception &error) {
      fail("NB0102", "machine file cannot be parsed", at(error.mark), "YAML", error.msg);
    }
    if (!root.IsMap())
      fail("NB0102", "machine file cannot be parsed", path_, "a mapping of sections", "something else");
    if (YAML::Node base = root["base"]) {
      std::string own = path_;
      path_ = (std::filesystem::path(own).parent_path() / base.as<std::string>("")).string();
      if (isBase_)
        fail("NB0105", "impossible value in a machine description", own, "a base without a base of its own", path_);
      isBase_ = true;
      collectFile(config);
      path_ = own;
    }
    collect(root, config);
  }

  void set(const std::string &path, const std::string &value) {
    auto found = leaves_.find(path);
    if (found == leaves_.end() || path.starts_with("transfers.")) {
      std::vector<std::string> paths;
      for (const Scalar &scalar : scalars)
        paths.emplace_back(scalar.path);
      fail("NB0103", "unknown key in a machine description", fmt::format("--set {}={}", path, value),
           fmt::format("one of {}", fmt::join(paths, ", ")), path,
           fmt::format("did you mean '{}'?", nearestName(path, paths)));
    }
    YAML::Node changed = YAML::Clone(found->second);
    changed["value"] = value;
    changed["source"] = "command line";
    found->second.reset(changed);
    layers_[path] = fmt::format("--set {}={}", path, value);
  }

  MachineValue valueOf(const char *path) {
    const YAML::Node &node = leaf(path);
    auto text = [&](const char *key) { return node[key].as<std::string>(""); };
    return {path, text("value"), text("unit"), text("source"), layers_[path]};
  }

  std::string at(const YAML::Mark &mark) const {
    return mark.is_null() ? path_ : fmt::format("{}:{}:{}", path_, mark.line + 1, mark.column + 1);
  }

  void collect(const YAML::Node &root, DpuConfig &config) {
    std::vector<std::string> known = {"name", "kind", "description", "base", "transfers"};
    std::vector<std::string> paths = {"transfers.ranks"};
    for (const Scalar &scalar : scalars) {
      paths.emplace_back(scalar.path);
      std::string section = std::string(scalar.path).substr(0, std::string(scalar.path).find('.'));
      if (known.back() != section) // Values of a section stand together.
        known.push_back(section);
    }
    for (const Table &table : tables) {
      paths.push_back(fmt::format("transfers.{}Bytes", table.name));
      paths.push_back(fmt::format("transfers.{}Us", table.name));
    }
    for (const auto &section : root) {
      std::string name = section.first.as<std::string>("");
      if (std::find(known.begin(), known.end(), name) == known.end())
        fail("NB0103", "unknown key in a machine description", at(section.first.Mark()),
             fmt::format("one of {}", fmt::join(known, ", ")), name,
             fmt::format("did you mean '{}'?", nearestName(name, known)));
      if (name == "name")
        config.name = section.second.as<std::string>("");
      if (name == "kind" && section.second.as<std::string>("") != "upmem")
        fail("NB0105", "impossible value in a machine description", at(section.second.Mark()), "kind to be upmem",
             section.second.as<std::string>(""));
      if (!section.second.IsMap())
        continue;
      for (const auto &entry : section.second) {
        std::string path = name + "." + entry.first.as<std::string>("");
        if (std::find(paths.begin(), paths.end(), path) == paths.end())
          fail("NB0103", "unknown key in a machine description", at(entry.first.Mark()),
               fmt::format("one of {}", fmt::join(paths, ", ")), path,
               fmt::format("did you mean '{}'?", nearestName(path, paths)));
        if (!entry.second.IsMap() || !entry.second["value"] || !entry.second["unit"] || !entry.second["source"])
          fail("NB0107", "value without unit and source in a machine description", at(entry.first.Mark()),
               path + ": {value: NUMBER, unit: UNIT, source: WHERE IT COMES FROM}", "less");
        leaves_[path].reset(entry.second);
        layers_[path] = fmt::format("{}:{}", path_, entry.first.Mark().line + 1);
      }
    }
  }

  const YAML::Node &leaf(const std::string &path) {
    auto found = leaves_.find(path);
    if (found == leaves_.end())
      fail("NB0104", "missing key in a machine description", path_, path, "no such key");
    return found->second;
  }

  double number(const Scalar &scalar) {
    const YAML::Node &node = leaf(scalar.path);
    if (std::string unit = node["unit"].as<std::string>(""); unit != scalar.unit)
      fail("NB0105", "impossible value in a machine description", at(node["unit"].Mark()),
           fmt::format("{} in {}", scalar.path, scalar.unit), unit);
    double value = -1;
    try {
      value = node["value"].as<double>();
    } catch (const YAML::Exception &) {
      fail("NB0106", "wrong type in a machine description", at(node["value"].Mark()),
           fmt::format("{} to be a number", scalar.path), node["value"].as<std::string>("no scalar"));
    }
    if (!(value >= 0) || !std::isfinite(value))
      fail("NB0105", "impossible value in a machine description", at(node["value"].Mark()),
           fmt::format("{} to be non-negative", scalar.path), fmt::format("{}", value));
    // Everything is divided by these, and a fraction of a DPU does no work.
    std::string path = scalar.path;
    bool isCount = path.rfind("system.", 0) == 0 || path == "dpu.tasklets" || path == "dpu.dispatchCycles";
    if ((isCount && value < 1) || (path == "dpu.clockMHz" && value == 0))
      fail("NB0105", "impossible value in a machine description", at(node["value"].Mark()),
           fmt::format("{} to be {}", path, isCount ? "at least 1" : "positive"), fmt::format("{}", value));
    return value;
  }

  std::vector<double> numbers(const YAML::Node &node, const std::string &path) {
    try {
      return node["value"].as<std::vector<double>>();
    } catch (const YAML::Exception &) {
      fail("NB0106", "wrong type in a machine description", at(node.Mark()), path + " to be a list of numbers",
           "something else");
    }
  }

  TransferTable readTable(const std::string &name, const std::vector<double> &ranks) {
    TransferTable table;
    table.ranks = ranks;
    std::string path = "transfers." + name;
    table.bytes = numbers(leaf(path + "Bytes"), path + "Bytes");
    const YAML::Node &node = leaf(path + "Us");
    for (const YAML::Node &row : node["value"])
      for (const YAML::Node &value : row)
        table.us.push_back(value.as<double>(0));
    if (table.bytes.size() < 2 || ranks.size() < 2 || table.us.size() != table.bytes.size() * ranks.size() ||
        *std::min_element(table.us.begin(), table.us.end()) <= 0)
      fail("NB0105", "impossible value in a machine description", at(node.Mark()),
           fmt::format("{}Us to have {} rows of {} positive values", path, table.bytes.size(), ranks.size()),
           fmt::format("{} values", table.us.size()));
    return table;
  }

  std::string path_;
  const std::vector<std::pair<std::string, std::string>> &sets_;
  bool isBase_ = false;
  std::map<std::string, YAML::Node> leaves_;
  std::map<std::string, std::string> layers_; ///< Where each leaf comes from.
};

// Index i with knots[i] <= value < knots[i+1], and how far between them in logarithms.
std::pair<size_t, double> between(const std::vector<double> &knots, double value) {
  size_t i = static_cast<size_t>(std::upper_bound(knots.begin(), knots.end(), value) - knots.begin());
  i = std::clamp<size_t>(i, 1, knots.size() - 1) - 1;
  return {i, std::log(value / knots[i]) / std::log(knots[i + 1] / knots[i])};
}

} // namespace

double TransferTable::at(double bytesPerDpu, double numRanks) const {
  double inside = std::clamp(bytesPerDpu, bytes.front(), bytes.back());
  double rankInside = std::clamp(numRanks, ranks.front(), ranks.back());
  auto [row, rowShare] = between(bytes, inside);
  auto [column, columnShare] = between(ranks, rankInside);
  auto value = [&](size_t r, size_t c) { return std::log(us[r * ranks.size() + c]); };
  double low = value(row, column) * (1 - columnShare) + value(row, column + 1) * columnShare;
  double high = value(row + 1, column) * (1 - columnShare) + value(row + 1, column + 1) * columnShare;
  double time = std::exp(low * (1 - rowShare) + high * rowShare);
  return time * std::max(1.0, bytesPerDpu / bytes.back()) * std::max(1.0, numRanks / ranks.back());
}

double DpuConfig::transferUs(const TransferTable &table, double bytesPerDpu, unsigned numRanks, unsigned most) const {
  // The eight chips of a rank are reached together: the share of the DPUs within a chip counts.
  double share = std::ceil(most / chipsPerRank) / dpusPerChip;
  return table.at(bytesPerDpu, std::max(1u, numRanks)) * std::min(1.0, std::max(serialShare, share));
}

std::vector<std::pair<std::string, double>> valuesOf(const DpuConfig &config) {
  DpuConfig copy = config;
  std::vector<std::pair<std::string, double>> values;
  for (const Scalar &scalar : scalars)
    values.emplace_back(scalar.path, scalar.in(copy));
  return values;
}

DpuConfig readDpuConfig(const std::string &path, unsigned numDpus,
                        const std::vector<std::pair<std::string, std::string>> &sets) {
  DpuConfig config = Reader(path, sets).read();
  config.numDpus =
      numDpus ? numDpus : static_cast<unsigned>(config.modules * config.ranksPerModule * config.dpusPerRank());
  if (numDpus)
    config.name = fmt::format("upmem-{}", numDpus);
  return config;
}

} // namespace nearbank::dpu
