// SPDX-License-Identifier: Apache-2.0
// pim-only: every nest that has PIM code goes to PIM, parallel or not.

#include "compiler/placement/Policy.h"

namespace nearbank::placement {

void placePimOnly(const NestView &, NestDecision &decision) {
  decision.site = Site::Pim;
  decision.reason = "pim-only places every nest that has PIM code";
  decision.flip = "another policy, or --forbid";
}

} // namespace nearbank::placement
