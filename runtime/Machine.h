// SPDX-License-Identifier: Apache-2.0
// Machine descriptions as read from machines/*.yaml: every value carries its unit and its source.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nearbank {

namespace dpu {
struct DpuConfig;
}

struct CacheConfig {
  int64_t sizeBytes = 32768;
  int64_t ways = 8;
  int64_t lineBytes = 64;
  int64_t hitCycles = 4; ///< Load-to-use latency of a hit, in cycles of the owning core.
};

/// RV64 core. Latencies are result latencies in core cycles. In machines of kind near-memory-cores it is in order and
/// issues one instruction a cycle; OutOfOrderConfig completes it for hosts.
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
  int64_t branchTakenCycles = 2; ///< Bubbles after a taken branch or jump; in-order cores only.
  int64_t stackKiB = 64;

  /// Vector unit (RVV 1.0): VLEN, one of 0 (none), 128, 256, 512. The fields below mean nothing when it is 0.
  int64_t vectorBits = 0;
  int64_t vectorLanesBits = 0; ///< Width of one arithmetic pipe's datapath: bits of a register group a cycle.
  int64_t vectorIntCycles = 1; ///< Latency of the first vectorLanesBits, as for the others.
  int64_t vectorIntMulCycles = 3;
  int64_t vectorFpAddCycles = 4;
  int64_t vectorFpMulCycles = 4;
  int64_t vectorFpFmaCycles = 4;
  int64_t vectorFpDivCycles = 20;     ///< Not pipelined.
  int64_t vectorFpSqrtCycles = 20;    ///< Not pipelined.
  int64_t vectorMoveCycles = 1;       ///< Moves, merges, compares, sign injection, conversions, masks.
  int64_t vectorPermuteCycles = 3;    ///< Slides, register gathers, compress, and each step of a reduction.
  int64_t vectorElementsPerCycle = 1; ///< Elements of strided and indexed memory accesses a cycle.
};

/// What an out-of-order core has beyond CoreConfig. Ports: instructions of a class that may start in one cycle.
struct OutOfOrderConfig {
  int64_t dispatchWidth = 4; ///< Instructions a cycle that enter the window.
  int64_t retireWidth = 4;
  int64_t robEntries = 128;
  int64_t loadQueueEntries = 48;
  int64_t storeQueueEntries = 32;
  int64_t intPorts = 3;
  int64_t intMulPorts = 1;
  int64_t branchPorts = 1;
  int64_t fpPorts = 2; ///< Floating-point and vector instructions together.
  int64_t fpAddPorts = 1;
  int64_t fpMulPorts = 1;  ///< Multiplications and fused multiply-adds.
  int64_t memoryPorts = 2; ///< Loads and stores together.
  int64_t loadPorts = 2;
  int64_t storePorts = 1;
  int64_t vectorLoadPorts = 2;      ///< Loads of vectorLanesBits.
  int64_t vectorStorePorts = 1;     ///< Stores of vectorLanesBits.
  int64_t fpDivIntervalCycles = 20; ///< Between divisions of vectorLanesBits or less; hosts' dividers may be pipelined.
  int64_t fpSqrtIntervalCycles = 20; ///< Between square roots.
  int64_t fpLoadExtraCycles = 0;     ///< Load-to-use latency of floating-point and vector loads beyond l1d.hitCycles.
  int64_t forwardCycles = 5;         ///< From a store's data to a load that takes it from the store queue.
  int64_t mispredictCycles = 15;     ///< From a mispredicted branch's end to the dispatch of the right path.
  int64_t outstandingMisses = 10;    ///< L1D lines in flight.
};

/// Stream prefetcher beside each L2. It watches L1 misses; `trainAccesses` in one direction within a page make a
/// stream.
struct PrefetchConfig {
  int64_t streams = 0; ///< Followed at a time per core; 0 means no prefetcher.
  int64_t trainAccesses = 2;
  int64_t degree = 2;         ///< Lines requested per access of a stream.
  int64_t distanceLines = 20; ///< Furthest ahead of the access.
  int64_t pageBytes = 4096;   ///< Streams do not cross pages.
};

/// What starting and ending a parallel section on all cores of a host costs.
struct ThreadConfig {
  double forkNs = 0; ///< Until the threads run.
  double joinNs = 0; ///< From the last thread's end until the caller goes on.
};

/// Dynamic energy per event. Modelled.
struct EnergyConfig {
  double intAluPj = 0, intMulDivPj = 0, branchPj = 0, loadPj = 0, storePj = 0;
  double floatAddPj = 0, floatMulPj = 0, floatFmaPj = 0, floatDivPj = 0, floatOtherPj = 0, otherPj = 0;
  double vectorLanePj = 0;                               ///< One 64-bit lane of one vector arithmetic instruction.
  double l1AccessPj = 0, l2AccessPj = 0, l3AccessPj = 0; ///< One access of a line or part of it.
  double dramActivatePj = 0;                             ///< One row opened and closed.
  double dramReadPjPerBit = 0, dramWritePjPerBit = 0;
  double linkPjPerBit = 0; ///< Between memory and cores where a link or channel lies between them.
  double staticWatts = 0;  ///< Of the whole machine, while a kernel runs.
};

/// A machine known by its peaks only; RL-1 of docs/model.md gives its time. Modelled.
struct RooflineConfig {
  double peakF32GFlops = 0;
  double peakBf16GFlops = 0;
  double bandwidthGBs = 0;
  double launchNs = 0;
  int64_t capacityMiB = 0;
};

/// DRAM: the vaults of a stack, or the channels of a host. Timing values are in DRAM clock cycles (tCK). Values that
/// stand for hosts only are neutral by default.
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
  int64_t ranks = 1;           ///< Per channel, each with banksPerVault banks; hosts only, as the rest.
  int64_t bankGroups = 1;      ///< Per rank.
  int64_t nCCDL = 4;           ///< As nCCD, within one bank group.
  int64_t nRRDL = 7;           ///< As nRRD, within one bank group.
  int64_t nWTR = 0;            ///< End of write data to a read of the same rank, other bank group.
  int64_t nWTRL = 0;           ///< As nWTR, within one bank group.
  int64_t nCS = 0;             ///< Data bus idle between ranks.
  int64_t writeQueueLines = 0; ///< Writes that a channel holds back, to drain them together.
  double controllerNs = 0;     ///< From a last-level miss to the channel and back, without the DRAM itself.
};

/// Network between vaults of the stack.
struct NetworkConfig {
  int64_t meshWidth = 6; ///< Vaults sit on a square mesh of this width.
  double hopNs = 0.0;    ///< One hop, one direction.
};

/// External link between host and stack; in hosts the path that all memory traffic shares, when there is one.
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
  std::string kind; ///< "near-memory-cores", "host", "roofline" or "upmem".
  std::string file;
  CoreConfig core;
  OutOfOrderConfig outOfOrder; ///< Hosts only.
  CacheConfig l1i, l1d;
  std::optional<CacheConfig> l2;
  CacheConfig l3;               ///< Hosts only.
  int64_t l3SharedBy = 1;       ///< Cores per last-level cache; divides the number of cores.
  int64_t l2BytesPerCycle = 64; ///< Hosts only: from an L2 to its L1s; L3 the same from the last level to one L2.
  int64_t l3BytesPerCycle = 64;
  std::optional<PrefetchConfig> prefetch; ///< Hosts only.
  ThreadConfig threads;                   ///< Hosts only.
  std::optional<EnergyConfig> energy;
  RooflineConfig roofline; ///< Kind "roofline" only.
  DramConfig dram;
  NetworkConfig network;
  std::optional<LinkConfig> memoryLink; ///< Hosts whose memory channels lie behind one serial link.
  LinkConfig link;
  CoherenceConfig coherence;
  PlacementThresholds thresholds;
  HostConfig host;                  ///< Cache hierarchy that the profile's cache model uses; of a host, its own.
  std::vector<MachineValue> values; ///< Every leaf, in file order.
  std::shared_ptr<const dpu::DpuConfig> dpus; ///< Kind "upmem" only.
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
