// SPDX-License-Identifier: Apache-2.0

#include "compiler/placement/DecisionJson.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace nearbank::placement {
namespace {

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

} // namespace

std::string decisionJson(const NestDecision &decision) {
  nlohmann::ordered_json equations = nlohmann::ordered_json::array();
  for (const EquationRecord &equation : decision.equations) {
    nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
    for (const EquationInput &input : equation.inputs)
      inputs.push_back({{"name", input.name},
                        {"value", number(input.value)},
                        {"unit", input.unit},
                        {"provenance", input.provenance}});
    equations.push_back({{"id", equation.id},
                         {"text", equation.text},
                         {"inputs", inputs},
                         {"value", number(equation.value)},
                         {"threshold", number(equation.threshold)},
                         {"passed", std::isnan(equation.threshold) ? nlohmann::ordered_json(nullptr)
                                                                   : nlohmann::ordered_json(equation.isPassed)},
                         {"margin", number(equation.margin)}});
  }
  nlohmann::ordered_json why = {{"status", nameOf(decision.status)},
                                {"reason", decision.reason},
                                {"suggestion", decision.suggestion},
                                {"flip", decision.flip},
                                {"equations", equations}};
  return why.dump();
}

} // namespace nearbank::placement
