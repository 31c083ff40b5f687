// SPDX-License-Identifier: Apache-2.0
#include "sim/core/OpPlan.h"

#include <gmock/gmock.h>

namespace nearbank::sim {
namespace {

/// Cores run ahead of each other: one still reads a block's plan when another reaches blocks with much larger ids.
TEST(OpPlanTest, PlansStayWhereTheyAreWhenOthersAreAdded) {
  MachineConfig config;
  PlanTable table(config);
  Block first, later;
  first.instructions.resize(3);
  later.instructions.resize(1);
  const std::vector<OpPlan> &plan = table.planOf(first);
  for (later.id = 1; later.id < 1000; ++later.id)
    table.planOf(later);
  EXPECT_EQ(&table.planOf(first), &plan);
  EXPECT_EQ(plan.size(), 3U);
}

} // namespace
} // namespace nearbank::sim
