// SPDX-License-Identifier: Apache-2.0
// mpki: PIMProf's rule. Many last-level misses, enough parallelism, and a share of the program's instructions.

#include "compiler/placement/Policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace nearbank::placement {
namespace {

// PIMProf (DATE 2022), MPKI rule of CostSolver: all three must be exceeded.
constexpr double leastMpki = 5, leastParallelism = 15, leastShare = 0.01;

std::vector<EquationRecord> evaluateRule(const NestView &nest) {
  const profile::CacheProfile &cache = nest.profile.cache;
  EquationRecord mpki;
  mpki.id = "PL-6.1";
  mpki.text = "last-level misses per kilo-instruction > 5";
  mpki.inputs = {{"l3Misses", cache.l3Misses, "lines", "host profile"},
                 {"instructions", cache.instructions, "instructions", "host profile"}};
  mpki.value = cache.mpki();
  mpki.threshold = leastMpki;

  EquationRecord parallelism;
  parallelism.id = "PL-6.2";
  parallelism.text = "parallel extent > 15";
  parallelism.inputs = {{"parallelExtent", double(nest.kernel.facts.parallelExtent), "iterations", "MLIR"}};
  parallelism.value = double(nest.kernel.facts.parallelExtent);
  parallelism.threshold = leastParallelism;

  EquationRecord share;
  share.id = "PL-6.3";
  share.text = "executions x instructions / instructions of the program > 0.01";
  share.inputs = {{"executions", nest.executions, "executions", "MLIR"},
                  {"instructions", cache.instructions, "instructions", "host profile"},
                  {"programInstructions", nest.programInstructions, "instructions", "host profile"}};
  share.value = nest.programInstructions > 0 ? nest.executions * cache.instructions / nest.programInstructions : 0;
  share.threshold = leastShare;

  std::vector<EquationRecord> rule = {mpki, parallelism, share};
  for (EquationRecord &equation : rule) {
    evaluate(equation);
    equation.isPassed = equation.value > equation.threshold;
  }
  return rule;
}

} // namespace

void placeMpki(const NestView &nest, NestDecision &decision) {
  static const char *const names[] = {"MPKI", "parallel extent", "share of instructions"};
  decision.equations = evaluateRule(nest);
  std::string passed, failed;
  for (size_t i = 0; i < decision.equations.size(); ++i) {
    const EquationRecord &equation = decision.equations[i];
    std::string &text = equation.isPassed ? passed : failed;
    text += fmt::format("{}{} {} {} {}", text.empty() ? "" : ", ", names[i], shortNumber(equation.value),
                        equation.isPassed ? ">" : "<=", shortNumber(equation.threshold));
  }
  decision.site = failed.empty() ? Site::Pim : Site::Host;
  decision.reason = fmt::format("PIMProf's rule {} ({})", failed.empty() ? "holds" : "does not hold",
                                failed.empty() ? passed : failed);
  decision.flip = failed.empty() ? "any of the three at or below its border" : "all of the three above their borders";
}

} // namespace nearbank::placement
