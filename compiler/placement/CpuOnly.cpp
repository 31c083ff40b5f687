// SPDX-License-Identifier: Apache-2.0
// cpu-only: everything on the host; the baseline of every comparison.

#include "compiler/placement/Policy.h"

namespace nearbank::placement {

void placeCpuOnly(const NestView &, NestDecision &decision) {
  decision.site = Site::Host;
  decision.reason = "cpu-only keeps every nest on the host";
  decision.suggestion = "choose another policy, or pin the nest with --pin";
  decision.flip = "another policy";
}

} // namespace nearbank::placement
