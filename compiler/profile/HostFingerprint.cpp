// SPDX-License-Identifier: Apache-2.0
// Names the machine that a profile was measured on.

#include "compiler/profile/ProfileDatabase.h"
#include "runtime/HostThreads.h"

#include <fmt/format.h>

#include <fstream>
#include <map>

namespace nearbank::profile {
namespace {

std::string firstLine(const std::string &path) {
  std::ifstream stream(path);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string processorModel() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string readFingerprint() {
  std::string text = fmt::format("{}, {} cores", processorModel(), availableCores());
  for (int index = 0; index < 8; ++index) {
    std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    std::string size = firstLine(folder + "size");
    std::string type = firstLine(folder + "type");
    if (size.empty() || type == "Instruction")
      continue;
    text += fmt::format(", L{}{} {}", firstLine(folder + "level"), type == "Data" ? "d" : "", size);
  }
  return text;
}

} // namespace

std::string hostFingerprint() {
  static const std::string text = readFingerprint();
  return text;
}

std::string cacheConfigHash(const HostConfig &host) {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  for (const CacheConfig *cache : {&host.l1d, &host.l2, &host.l3})
    for (int64_t value : {cache->sizeBytes, cache->ways, cache->lineBytes})
      for (int shift = 0; shift < 64; shift += 8)
        hash = (hash ^ ((uint64_t(value) >> shift) & 0xff)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

} // namespace nearbank::profile
