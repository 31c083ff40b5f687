// SPDX-License-Identifier: Apache-2.0

#include "runtime/MachineFields.h"

#include <algorithm>

namespace nearbank {
namespace {

bool startsWith(const std::string &text, const std::string &prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

MachineField integerField(const char *path, const char *unit, FieldBound bound, int64_t *(*get)(MachineConfig &)) {
  return {path, unit, bound, get, nullptr, nullptr};
}
MachineField realField(const char *path, const char *unit, FieldBound bound, double *(*get)(MachineConfig &)) {
  return {path, unit, bound, nullptr, get, nullptr};
}
MachineField textField(const char *path, const char *unit, std::string *(*get)(MachineConfig &)) {
  return {path, unit, FieldBound::Text, nullptr, nullptr, get};
}

#define NB_INTEGER(PATH, UNIT, BOUND, MEMBER)                                                                          \
  integerField(PATH, UNIT, FieldBound::BOUND, [](MachineConfig &m) -> int64_t * { return &m.MEMBER; })
#define NB_REAL(PATH, UNIT, BOUND, MEMBER)                                                                             \
  realField(PATH, UNIT, FieldBound::BOUND, [](MachineConfig &m) -> double * { return &m.MEMBER; })
#define NB_CACHE(PATH, MEMBER)                                                                                         \
  NB_INTEGER(PATH ".sizeBytes", "B", PowerOfTwo, MEMBER sizeBytes),                                                    \
      NB_INTEGER(PATH ".ways", "ways", PowerOfTwo, MEMBER ways),                                                       \
      NB_INTEGER(PATH ".lineBytes", "B", PowerOfTwo, MEMBER lineBytes),                                                \
      NB_INTEGER(PATH ".hitCycles", "cycles", NonNegative, MEMBER hitCycles)

} // namespace

const std::vector<MachineField> &machineFields() {
  static const std::vector<MachineField> table = {
      NB_INTEGER("core.count", "cores", Positive, core.count),
      NB_REAL("core.clockGHz", "GHz", Positive, core.clockGHz),
      NB_INTEGER("core.intAluCycles", "cycles", Positive, core.intAluCycles),
      NB_INTEGER("core.intMulCycles", "cycles", Positive, core.intMulCycles),
      NB_INTEGER("core.intDivCycles", "cycles", Positive, core.intDivCycles),
      NB_INTEGER("core.fpAddCycles", "cycles", Positive, core.fpAddCycles),
      NB_INTEGER("core.fpMulCycles", "cycles", Positive, core.fpMulCycles),
      NB_INTEGER("core.fpFmaCycles", "cycles", Positive, core.fpFmaCycles),
      NB_INTEGER("core.fpDivCycles", "cycles", Positive, core.fpDivCycles),
      NB_INTEGER("core.fpSqrtCycles", "cycles", Positive, core.fpSqrtCycles),
      NB_INTEGER("core.fpMoveCycles", "cycles", Positive, core.fpMoveCycles),
      NB_INTEGER("core.branchTakenCycles", "cycles", NonNegative, core.branchTakenCycles),
      NB_INTEGER("core.stackKiB", "KiB", Positive, core.stackKiB),
      NB_CACHE("l1i", l1i.),
      NB_CACHE("l1d", l1d.),
      NB_CACHE("l2", l2->),
      NB_INTEGER("vault.count", "vaults", PowerOfTwo, dram.vaults),
      NB_REAL("vault.bandwidthGBs", "GB/s", Positive, dram.vaultBandwidthGBs),
      NB_INTEGER("vault.banks", "banks", PowerOfTwo, dram.banksPerVault),
      NB_INTEGER("vault.rowBytes", "B", PowerOfTwo, dram.rowBytes),
      NB_INTEGER("vault.interleaveBytes", "B", PowerOfTwo, dram.interleaveBytes),
      NB_INTEGER("vault.capacityMiB", "MiB", Positive, dram.capacityMiB),
      NB_REAL("dram.tCkNs", "ns", Positive, dram.tCkNs),
      NB_INTEGER("dram.nRCD", "tCK", Positive, dram.nRCD),
      NB_INTEGER("dram.nCL", "tCK", Positive, dram.nCL),
      NB_INTEGER("dram.nRP", "tCK", Positive, dram.nRP),
      NB_INTEGER("dram.nRAS", "tCK", Positive, dram.nRAS),
      NB_INTEGER("dram.nCWL", "tCK", Positive, dram.nCWL),
      NB_INTEGER("dram.nCCD", "tCK", Positive, dram.nCCD),
      NB_INTEGER("dram.nRRD", "tCK", Positive, dram.nRRD),
      NB_INTEGER("dram.nFAW", "tCK", Positive, dram.nFAW),
      NB_INTEGER("dram.nWR", "tCK", Positive, dram.nWR),
      NB_INTEGER("dram.nRTP", "tCK", Positive, dram.nRTP),
      NB_INTEGER("dram.nRFC", "tCK", NonNegative, dram.nRFC),
      NB_INTEGER("dram.nREFI", "tCK", Positive, dram.nREFI),
      NB_INTEGER("network.meshWidth", "vaults", Positive, network.meshWidth),
      NB_REAL("network.hopNs", "ns", NonNegative, network.hopNs),
      NB_REAL("link.bandwidthGBs", "GB/s", Positive, link.bandwidthGBs),
      NB_REAL("link.latencyNs", "ns", NonNegative, link.latencyNs),
      NB_REAL("coherence.launchNs", "ns", NonNegative, coherence.launchNs),
      NB_REAL("coherence.returnNs", "ns", NonNegative, coherence.returnNs),
      NB_REAL("coherence.flushLineNs", "ns", NonNegative, coherence.flushLineNs),
      NB_REAL("coherence.fetchLineNs", "ns", NonNegative, coherence.fetchLineNs),
      NB_INTEGER("coherence.lineBytes", "B", PowerOfTwo, coherence.lineBytes),
      NB_INTEGER("coherence.hostLastLevelBytes", "B", Positive, coherence.hostLastLevelBytes),
      NB_INTEGER("coherence.parallelLines", "lines", Positive, coherence.parallelLines),
      NB_REAL("placement.workOperations", "operations", NonNegative, thresholds.workOperations),
      NB_REAL("placement.workShare", "share", Share, thresholds.workShare),
      NB_REAL("placement.mpki", "misses/kilo-instruction", NonNegative, thresholds.mpki),
      NB_REAL("placement.lfmr", "share", Share, thresholds.lfmr),
      NB_REAL("placement.intensity", "operations/B", Positive, thresholds.intensity),
      textField("host.name", "name", [](MachineConfig &m) { return &m.host.name; }),
      NB_INTEGER("host.cores", "cores", Positive, host.cores),
      NB_REAL("host.clockGHz", "GHz", Positive, host.clockGHz),
      NB_CACHE("host.l1d", host.l1d.),
      NB_CACHE("host.l2", host.l2.),
      NB_CACHE("host.l3", host.l3.),
      NB_REAL("host.dramBandwidthGBs", "GB/s", Positive, host.dramBandwidthGBs),
      NB_REAL("host.dramLatencyNs", "ns", NonNegative, host.dramLatencyNs),
  };
  return table;
}

#undef NB_INTEGER
#undef NB_REAL
#undef NB_CACHE

const MachineField *findMachineField(const std::string &path) {
  for (const MachineField &field : machineFields())
    if (path == field.path)
      return &field;
  return nullptr;
}

bool isSection(const std::string &path) {
  for (const MachineField &field : machineFields())
    if (startsWith(field.path, path + "."))
      return true;
  return false;
}

std::vector<std::string> keysBelow(const std::string &section) {
  std::vector<std::string> keys;
  if (section.empty())
    keys = topLevelTexts();
  std::string prefix = section.empty() ? "" : section + ".";
  for (const MachineField &field : machineFields()) {
    std::string path = field.path;
    if (!startsWith(path, prefix))
      continue;
    std::string key = path.substr(prefix.size());
    key = key.substr(0, key.find('.'));
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      keys.push_back(key);
  }
  return keys;
}

const std::vector<std::string> &topLevelTexts() {
  static const std::vector<std::string> names = {"name", "kind", "description"};
  return names;
}

} // namespace nearbank
