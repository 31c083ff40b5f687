// SPDX-License-Identifier: Apache-2.0
// Machine descriptions as read from machines/*.yaml: every value carries its unit and its source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nearbank {

struct CacheConfig {
  int64_t sizeBytes = 32768;
  int64_t ways = 8;
  int64_t lineBytes = 64;
  int64_t hitCycles = 4; ///< Load-to-use latency of a hit, in cycles of the owning core.
};

/// In-order scalar RV64 core. Latencies are result latencies in core cycles; issue is one instruction a cycle.
struct CoreConfig {
  int64_t count = 64;
  double clockGHz = 1.0;
  int64_t intAluCycles = 1;
  int64_t intMulCycles = 3;
  int64_t intDivCycles = 20;
  int64_t fpAddCycles = 4;
  int64_t fpMulCycles = 4;
  int64_t fpFmaCycles = 4;
  int64_t fpDivCycles = 20;
  int64_t fpSqrtCycles = 20;
  int64_t fpMoveCycles = 1;      ///< Moves, sign injection, compares, min, max, conversions.
  int64_t branchTakenCycles = 2; ///< Bubbles after a taken branch or jump.
  int64_t stackKiB = 64;
};

/// Stack of DRAM vaults. Timing values are in DRAM clock cycles (tCK).
struct DramConfig {
  int64_t vaults = 32;
  int64_t banksPerVault = 8;
  int64_t rowBytes = 2048;
  int64_t interleaveBytes = 256; ///< Consecutive addresses change vault after this many bytes.
  double tCkNs = 0.8;
  int64_t nRCD = 17, nCL = 17, nRP = 17, nRAS = 34, nCWL = 13, nCCD = 4, nRRD = 7, nFAW = 17, nWR = 19, nRTP = 9;
  int64_t nRFC = 200, nREFI = 9750;
  double vaultBandwidthGBs = 10.0; ///< Peak of one vault; bounds the burst rate.
  int64_t capacityMiB = 4096;
};

/// Network between vaults of the stack.
struct NetworkConfig {
  int64_t meshWidth = 6; ///< Vaults sit on a square mesh of this width.
  double hopNs = 0.0;    ///< One hop, one direction.
};

/// External link between host and stack.
struct LinkConfig {
  double bandwidthGBs = 120.0;
  double latencyNs = 30.0;
};

/// What moving work and data between sides costs (modelled).
struct CoherenceConfig {
  double launchNs = 2000.0;  ///< Host→PIM switch.
  double returnNs = 2000.0;  ///< PIM→host switch.
  double flushLineNs = 60.0; ///< One dirty line written back by the host before PIM may read it.
  double fetchLineNs = 60.0; ///< One line fetched by the host after PIM wrote it.
  int64_t lineBytes = 64;
  int64_t hostLastLevelBytes = 8388608; ///< At most this much of a buffer can be dirty in the host's caches.
  int64_t parallelLines = 10;           ///< Lines in flight at a time.
};

/// Thresholds of the two-stage policy and of its siblings; docs/model.md defines each.
struct PlacementThresholds {
  double workOperations = 0; ///< PL-1: least operations of one execution.
  double workShare = 0.0;    ///< PL-1: least share of the measured host time.
  double mpki = 0;           ///< PL-2.
  double lfmr = 0;           ///< PL-2.
  double intensity = 0;      ///< PL-2: operations per DRAM byte, above which a nest is compute-bound.
};

struct HostConfig {
  std::string name;
  int64_t cores = 1;
  double clockGHz = 3.0;
  CacheConfig l1d, l2, l3;
  double dramBandwidthGBs = 20.0;
  double dramLatencyNs = 90.0;
};

/// One leaf of a machine file, for `machines show` and provenance.
struct MachineValue {
  std::string path;  ///< "vault.bandwidthGBs".
  std::string value; ///< As written.
  std::string unit;
  std::string source;
  std::string layer; ///< "machines/nmc-64.yaml:14", or "--set vault.bandwidthGBs=5".
};

struct MachineConfig {
  std::string name;
  std::string kind; ///< "near-memory-cores", "host" (later "upmem").
  std::string file;
  CoreConfig core;
  CacheConfig l1i, l1d;
  std::optional<CacheConfig> l2;
  DramConfig dram;
  NetworkConfig network;
  LinkConfig link;
  CoherenceConfig coherence;
  PlacementThresholds thresholds;
  HostConfig host;                  ///< Cache hierarchy that the profile's cache model uses.
  std::vector<MachineValue> values; ///< Every leaf, in file order.
};

/// Reads a machine file.
/// @param nameOrPath built-in name ("nmc-64") or path ending in .yaml
/// @param searchFolder folder of built-in machine files
/// @param overrides pairs (path, value) from --set, applied last
/// @throws UserError NB01xx with file:line:column on unknown, missing, negative or impossible values
MachineConfig loadMachine(const std::string &nameOrPath, const std::string &searchFolder,
                          const std::vector<std::pair<std::string, std::string>> &overrides = {});

/// Names of the machine files in `searchFolder`, sorted.
std::vector<std::string> listMachines(const std::string &searchFolder);

} // namespace nearbank
