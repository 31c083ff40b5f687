// SPDX-License-Identifier: Apache-2.0
#include "sim/dpu/DpuMachine.h"

#include "runtime/Error.h"
#include "sim/dpu/DpuConfig.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace nearbank::dpu {
namespace {

/// More would not find a place in a simulator's memory, and no machine has them.
constexpr unsigned long mostDpus = 1ul << 20;

[[noreturn]] void refuse(const std::string &name) {
  throw UserError({"NB0101", "unknown machine", "--machine " + name,
                   fmt::format("upmem-N for N DPUs, 1 to {}, upmem-N-link for the same with links between them, or a "
                               "machine file",
                               mostDpus),
                   "'" + name + "'", "--machine upmem-64"});
}

unsigned numberOfDpus(const std::string &name, const std::string &digits) {
  unsigned long number = std::stoul(digits);
  if (number < 1 || number > mostDpus)
    refuse(name);
  return static_cast<unsigned>(number);
}

/// The file and number of DPUs that a name stands for; 0 DPUs takes those of the file.
std::optional<std::pair<std::string, unsigned>> dpuMachine(const std::string &name, const std::string &folder) {
  std::smatch match;
  auto builtin = [&](const std::string &file) {
    return (std::filesystem::path(folder) / "upmem" / (file + ".yaml")).string();
  };
  if (name == "upmem" || name == "upmem-v1a" || name == "upmem-v1a-link")
    return std::pair(builtin(name == "upmem" ? "upmem-v1a" : name), 0u);
  if (std::regex_match(name, match, std::regex("upmem-([0-9]{1,9})(-link)?")))
    return std::pair(builtin("upmem-v1a" + match[2].str()), numberOfDpus(name, match[1]));
  if (name.rfind("upmem", 0) == 0 && name.find_first_of("./") == std::string::npos)
    refuse(name);
  std::error_code error;
  if (!std::filesystem::is_regular_file(name, error))
    return std::nullopt;
  try {
    YAML::Node root = YAML::LoadFile(name);
    if (root.IsMap() && root["kind"] && root["kind"].as<std::string>("") == "upmem")
      return std::pair(name, 0u);
  } catch (const YAML::Exception &) {
    // loadMachine() says what is wrong with the file.
  }
  return std::nullopt;
}

} // namespace

MachineConfig loadAnyMachine(const std::string &nameOrPath, const std::string &searchFolder,
                             const std::vector<std::pair<std::string, std::string>> &overrides) {
  auto found = dpuMachine(nameOrPath, searchFolder);
  if (!found)
    return loadMachine(nameOrPath, searchFolder, overrides);
  auto config = std::make_shared<DpuConfig>(readDpuConfig(found->first, found->second, overrides));
  MachineConfig machine;
  machine.name = config->name;
  machine.kind = "upmem";
  machine.file = found->first;
  machine.core.count = config->numDpus;
  machine.core.clockGHz = config->clockMHz * 1e-3;
  machine.dram.vaults = config->numDpus;
  machine.dram.vaultBandwidthGBs = machine.core.clockGHz / config->dmaCyclesPerByte;
  // What crosses is charged at each launch (CX-5), not by lines of a cache.
  machine.coherence.launchNs = machine.coherence.returnNs = 0;
  machine.coherence.flushLineNs = machine.coherence.fetchLineNs = 0;
  machine.thresholds = config->thresholds;
  machine.host = loadMachine("host-16", searchFolder).host;
  machine.values = config->values;
  machine.values.push_back({"system.dpus", fmt::format("{}", config->numDpus), "DPUs",
                            found->second ? "the name of the machine" : "modules x ranks x chips x DPUs",
                            found->second ? nameOrPath : machine.file});
  machine.dpus = std::move(config);
  return machine;
}

void chooseEngine(MachineConfig &machine, const std::string &upmemHome) {
  const char *chosen = std::getenv("NEARBANK_UPMEM");
  std::string name = chosen && *chosen ? chosen : "exact";
  if (name == "exact")
    return;
  if (name != "fast")
    throw UserError({"NB0802", "unknown engine", "NEARBANK_UPMEM", "exact or fast", name, ""});
  auto config = std::make_shared<DpuConfig>(*machine.dpus);
  config->translator = upmemHome + "/lib/libnearbank_translate.so";
  machine.dpus = std::move(config);
  machine.values.push_back({"dpu.engine", name, "name", "NEARBANK_UPMEM", "environment"});
}

} // namespace nearbank::dpu
