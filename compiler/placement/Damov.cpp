// SPDX-License-Identifier: Apache-2.0
// damov: DAMOV's classes of data-movement bottlenecks; 1a (DRAM bandwidth) and 1b (DRAM latency) go to PIM.

#include "compiler/placement/Policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace nearbank::placement {
namespace {

// DAMOV (IEEE Access 2021), thresholds of its validation: temporal locality, LFMR, arithmetic intensity, MPKI.
constexpr double localityBorder = 0.48, lfmrBorder = 0.56, intensityBorder = 8.5, mpkiBorder = 11.0;

/// PL-8: the four metrics that tell the classes apart.
std::vector<EquationRecord> evaluateMetrics(const NestView &nest) {
  const NestFacts &facts = nest.kernel.facts;
  const profile::CacheProfile &cache = nest.profile.cache;
  double operations = facts.operations.total(), accesses = std::max(1.0, cache.accesses);
  double words = (facts.bytesRead + facts.bytesWritten) / double(bytesOf(facts.computeType));

  EquationRecord locality;
  locality.id = "PL-8.1";
  locality.text = "1 - distinct words / accesses <= 0.48";
  locality.inputs = {{"distinctWords", words, "words", "MLIR"},
                     {"accesses", cache.accesses, "accesses", "host profile"}};
  locality.value = std::clamp(1 - words / accesses, 0.0, 1.0);
  locality.threshold = localityBorder;
  evaluate(locality, true);

  EquationRecord lfmr;
  lfmr.id = "PL-8.2";
  lfmr.text = "last-level misses / L1 misses >= 0.56";
  lfmr.inputs = {{"l3Misses", cache.l3Misses, "lines", "host profile"},
                 {"l1Misses", cache.l1Misses, "lines", "host profile"}};
  lfmr.value = cache.lfmr();
  lfmr.threshold = lfmrBorder;
  evaluate(lfmr);

  EquationRecord intensity;
  intensity.id = "PL-8.3";
  intensity.text = "operations / accesses <= 8.5";
  intensity.inputs = {{"operations", operations, "operations", "MLIR"},
                      {"accesses", cache.accesses, "accesses", "host profile"}};
  intensity.value = operations / accesses;
  intensity.threshold = intensityBorder;
  evaluate(intensity, true);

  EquationRecord mpki;
  mpki.id = "PL-8.4";
  mpki.text = "last-level misses per kilo-instruction >= 11 (class 1a, else 1b)";
  mpki.inputs = {{"l3Misses", cache.l3Misses, "lines", "host profile"},
                 {"instructions", cache.instructions, "instructions", "host profile"}};
  mpki.value = cache.mpki();
  mpki.threshold = mpkiBorder;
  evaluate(mpki);
  return {locality, lfmr, intensity, mpki};
}

} // namespace

void placeDamov(const NestView &nest, NestDecision &decision) {
  decision.equations = evaluateMetrics(nest);
  const EquationRecord &locality = decision.equations[0], &lfmr = decision.equations[1];
  const EquationRecord &intensity = decision.equations[2], &mpki = decision.equations[3];
  bool isDramBound = locality.isPassed && lfmr.isPassed && intensity.isPassed;
  const char *shownClass = "2 (the caches catch its reuse)";
  if (isDramBound)
    shownClass = mpki.isPassed ? "1a (DRAM bandwidth)" : "1b (DRAM latency)";
  else if (!intensity.isPassed)
    shownClass = "2c (compute)";
  else if (locality.isPassed)
    shownClass = "1c (L1 and L2 capacity)";
  decision.site = isDramBound ? Site::Pim : Site::Host;
  decision.reason =
      fmt::format("class {}: temporal locality {} (border {}), LFMR {} ({}), intensity {} ({}), MPKI {} ({})",
                  shownClass, shortNumber(locality.value), localityBorder, shortNumber(lfmr.value), lfmrBorder,
                  shortNumber(intensity.value), intensityBorder, shortNumber(mpki.value), mpkiBorder);
  decision.flip = isDramBound ? "a temporal locality, LFMR or intensity beyond its border"
                              : "temporal locality, LFMR and intensity all within their borders";
}

} // namespace nearbank::placement
