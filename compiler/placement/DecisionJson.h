// SPDX-License-Identifier: Apache-2.0
// Renders a decision as the "why" object of a run document.
#pragma once

#include "compiler/placement/Placement.h"

namespace nearbank::placement {

/// {"status","reason","suggestion","flip","equations":[{"id","text","inputs":[…],"value","threshold","passed","margin"}]}.
/// What is infinite or undefined is null, and so is "passed" of an equation without threshold.
std::string decisionJson(const NestDecision &decision);

} // namespace nearbank::placement
