// SPDX-License-Identifier: Apache-2.0
// What profiling one distinct nest on the host gives. No LLVM here: code arrives as function pointers.
#pragma once

#include "runtime/Machine.h"
#include "runtime/Program.h"

#include <cstdint>
#include <string>

namespace nearbank::profile {

/// Cache behaviour from the cache model fed with the nest's own addresses.
struct CacheProfile {
  double accesses = 0;                             ///< Element accesses, scaled to the whole nest.
  double l1Misses = 0, l2Misses = 0, l3Misses = 0; ///< Lines, scaled to the whole nest.
  double dramBytes = 0;                            ///< (L3 misses + dirty write-backs) x line.
  double instructions = 0;                         ///< Modelled scalar instructions: accesses + operations of the nest.
  double sampledShare = 1;                         ///< Share of the task range that was traced.
  double mpki() const { return instructions > 0 ? l3Misses / instructions * 1000.0 : 0; }
  double lfmr() const { return l1Misses > 0 ? l3Misses / l1Misses : 0; }
};

struct NestProfile {
  std::string key;
  std::string host;             ///< Host fingerprint.
  double oneThreadNs = 0;       ///< Median, measured.
  double oneThreadSpreadNs = 0; ///< Interquartile range.
  double allThreadsNs = 0;
  double allThreadsSpreadNs = 0;
  int64_t threads = 1;
  int64_t parallelTasks = 0; ///< Tasks into which the nest's schedule splits its parallel iterations; 0 when unknown.
  int64_t repeats = 0;
  CacheProfile cache;
  std::string cacheSource; ///< "cache-model" or "perf-event".
  int64_t version = 1;     ///< Version of the code generator and profiler that made it.
};

} // namespace nearbank::profile
