// SPDX-License-Identifier: Apache-2.0
// The program that tests of placement policies share.
#pragma once

#include "compiler/placement/Placement.h"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace nearbank::placement {

inline constexpr Site host = Site::Host, pim = Site::Pim;

/// Four distinct nests: a large stream, a large matmul, a small stream, and one without a parallel loop.
class PlacementTest : public testing::Test {
protected:
  PlacementTest() {
    machine_.core.count = 64;
    machine_.core.clockGHz = 1.0;
    machine_.thresholds = {100000, 0.0, 5.0, 0.56, 8.5};
    addNest("add_1048576_f32", "elementwise", 1 << 20, 1 << 20, "encoder.layer.1.add", "/home/me/model.py:41");
    addNest("matmul_64x256x256_f32", "contraction", 64 * 256, 64 * 256 * 256, "encoder.layer.10.linear",
            "/home/me/model.py:42");
    addNest("add_64_f32", "elementwise", 64, 64, "encoder.layer.1.bias", "/home/me/model.py:410");
    addNest("sum_1048576_f32", "reduction", 1, 1 << 20, "pooler", "");

    setProfile(0, 3e5, 3.0 * (1 << 20), 196608, 196608);
    setProfile(1, 2e5, 2.0 * 64 * 256 * 256, 300000, 6144);
    setProfile(2, 100, 192, 12, 12);
    setProfile(3, 1e5, 1 << 20, 65536, 65536);
  }

  void addNest(const std::string &name, const std::string &kind, int64_t extent, int64_t iterations,
               const std::string &module, const std::string &source) {
    NestKernel kernel;
    kernel.key = "key" + std::to_string(program_.kernels.size());
    kernel.name = name;
    NestFacts &facts = kernel.facts;
    facts.kind = kind;
    facts.parallelExtent = extent;
    facts.iterations = iterations;
    facts.hasReduction = iterations > extent;
    facts.operations.floatOps = kind == "contraction" ? 2.0 * double(iterations) : double(iterations);
    facts.operations.loads = 2.0 * double(iterations);
    facts.operations.stores = double(extent);
    facts.bytesRead = 8.0 * double(extent);
    facts.bytesWritten = 4.0 * double(extent);
    program_.kernels.push_back(kernel);
    NestInstance nest;
    nest.id = "n" + std::to_string(program_.nests.size());
    nest.kernel = uint32_t(program_.kernels.size() - 1);
    nest.modulePath = module;
    nest.source = source;
    program_.nests.push_back(nest);
  }

  void setProfile(size_t kernel, double hostNs, double accesses, double l1Misses, double l3Misses) {
    profiles_.resize(program_.kernels.size());
    profile::NestProfile &profile = profiles_[kernel];
    profile.key = program_.kernels[kernel].key;
    profile.oneThreadNs = hostNs * 2;
    profile.allThreadsNs = hostNs;
    profile.cache.accesses = accesses;
    profile.cache.l1Misses = l1Misses;
    profile.cache.l2Misses = profile.cache.l3Misses = l3Misses;
    profile.cache.dramBytes = l3Misses * 64;
    profile.cache.instructions = accesses + program_.kernels[kernel].facts.operations.total();
    profile.cacheSource = "cache-model";
  }

  PlacementResult run(const std::string &policy, std::vector<std::string> pins = {},
                      std::vector<std::string> forbids = {}, std::vector<std::string> failures = {}) {
    return place({program_, profiles_, machine_, policy, std::move(pins), std::move(forbids), std::move(failures),
                  /*isSimulated=*/true, simulatedNs_});
  }

  static const EquationRecord &equation(const NestDecision &decision, const std::string &id) {
    for (const EquationRecord &record : decision.equations)
      if (record.id == id)
        return record;
    throw std::runtime_error("no equation " + id);
  }

  Program program_;
  std::vector<profile::NestProfile> profiles_;
  std::vector<std::optional<double>> simulatedNs_ = {1e5, 1e6, 1e3, 1e5}; ///< By kernel.
  MachineConfig machine_;
};

} // namespace nearbank::placement
