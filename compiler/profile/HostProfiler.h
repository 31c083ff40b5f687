// SPDX-License-Identifier: Apache-2.0
// Runs one nest on the host on scratch data: measures its time and feeds its addresses to the cache model.
#pragma once

#include "compiler/profile/NestProfile.h"

#include <map>

namespace nearbank::profile {

/// Version of the profiler's method; a profile made by another one is stale.
inline constexpr int64_t profilerVersion = 2;

struct ProfileOptions {
  int threads = 0;                  ///< "All threads"; 0 means every core of this machine.
  double budgetNs = 30e6;           ///< Measuring time per nest, one thread and all threads together.
  int64_t minRepeats = 3;           ///< Repeats of a nest that exhausts the budget.
  double slowNs = 100e6;            ///< A nest above this is warmed up once and repeated twice.
  uint64_t traceAccesses = 2000000; ///< Accesses that the cache model sees.
  int64_t codegenVersion = 1;       ///< Of the code that is profiled; kept in the profile.
  /// By operand number: exclusive upper bound of the values of an integer operand that is used as an index.
  /// Integer operands of a data-dependent nest without a bound are filled with zeros.
  std::map<uint32_t, int64_t> indexBounds;
};

/// Profiles one instance of a nest. Buffers are scratch copies, filled with data of the right type and range and
/// restored before each repeat where the nest writes in place; operands in one program buffer share a scratch buffer.
/// `cacheSource` says "cache-model", "perf-event", or "none" when the kernel has no trace code.
/// @param nest index into Program::nests
/// @throws InternalError NB0905 when `code.run` is null, DeviceError NB0407 when scratch memory is refused
NestProfile profileNest(const Program &program, uint32_t nest, const HostKernel &code, const HostConfig &host,
                        const ProfileOptions &options = {});

/// The key class of index data, for ProfileKey: "" when the nest has no index operands.
std::string indexClassOf(const Program &program, uint32_t nest, const ProfileOptions &options);

} // namespace nearbank::profile
