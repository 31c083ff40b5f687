// SPDX-License-Identifier: Apache-2.0
// EN-1: each count with its own energy.
#include "runtime/Energy.h"

#include <gtest/gtest.h>

namespace nearbank {
namespace {

PimTiming timingOf() {
  PimTiming timing;
  timing.timeNs = 50;
  timing.l1dAccesses = 3;
  timing.counters = {
      {"intAluInstructions", 10}, {"floatFmaInstructions", 7}, {"vectorLanes", 4}, {"l2Accesses", 5}, {"l3Accesses", 2},
      {"rowMisses", 6},           {"rowConflicts", 1},         {"dramReads", 8},   {"dramWrites", 9}};
  return timing;
}

MachineConfig machineOf(const char *kind) {
  MachineConfig machine;
  machine.kind = kind;
  machine.energy.emplace();
  EnergyConfig &e = *machine.energy;
  e.intAluPj = 2, e.floatFmaPj = 3, e.vectorLanePj = 5, e.l1AccessPj = 7, e.l2AccessPj = 11, e.l3AccessPj = 13;
  e.dramActivatePj = 17, e.dramReadPjPerBit = 19, e.dramWritePjPerBit = 23, e.linkPjPerBit = 29, e.staticWatts = 31;
  return machine;
}

TEST(EnergyTest, En1AppliesEachEnergyToItsCount) {
  EnergyParts parts = energyOf(timingOf(), machineOf("host")).value();
  EXPECT_DOUBLE_EQ(parts.instructionsPj, 10 * 2 + 7 * 3);
  EXPECT_DOUBLE_EQ(parts.vectorPj, 4 * 5);
  EXPECT_DOUBLE_EQ(parts.l1Pj, 3 * 7);
  EXPECT_DOUBLE_EQ(parts.l2Pj, 5 * 11);
  EXPECT_DOUBLE_EQ(parts.l3Pj, 2 * 13);
  EXPECT_DOUBLE_EQ(parts.dramPj, (6 + 1) * 17 + 8 * 512 * 19 + 9 * 512 * 23);
  EXPECT_DOUBLE_EQ(parts.linkPj, (8 + 9) * 512 * 29);
  EXPECT_DOUBLE_EQ(parts.staticPj, 31 * 50e3);
}

TEST(EnergyTest, PimCoresReachTheirVaultsWithoutTheLink) {
  EXPECT_EQ(energyOf(timingOf(), machineOf("near-memory-cores"))->linkPj, 0);
}

TEST(EnergyTest, TotalIsTheSumOfTheParts) {
  EXPECT_DOUBLE_EQ(energyOf(timingOf(), machineOf("host"))->totalPj(),
                   41 + 20 + 21 + 55 + 26 + 7 * 17 + 8 * 512 * 19 + 9 * 512 * 23 + 17 * 512 * 29 + 31 * 50e3);
}

TEST(EnergyTest, En2CountsTheBitsThatCrossTheLink) {
  EXPECT_DOUBLE_EQ(linkEnergyPj(100, machineOf("near-memory-cores")).value(), 800 * 29);
}

TEST(EnergyTest, MachinesWithoutEnergiesHaveNone) {
  EXPECT_FALSE(energyOf(timingOf(), MachineConfig{}).has_value());
  EXPECT_FALSE(linkEnergyPj(100, MachineConfig{}).has_value());
}

} // namespace
} // namespace nearbank
