// SPDX-License-Identifier: Apache-2.0
// DRAM in layers: one command at a time, schedules, latency and bandwidth against the formula.
#include "sim/memory/Vault.h"

#include "runtime/Error.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace nearbank::sim {
namespace {

/// Every parameter different, so that a mix-up shows.
DramConfig oddConfig() {
  DramConfig c;
  c.tCkNs = 1.0;
  c.nRCD = 11, c.nCL = 13, c.nRP = 17, c.nRAS = 41, c.nCWL = 9, c.nCCD = 4, c.nRRD = 6, c.nFAW = 31, c.nWR = 19,
  c.nRTP = 7;
  c.nRFC = 101, c.nREFI = 5003;
  c.vaultBandwidthGBs = 16.0; // 64 B in 4 ns: nCCD and the bus agree
  return c;
}

class VaultTest : public ::testing::Test {
protected:
  DramTiming timing{oddConfig(), 64};
  Vault vault{timing};

  void expectFirstLegal(DramCommand command, int64_t bank, int64_t tick) {
    EXPECT_FALSE(vault.isLegal(command, bank, tick - 1)) << "one tick early";
    EXPECT_TRUE(vault.isLegal(command, bank, tick)) << "on time";
    EXPECT_EQ(vault.earliest(command, bank), tick);
  }
};

TEST_F(VaultTest, ReadAndWriteWaitForActivate) {
  EXPECT_FALSE(vault.isLegal(DramCommand::Read, 0, 1000));
  vault.issue(DramCommand::Activate, 0, 5, 100);
  expectFirstLegal(DramCommand::Read, 0, 100 + 11);
  expectFirstLegal(DramCommand::Write, 0, 100 + 11);
  EXPECT_FALSE(vault.isLegal(DramCommand::Activate, 0, 1000)) << "the row is open";
}

TEST_F(VaultTest, PrechargeWaitsForRas) {
  vault.issue(DramCommand::Activate, 0, 5, 100);
  expectFirstLegal(DramCommand::Precharge, 0, 100 + 41);
}

TEST_F(VaultTest, PrechargeWaitsForReadToPrecharge) {
  vault.issue(DramCommand::Activate, 0, 5, 100);
  vault.issue(DramCommand::Read, 0, 0, 160);
  expectFirstLegal(DramCommand::Precharge, 0, 160 + 7);
}

TEST_F(VaultTest, PrechargeWaitsForWriteRecovery) {
  vault.issue(DramCommand::Activate, 0, 5, 100);
  vault.issue(DramCommand::Write, 0, 0, 160);
  expectFirstLegal(DramCommand::Precharge, 0, 160 + 9 + 4 + 19);
}

TEST_F(VaultTest, ActivateWaitsForPrecharge) {
  vault.issue(DramCommand::Activate, 0, 5, 100);
  vault.issue(DramCommand::Precharge, 0, 0, 141);
  expectFirstLegal(DramCommand::Activate, 0, 141 + 17);
}

TEST_F(VaultTest, ActivatesOfDifferentBanksKeepTheirDistance) {
  vault.issue(DramCommand::Activate, 0, 5, 100);
  expectFirstLegal(DramCommand::Activate, 1, 100 + 6);
}

TEST_F(VaultTest, FifthActivateWaitsForTheWindow) {
  for (int64_t bank = 0; bank < 4; ++bank)
    vault.issue(DramCommand::Activate, bank, 5, 100 + 6 * bank);
  expectFirstLegal(DramCommand::Activate, 4, 100 + 31); // nFAW beats 118 + nRRD
}

TEST_F(VaultTest, ColumnCommandsKeepTheirDistance) {
  vault.issue(DramCommand::Activate, 0, 5, 100);
  vault.issue(DramCommand::Activate, 1, 5, 106);
  vault.issue(DramCommand::Read, 0, 0, 120);
  expectFirstLegal(DramCommand::Read, 1, 120 + 4);
}

TEST_F(VaultTest, WriteDataWaitsForReadData) {
  vault.issue(DramCommand::Activate, 0, 5, 100);
  EXPECT_EQ(vault.issue(DramCommand::Read, 0, 0, 120), (120 + 13 + 4) * 1000);
  expectFirstLegal(DramCommand::Write, 0, 120 + 13 + 4 - 9);
}

TEST_F(VaultTest, ReadDataWaitsForWriteData) {
  vault.issue(DramCommand::Activate, 0, 5, 100);
  EXPECT_EQ(vault.issue(DramCommand::Write, 0, 0, 120), (120 + 9 + 4) * 1000);
  // The bus is free at 133, and a read's data comes nCL later than its command: nCCD is what is left.
  expectFirstLegal(DramCommand::Read, 0, 120 + 4);
  EXPECT_EQ(vault.issue(DramCommand::Read, 0, 0, 124), (124 + 13 + 4) * 1000);
}

TEST_F(VaultTest, ActivatesOfOneBankAreARowCycleApart) {
  vault.issue(DramCommand::Activate, 0, 5, 100);
  vault.issue(DramCommand::Precharge, 0, 0, vault.earliest(DramCommand::Precharge, 0));
  expectFirstLegal(DramCommand::Activate, 0, 100 + 41 + 17); // tRC = tRAS + tRP
}

TEST_F(VaultTest, RefreshNeedsClosedRowsAndBlocksActivates) {
  vault.issue(DramCommand::Activate, 0, 5, 100);
  EXPECT_FALSE(vault.isLegal(DramCommand::Refresh, 0, 1000));
  vault.issue(DramCommand::Precharge, 0, 0, 141);
  expectFirstLegal(DramCommand::Refresh, 0, 141 + 17);
  vault.issue(DramCommand::Refresh, 0, 0, 200);
  expectFirstLegal(DramCommand::Activate, 3, 200 + 101);
}

TEST_F(VaultTest, IdleLatencies) {
  // Closed row: ACT, RD, data.
  EXPECT_EQ(vault.serve(50'000, 0, 5, false), (50 + 11 + 13 + 4) * 1000);
  // Open row, long after: RD, data.
  EXPECT_EQ(vault.serve(200'000, 0, 5, false), (200 + 13 + 4) * 1000);
  // Other row: PRE, ACT, RD, data.
  EXPECT_EQ(vault.serve(400'000, 0, 6, false), (400 + 17 + 11 + 13 + 4) * 1000);
  // Between two ticks, the next one counts.
  EXPECT_EQ(vault.serve(599'001, 0, 6, true), (600 + 9 + 4) * 1000);
  EXPECT_THAT(vault.stats().rowMisses, 1);
  EXPECT_THAT(vault.stats().rowHits, 2);
  EXPECT_THAT(vault.stats().rowConflicts, 1);
}

TEST_F(VaultTest, RefreshDelaysARequestThatArrivesInIt) {
  vault.serve(0, 0, 5, false);
  // Due at 5003: precharge (17), refresh (101), then a closed-row read.
  EXPECT_EQ(vault.serve(5'010'000, 0, 5, false), (5003 + 17 + 101 + 11 + 13 + 4) * 1000);
  EXPECT_EQ(vault.stats().refreshes, 1u);
}

TEST_F(VaultTest, LongIdleTimeCostsAtMostOneRefresh) {
  vault.serve(0, 0, 5, false);
  int64_t due = 5003 * 1000;
  EXPECT_EQ(vault.serve(due * 1000, 0, 5, false), (5003 * 1000 + 17 + 101 + 11 + 13 + 4) * int64_t{1000});
  EXPECT_EQ(vault.stats().refreshes, 1u) << "those of the idle time leave no trace";
}

TEST_F(VaultTest, StreamReachesTheBusBandwidthMinusRefresh) {
  // Rows of 32 lines over all banks, all requests waiting: bank overlap hides ACT and PRE.
  constexpr int64_t lines = 200'000;
  int64_t end = 0;
  for (int64_t i = 0; i < lines; ++i)
    end = vault.serve(0, i / 32 % 8, i / 32 / 8, false);
  double gigabytesPerSecond = static_cast<double>(lines) * 64 * 1000 / static_cast<double>(end);
  // In each nREFI, the bus idles from the last data to the first after the refresh: at most tRAS+tRP+tRFC+tRCD+tCL.
  double expected = 16.0 * (1 - (17 + 101 + 11 + 13) / 5003.0);
  EXPECT_NEAR(gigabytesPerSecond, expected, expected * 0.01);
}

TEST_F(VaultTest, RowConflictsInOneBankCostTheRowCycle) {
  constexpr int64_t reads = 1000;
  DramConfig config = oddConfig();
  config.nREFI = 0; // none
  DramTiming noRefresh(config, 64);
  Vault bare(noRefresh);
  int64_t end = 0;
  for (int64_t i = 0; i < reads; ++i)
    end = bare.serve(0, 0, i, false);
  EXPECT_EQ(end, ((reads - 1) * (41 + 17) + 11 + 13 + 4) * 1000); // tRC = tRAS + tRP
}

TEST_F(VaultTest, LowerBandwidthSlowsTheBusExactly) {
  DramConfig config = oddConfig();
  config.vaultBandwidthGBs = 6.25; // 10.24 ns a line: no multiple of the clock
  config.nREFI = 0;
  DramTiming slow(config, 64);
  Vault narrow(slow);
  int64_t end = 0;
  for (int64_t i = 0; i < 32; ++i)
    end = narrow.serve(0, 0, 0, false);
  EXPECT_EQ(end, (11 + 13) * 1000 + 32 * 10'240);
}

TEST(AddressMapTest, InterleavesVaultsThenColumnsThenBanksThenRows) {
  DramConfig c; // 32 vaults, 8 banks, rows of 2048 B, 256 B interleave
  AddressMap map(c);
  auto expect = [&](uint64_t address, uint16_t vault, uint16_t bank, uint32_t row) {
    DramLocation where = map.locate(address);
    EXPECT_EQ(where.vault, vault) << address;
    EXPECT_EQ(where.bank, bank) << address;
    EXPECT_EQ(where.row, row) << address;
  };
  expect(255, 0, 0, 0);
  expect(256, 1, 0, 0);
  expect(256 * 32, 0, 0, 0);
  expect(256 * 32 * 8, 0, 1, 0);
  expect(256 * 32 * 8 * 8, 0, 1, 1); // bank 0, permuted by row 1
  expect(256 * 32 * 8 * 9, 0, 0, 1);
}

TEST(AddressMapTest, ShiftsAgreeWithDivisions) {
  DramConfig powers, other;
  other.vaults = 24, other.banksPerVault = 6;
  AddressMap map(powers), odd(other);
  for (uint64_t address = 0; address < uint64_t{1} << 30; address += 1'000'003) {
    DramLocation a = map.locate(address), b = odd.locate(address);
    EXPECT_EQ(a.vault, address / 256 % 32);
    EXPECT_EQ(a.row, address / (256 * 32 * 8 * 8));
    EXPECT_EQ(a.bank, (address / (256 * 32 * 8) % 8) ^ (a.row % 8));
    EXPECT_EQ(b.vault, address / 256 % 24);
    EXPECT_EQ(b.row, address / (256 * 24 * 8 * 6));
    EXPECT_EQ(b.bank, (address / (256 * 24 * 8) + b.row) % 6);
  }
}

TEST(DramTimingTest, RejectsAnInterleaveBelowTheLine) {
  DramConfig c;
  c.interleaveBytes = 32;
  EXPECT_THROW(DramTiming(c, 64), UserError);
}

} // namespace
} // namespace nearbank::sim
