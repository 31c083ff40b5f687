// SPDX-License-Identifier: Apache-2.0

#include "runtime/MachineFields.h"

#include <algorithm>

namespace nearbank {
namespace {

bool startsWith(const std::string &text, const std::string &prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

MachineField integerField(unsigned kinds, unsigned optionalIn, const char *path, const char *unit, FieldBound bound,
                          int64_t *(*get)(MachineConfig &)) {
  return {path, unit, bound, kinds, optionalIn, get, nullptr, nullptr};
}
MachineField realField(unsigned kinds, unsigned optionalIn, const char *path, const char *unit, FieldBound bound,
                       double *(*get)(MachineConfig &)) {
  return {path, unit, bound, kinds, optionalIn, nullptr, get, nullptr};
}
MachineField textField(const char *path, const char *unit, std::string *(*get)(MachineConfig &)) {
  return {path, unit, FieldBound::Text, NearMemoryKind, 0, nullptr, nullptr, get};
}

#define NB_INTEGER(KINDS, OPTIONAL, PATH, UNIT, BOUND, MEMBER)                                                         \
  integerField(KINDS, OPTIONAL, PATH, UNIT, FieldBound::BOUND, [](MachineConfig &m) -> int64_t * { return &m.MEMBER; })
#define NB_REAL(KINDS, OPTIONAL, PATH, UNIT, BOUND, MEMBER)                                                            \
  realField(KINDS, OPTIONAL, PATH, UNIT, FieldBound::BOUND, [](MachineConfig &m) -> double * { return &m.MEMBER; })
#define NB_CACHE(KINDS, OPTIONAL, PATH, MEMBER)                                                                        \
  NB_INTEGER(KINDS, OPTIONAL, PATH ".sizeBytes", "B", PowerOfTwo, MEMBER sizeBytes),                                   \
      NB_INTEGER(KINDS, OPTIONAL, PATH ".ways", "ways", PowerOfTwo, MEMBER ways),                                      \
      NB_INTEGER(KINDS, OPTIONAL, PATH ".lineBytes", "B", PowerOfTwo, MEMBER lineBytes),                               \
      NB_INTEGER(KINDS, OPTIONAL, PATH ".hitCycles", "cycles", NonNegative, MEMBER hitCycles)

} // namespace

const std::vector<std::string> &machineKinds() {
  static const std::vector<std::string> names = {"near-memory-cores", "host", "roofline"};
  return names;
}

unsigned machineKindOf(const std::string &name) {
  auto found = std::find(machineKinds().begin(), machineKinds().end(), name);
  return found == machineKinds().end() ? 0 : 1u << (found - machineKinds().begin());
}

const std::vector<MachineField> &machineFields() {
  static const std::vector<MachineField> table = {
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.count", "cores", Positive, core.count),
      NB_REAL(NearMemoryKind | HostKind, 0, "core.clockGHz", "GHz", Positive, core.clockGHz),
      NB_INTEGER(HostKind, 0, "core.dispatchWidth", "instructions", Positive, outOfOrder.dispatchWidth),
      NB_INTEGER(HostKind, 0, "core.retireWidth", "instructions", Positive, outOfOrder.retireWidth),
      NB_INTEGER(HostKind, 0, "core.robEntries", "entries", Positive, outOfOrder.robEntries),
      NB_INTEGER(HostKind, 0, "core.loadQueueEntries", "entries", Positive, outOfOrder.loadQueueEntries),
      NB_INTEGER(HostKind, 0, "core.storeQueueEntries", "entries", Positive, outOfOrder.storeQueueEntries),
      NB_INTEGER(HostKind, 0, "core.intPorts", "ports", Positive, outOfOrder.intPorts),
      NB_INTEGER(HostKind, 0, "core.intMulPorts", "ports", Positive, outOfOrder.intMulPorts),
      NB_INTEGER(HostKind, 0, "core.branchPorts", "ports", Positive, outOfOrder.branchPorts),
      NB_INTEGER(HostKind, 0, "core.fpPorts", "ports", Positive, outOfOrder.fpPorts),
      NB_INTEGER(HostKind, 0, "core.fpAddPorts", "ports", Positive, outOfOrder.fpAddPorts),
      NB_INTEGER(HostKind, 0, "core.fpMulPorts", "ports", Positive, outOfOrder.fpMulPorts),
      NB_INTEGER(HostKind, 0, "core.memoryPorts", "ports", Positive, outOfOrder.memoryPorts),
      NB_INTEGER(HostKind, 0, "core.loadPorts", "ports", Positive, outOfOrder.loadPorts),
      NB_INTEGER(HostKind, 0, "core.storePorts", "ports", Positive, outOfOrder.storePorts),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.intAluCycles", "cycles", Positive, core.intAluCycles),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.intMulCycles", "cycles", Positive, core.intMulCycles),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.intDivCycles", "cycles", Positive, core.intDivCycles),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.fpAddCycles", "cycles", Positive, core.fpAddCycles),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.fpMulCycles", "cycles", Positive, core.fpMulCycles),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.fpFmaCycles", "cycles", Positive, core.fpFmaCycles),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.fpDivCycles", "cycles", Positive, core.fpDivCycles),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.fpSqrtCycles", "cycles", Positive, core.fpSqrtCycles),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.fpMoveCycles", "cycles", Positive, core.fpMoveCycles),
      NB_INTEGER(NearMemoryKind, 0, "core.branchTakenCycles", "cycles", NonNegative, core.branchTakenCycles),
      NB_INTEGER(HostKind, 0, "core.fpDivIntervalCycles", "cycles", Positive, outOfOrder.fpDivIntervalCycles),
      NB_INTEGER(HostKind, 0, "core.fpSqrtIntervalCycles", "cycles", Positive, outOfOrder.fpSqrtIntervalCycles),
      NB_INTEGER(HostKind, 0, "core.fpLoadExtraCycles", "cycles", NonNegative, outOfOrder.fpLoadExtraCycles),
      NB_INTEGER(HostKind, 0, "core.forwardCycles", "cycles", Positive, outOfOrder.forwardCycles),
      NB_INTEGER(HostKind, 0, "core.mispredictCycles", "cycles", NonNegative, outOfOrder.mispredictCycles),
      NB_INTEGER(HostKind, 0, "core.outstandingMisses", "lines", Positive, outOfOrder.outstandingMisses),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorBits", "bits", VectorBits,
                 core.vectorBits),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorLanesBits", "bits", PowerOfTwo,
                 core.vectorLanesBits),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorIntCycles", "cycles", Positive,
                 core.vectorIntCycles),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorIntMulCycles", "cycles", Positive,
                 core.vectorIntMulCycles),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorFpAddCycles", "cycles", Positive,
                 core.vectorFpAddCycles),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorFpMulCycles", "cycles", Positive,
                 core.vectorFpMulCycles),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorFpFmaCycles", "cycles", Positive,
                 core.vectorFpFmaCycles),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorFpDivCycles", "cycles", Positive,
                 core.vectorFpDivCycles),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorFpSqrtCycles", "cycles", Positive,
                 core.vectorFpSqrtCycles),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorMoveCycles", "cycles", Positive,
                 core.vectorMoveCycles),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorPermuteCycles", "cycles", Positive,
                 core.vectorPermuteCycles),
      NB_INTEGER(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "core.vectorElementsPerCycle", "elements",
                 Positive, core.vectorElementsPerCycle),
      NB_INTEGER(HostKind, HostKind, "core.vectorLoadPorts", "ports", Positive, outOfOrder.vectorLoadPorts),
      NB_INTEGER(HostKind, HostKind, "core.vectorStorePorts", "ports", Positive, outOfOrder.vectorStorePorts),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "core.stackKiB", "KiB", Positive, core.stackKiB),
      NB_CACHE(NearMemoryKind | HostKind, 0, "l1i", l1i.),
      NB_CACHE(NearMemoryKind | HostKind, 0, "l1d", l1d.),
      NB_CACHE(NearMemoryKind | HostKind, NearMemoryKind, "l2", l2->),
      NB_CACHE(HostKind, 0, "l3", l3.),
      NB_INTEGER(HostKind, 0, "l2.bytesPerCycle", "B/cycle", Positive, l2BytesPerCycle),
      NB_INTEGER(HostKind, 0, "l3.bytesPerCycle", "B/cycle", Positive, l3BytesPerCycle),
      NB_INTEGER(HostKind, 0, "l3.sharedBy", "cores", Positive, l3SharedBy),
      NB_INTEGER(HostKind, HostKind, "prefetch.streams", "streams", Positive, prefetch->streams),
      NB_INTEGER(HostKind, HostKind, "prefetch.trainAccesses", "accesses", Positive, prefetch->trainAccesses),
      NB_INTEGER(HostKind, HostKind, "prefetch.degree", "lines", Positive, prefetch->degree),
      NB_INTEGER(HostKind, HostKind, "prefetch.distanceLines", "lines", Positive, prefetch->distanceLines),
      NB_INTEGER(HostKind, HostKind, "prefetch.pageBytes", "B", PowerOfTwo, prefetch->pageBytes),
      NB_INTEGER(NearMemoryKind, 0, "vault.count", "vaults", PowerOfTwo, dram.vaults),
      NB_REAL(NearMemoryKind, 0, "vault.bandwidthGBs", "GB/s", Positive, dram.vaultBandwidthGBs),
      NB_INTEGER(NearMemoryKind, 0, "vault.banks", "banks", PowerOfTwo, dram.banksPerVault),
      NB_INTEGER(NearMemoryKind, 0, "vault.rowBytes", "B", PowerOfTwo, dram.rowBytes),
      NB_INTEGER(NearMemoryKind, 0, "vault.interleaveBytes", "B", PowerOfTwo, dram.interleaveBytes),
      NB_INTEGER(NearMemoryKind, 0, "vault.capacityMiB", "MiB", Positive, dram.capacityMiB),
      NB_INTEGER(HostKind, 0, "channel.count", "channels", PowerOfTwo, dram.vaults),
      NB_REAL(HostKind, 0, "channel.bandwidthGBs", "GB/s", Positive, dram.vaultBandwidthGBs),
      NB_INTEGER(HostKind, 0, "channel.ranks", "ranks", PowerOfTwo, dram.ranks),
      NB_INTEGER(HostKind, 0, "channel.bankGroups", "groups", PowerOfTwo, dram.bankGroups),
      NB_INTEGER(HostKind, 0, "channel.banks", "banks", PowerOfTwo, dram.banksPerVault),
      NB_INTEGER(HostKind, 0, "channel.rowBytes", "B", PowerOfTwo, dram.rowBytes),
      NB_INTEGER(HostKind, 0, "channel.interleaveBytes", "B", PowerOfTwo, dram.interleaveBytes),
      NB_INTEGER(HostKind, 0, "channel.capacityMiB", "MiB", Positive, dram.capacityMiB),
      NB_INTEGER(HostKind, 0, "channel.writeQueueLines", "lines", Positive, dram.writeQueueLines),
      NB_REAL(HostKind, 0, "channel.controllerNs", "ns", NonNegative, dram.controllerNs),
      NB_REAL(NearMemoryKind | HostKind, 0, "dram.tCkNs", "ns", Positive, dram.tCkNs),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nRCD", "tCK", Positive, dram.nRCD),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nCL", "tCK", Positive, dram.nCL),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nRP", "tCK", Positive, dram.nRP),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nRAS", "tCK", Positive, dram.nRAS),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nCWL", "tCK", Positive, dram.nCWL),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nCCD", "tCK", Positive, dram.nCCD),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nRRD", "tCK", Positive, dram.nRRD),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nFAW", "tCK", Positive, dram.nFAW),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nWR", "tCK", Positive, dram.nWR),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nRTP", "tCK", Positive, dram.nRTP),
      NB_INTEGER(HostKind, 0, "dram.nCCDL", "tCK", Positive, dram.nCCDL),
      NB_INTEGER(HostKind, 0, "dram.nRRDL", "tCK", Positive, dram.nRRDL),
      NB_INTEGER(HostKind, 0, "dram.nWTR", "tCK", NonNegative, dram.nWTR),
      NB_INTEGER(HostKind, 0, "dram.nWTRL", "tCK", NonNegative, dram.nWTRL),
      NB_INTEGER(HostKind, 0, "dram.nCS", "tCK", NonNegative, dram.nCS),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nRFC", "tCK", NonNegative, dram.nRFC),
      NB_INTEGER(NearMemoryKind | HostKind, 0, "dram.nREFI", "tCK", Positive, dram.nREFI),
      NB_REAL(HostKind, HostKind, "memoryLink.bandwidthGBs", "GB/s", Positive, memoryLink->bandwidthGBs),
      NB_REAL(HostKind, HostKind, "memoryLink.latencyNs", "ns", NonNegative, memoryLink->latencyNs),
      NB_REAL(HostKind, 0, "threads.forkNs", "ns", NonNegative, threads.forkNs),
      NB_REAL(HostKind, 0, "threads.joinNs", "ns", NonNegative, threads.joinNs),
      NB_INTEGER(NearMemoryKind, 0, "network.meshWidth", "vaults", Positive, network.meshWidth),
      NB_REAL(NearMemoryKind, 0, "network.hopNs", "ns", NonNegative, network.hopNs),
      NB_REAL(NearMemoryKind, 0, "link.bandwidthGBs", "GB/s", Positive, link.bandwidthGBs),
      NB_REAL(NearMemoryKind, 0, "link.latencyNs", "ns", NonNegative, link.latencyNs),
      NB_REAL(NearMemoryKind, 0, "coherence.launchNs", "ns", NonNegative, coherence.launchNs),
      NB_REAL(NearMemoryKind, 0, "coherence.returnNs", "ns", NonNegative, coherence.returnNs),
      NB_REAL(NearMemoryKind, 0, "coherence.flushLineNs", "ns", NonNegative, coherence.flushLineNs),
      NB_REAL(NearMemoryKind, 0, "coherence.fetchLineNs", "ns", NonNegative, coherence.fetchLineNs),
      NB_INTEGER(NearMemoryKind, 0, "coherence.lineBytes", "B", PowerOfTwo, coherence.lineBytes),
      NB_INTEGER(NearMemoryKind, 0, "coherence.hostLastLevelBytes", "B", Positive, coherence.hostLastLevelBytes),
      NB_INTEGER(NearMemoryKind, 0, "coherence.parallelLines", "lines", Positive, coherence.parallelLines),
      NB_REAL(NearMemoryKind, 0, "placement.workOperations", "operations", NonNegative, thresholds.workOperations),
      NB_REAL(NearMemoryKind, 0, "placement.workShare", "share", Share, thresholds.workShare),
      NB_REAL(NearMemoryKind, 0, "placement.mpki", "misses/kilo-instruction", NonNegative, thresholds.mpki),
      NB_REAL(NearMemoryKind, 0, "placement.lfmr", "share", Share, thresholds.lfmr),
      NB_REAL(NearMemoryKind, 0, "placement.intensity", "operations/B", Positive, thresholds.intensity),
      textField("host.name", "name", [](MachineConfig &m) { return &m.host.name; }),
      NB_INTEGER(NearMemoryKind, 0, "host.cores", "cores", Positive, host.cores),
      NB_REAL(NearMemoryKind, 0, "host.clockGHz", "GHz", Positive, host.clockGHz),
      NB_CACHE(NearMemoryKind, 0, "host.l1d", host.l1d.),
      NB_CACHE(NearMemoryKind, 0, "host.l2", host.l2.),
      NB_CACHE(NearMemoryKind, 0, "host.l3", host.l3.),
      NB_REAL(NearMemoryKind, 0, "host.dramBandwidthGBs", "GB/s", Positive, host.dramBandwidthGBs),
      NB_REAL(NearMemoryKind, 0, "host.dramLatencyNs", "ns", NonNegative, host.dramLatencyNs),
      NB_REAL(RooflineKind, 0, "roofline.peakF32GFlops", "GFLOP/s", Positive, roofline.peakF32GFlops),
      NB_REAL(RooflineKind, 0, "roofline.peakBf16GFlops", "GFLOP/s", Positive, roofline.peakBf16GFlops),
      NB_REAL(RooflineKind, 0, "roofline.bandwidthGBs", "GB/s", Positive, roofline.bandwidthGBs),
      NB_REAL(RooflineKind, 0, "roofline.launchNs", "ns", NonNegative, roofline.launchNs),
      NB_INTEGER(RooflineKind, 0, "roofline.capacityMiB", "MiB", Positive, roofline.capacityMiB),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.intAluPj", "pJ", NonNegative,
              energy->intAluPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.intMulDivPj", "pJ", NonNegative,
              energy->intMulDivPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.branchPj", "pJ", NonNegative,
              energy->branchPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.loadPj", "pJ", NonNegative, energy->loadPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.storePj", "pJ", NonNegative,
              energy->storePj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.floatAddPj", "pJ", NonNegative,
              energy->floatAddPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.floatMulPj", "pJ", NonNegative,
              energy->floatMulPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.floatFmaPj", "pJ", NonNegative,
              energy->floatFmaPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.floatDivPj", "pJ", NonNegative,
              energy->floatDivPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.floatOtherPj", "pJ", NonNegative,
              energy->floatOtherPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.otherPj", "pJ", NonNegative,
              energy->otherPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.vectorLanePj", "pJ", NonNegative,
              energy->vectorLanePj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.l1AccessPj", "pJ", NonNegative,
              energy->l1AccessPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.l2AccessPj", "pJ", NonNegative,
              energy->l2AccessPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.l3AccessPj", "pJ", NonNegative,
              energy->l3AccessPj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.dramActivatePj", "pJ", NonNegative,
              energy->dramActivatePj),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.dramReadPjPerBit", "pJ/bit", NonNegative,
              energy->dramReadPjPerBit),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.dramWritePjPerBit", "pJ/bit", NonNegative,
              energy->dramWritePjPerBit),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.linkPjPerBit", "pJ/bit", NonNegative,
              energy->linkPjPerBit),
      NB_REAL(NearMemoryKind | HostKind, NearMemoryKind | HostKind, "energy.staticWatts", "W", NonNegative,
              energy->staticWatts),
  };
  return table;
}

#undef NB_INTEGER
#undef NB_REAL
#undef NB_CACHE

std::string groupOf(const std::string &path) {
  constexpr const char *vectorUnit = "core.vector";
  return startsWith(path, vectorUnit) ? vectorUnit : path.substr(0, path.find('.'));
}

const MachineField *findMachineField(const std::string &path, unsigned kinds) {
  for (const MachineField &field : machineFields())
    if ((field.kinds & kinds) != 0 && path == field.path)
      return &field;
  return nullptr;
}

bool isSection(const std::string &path, unsigned kinds) {
  for (const MachineField &field : machineFields())
    if ((field.kinds & kinds) != 0 && startsWith(field.path, path + "."))
      return true;
  return false;
}

std::vector<std::string> keysBelow(const std::string &section, unsigned kinds) {
  std::vector<std::string> keys;
  if (section.empty())
    keys = topLevelTexts();
  std::string prefix = section.empty() ? "" : section + ".";
  for (const MachineField &field : machineFields()) {
    std::string path = field.path;
    if ((field.kinds & kinds) == 0 || !startsWith(path, prefix))
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
