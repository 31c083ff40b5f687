// SPDX-License-Identifier: Apache-2.0
// Channels: each command at the first legal tick and none earlier, schedules against an independent check of all
// constraints, latency and bandwidth against formulas (HM-8 of docs/model.md).
#include "sim/memory/Channel.h"

#include "runtime/Error.h"
#include "sim/memory/HostMemory.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

namespace nearbank::sim {
namespace {

constexpr int64_t lineBytes = 64;

/// DDR4-3200 with values that tell every constraint apart; no refresh.
DramConfig ddr4() {
  DramConfig c;
  c.vaults = 8;
  c.banksPerVault = 16;
  c.rowBytes = 8192;
  c.tCkNs = 0.625;
  c.nRCD = 22, c.nCL = 24, c.nRP = 23, c.nRAS = 52, c.nCWL = 20, c.nCCD = 4, c.nRRD = 5, c.nFAW = 26, c.nWR = 25;
  c.nRTP = 12, c.nRFC = 560, c.nREFI = 0;
  c.vaultBandwidthGBs = 25.6;
  c.ranks = 2, c.bankGroups = 4;
  c.nCCDL = 9, c.nRRDL = 8, c.nWTR = 4, c.nWTRL = 13, c.nCS = 3;
  c.writeQueueLines = 32;
  return c;
}

struct Access {
  int64_t arrival, rank, bank, row;
  bool isWrite = false;
};

/// Commands of a sequence of accesses.
std::vector<PlacedCommand> commandsOf(const DramConfig &config, const std::vector<Access> &accesses) {
  Channel channel(config, lineBytes);
  std::vector<PlacedCommand> log;
  channel.record(&log);
  for (const Access &a : accesses)
    channel.place(a.arrival, {a.rank, a.bank / (config.banksPerVault / config.bankGroups), a.bank, a.row}, a.isWrite);
  return log;
}

struct Pair {
  const char *name;
  std::vector<Access> before; ///< Lead up to the last access.
  Access last;
  DramCommand command; ///< The last one of this kind is looked at.
  int64_t legalTick;
  DramConfig config = ddr4();
};

DramConfig withRefresh() {
  DramConfig c = ddr4();
  c.nREFI = 2000;
  return c;
}

std::vector<Pair> pairs() {
  // A read at 0 activates at 0, reads at 22 with data in [46, 50). A write at 0 writes at 22 with data in [42, 46).
  const Access read{0, 0, 0, 7}, write{0, 0, 0, 7, true};
  using enum DramCommand;
  return {
      {"ActToRead", {}, read, Read, 22},
      {"ActToWrite", {}, write, Write, 22},
      {"ActToPre", {read}, {0, 0, 0, 8}, Precharge, 52},
      {"ReadToPre", {read, {60, 0, 0, 7}}, {0, 0, 0, 8}, Precharge, 60 + 12},
      {"WriteToPre", {write}, {0, 0, 0, 8}, Precharge, 46 + 25},
      {"PreToAct", {read}, {0, 0, 0, 8}, Activate, 52 + 23},
      {"ActToActSameGroup", {read}, {0, 0, 1, 7}, Activate, 8},
      {"ActToActOtherGroup", {read}, {0, 0, 4, 7}, Activate, 5},
      {"ActToActOtherRank", {read}, {0, 1, 0, 7}, Activate, 0},
      {"FiveActs", {read, {0, 0, 4, 7}, {0, 0, 8, 7}, {0, 0, 12, 7}}, {0, 0, 1, 7}, Activate, 26},
      {"ReadToReadSameGroup", {read}, read, Read, 22 + 9},
      {"ReadToReadOtherGroup", {read, {0, 0, 4, 7}}, {0, 0, 4, 7}, Read, 27 + 9},
      {"ReadToReadOtherGroupBus", {{0, 0, 4, 7}, {100, 0, 0, 7}, {200, 0, 4, 7}}, {200, 0, 0, 7}, Read, 204},
      {"ReadToReadOtherRank", {{0, 1, 4, 7}, {0, 0, 0, 7}, {200, 1, 4, 7}}, {200, 0, 0, 7}, Read, 204 + 3},
      {"WriteToWriteSameGroup", {write}, write, Write, 22 + 9},
      {"WriteToWriteOtherGroup",
       {{0, 0, 4, 7}, {100, 0, 0, 7}, {200, 0, 4, 7, true}},
       {200, 0, 0, 7, true},
       Write,
       204},
      {"WriteToReadSameGroup", {write}, read, Read, 46 + 13},
      {"WriteToReadOtherGroup", {{0, 0, 4, 7}, {100, 0, 0, 7}, {200, 0, 0, 7, true}}, {200, 0, 4, 7}, Read, 224 + 4},
      {"WriteToReadOtherRank", {{0, 1, 4, 7}, {100, 0, 0, 7}, {200, 0, 0, 7, true}}, {200, 1, 4, 7}, Read, 203},
      // RL + BL/2 - WL + 2 after the read.
      {"ReadToWrite",
       {{0, 0, 4, 7}, {100, 0, 0, 7}, {200, 0, 0, 7}},
       {200, 0, 4, 7, true},
       Write,
       200 + 24 + 4 - 20 + 2},
      {"ReadToWriteOtherRank",
       {{0, 1, 4, 7}, {100, 0, 0, 7}, {200, 0, 0, 7}},
       {200, 1, 4, 7, true},
       Write,
       200 + 24 + 4 - 20 + 3},
      {"RefreshBlocks", {}, {2000, 0, 0, 7}, Activate, 2560, withRefresh()},
      {"RefreshEndsOnTime", {}, {2559, 0, 0, 7}, Activate, 2560, withRefresh()},
      {"RefreshBeginsOnTime", {{1900, 0, 0, 7}}, {1999, 0, 0, 7}, Read, 1999, withRefresh()},
      {"RefreshDelaysReads", {{1900, 0, 0, 7}}, {2000, 0, 0, 7}, Read, 2560 + 22, withRefresh()},
      {"RefreshStaggersRanks", {}, {2000, 1, 0, 7}, Activate, 2000, withRefresh()},
      {"RefreshOfOtherRank", {}, {3000, 1, 0, 7}, Activate, 3560, withRefresh()},
      {"RefreshClosesRows", {read}, {2600, 0, 0, 7}, Activate, 2600, withRefresh()},
  };
}

class ChannelPairTest : public testing::TestWithParam<size_t> {};

TEST_P(ChannelPairTest, IsIllegalOneTickEarlierAndLegalThen) {
  Pair pair = pairs()[GetParam()];
  auto tickOf = [&](int64_t arrival) {
    std::vector<Access> accesses = pair.before;
    accesses.push_back(pair.last);
    accesses.back().arrival = arrival;
    std::vector<PlacedCommand> log = commandsOf(pair.config, accesses);
    for (size_t i = log.size(); i-- > 0;)
      if (log[i].command == pair.command)
        return log[i].tick;
    return int64_t{-1};
  };
  // Asked for as early as can be, the command waits until exactly then; one tick later costs one tick.
  EXPECT_EQ(tickOf(pair.last.arrival), pair.legalTick) << pair.name;
  // Where other commands of the same access come first, a later arrival moves them as well.
  std::string name = pair.name;
  bool isFirst = !pair.before.empty() && pair.legalTick > 0 && name != "PreToAct" && name != "RefreshDelaysReads";
  if (!isFirst)
    return;
  EXPECT_EQ(tickOf(pair.legalTick - 1), pair.legalTick == pair.last.arrival ? pair.legalTick - 1 : pair.legalTick);
  EXPECT_EQ(tickOf(pair.legalTick), pair.legalTick);
  EXPECT_EQ(tickOf(pair.legalTick + 1), name == "RefreshBeginsOnTime" ? 2560 + 22 : pair.legalTick + 1);
}

INSTANTIATE_TEST_SUITE_P(All, ChannelPairTest, testing::Range(size_t{0}, pairs().size()),
                         [](const auto &info) { return pairs()[info.param].name; });

/// Every constraint between any two commands, written down anew.
int64_t leastDistance(const DramConfig &t, const PlacedCommand &a, const PlacedCommand &b) {
  using enum DramCommand;
  bool sameRank = a.where.rank == b.where.rank, sameGroup = sameRank && a.where.group == b.where.group;
  bool sameBank = sameRank && a.where.bank == b.where.bank;
  int64_t least = INT64_MIN, burst = 4;
  auto need = [&](bool applies, int64_t ticks) { least = applies ? std::max(least, ticks) : least; };
  bool isColumnA = a.command == Read || a.command == Write, isColumnB = b.command == Read || b.command == Write;
  if (a.command == Activate && b.command == Activate) {
    need(sameRank, t.nRRD), need(sameGroup, t.nRRDL), need(sameBank, t.nRAS + t.nRP);
  } else if (a.command == Activate) {
    need(sameBank && isColumnB, t.nRCD), need(sameBank && b.command == Precharge, t.nRAS);
  } else if (a.command == Precharge) {
    need(sameBank && b.command == Activate, t.nRP);
  } else if (isColumnA && isColumnB) {
    int64_t dataA = a.command == Read ? t.nCL : t.nCWL, dataB = b.command == Read ? t.nCL : t.nCWL;
    need(sameGroup, t.nCCDL);
    need(true, dataA + burst - dataB); // the bus
    need(!sameRank, dataA + burst + t.nCS - dataB);
    need(a.command == Read && b.command == Write, dataA + burst + 2 - dataB);
    need(a.command == Write && b.command == Read && sameRank, t.nCWL + burst + t.nWTR);
    need(a.command == Write && b.command == Read && sameGroup, t.nCWL + burst + t.nWTRL);
  } else if (isColumnA && b.command == Precharge) {
    need(sameBank, a.command == Read ? t.nRTP : t.nCWL + burst + t.nWR);
  }
  return least;
}

TEST(ChannelTest, RandomSchedulesKeepAllConstraints) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    DramConfig config = seed % 2 == 0 ? ddr4() : withRefresh();
    std::mt19937 random(seed);
    std::vector<Access> accesses;
    int64_t now = 0;
    for (int i = 0; i < 400; ++i) {
      now += static_cast<int64_t>(random() % (seed % 3 == 0 ? 60 : 8));
      int64_t early = seed % 4 == 3 ? static_cast<int64_t>(random() % 100) : 0; // out of order
      accesses.push_back(
          {std::max<int64_t>(0, now - early), random() % 2, random() % 16, random() % 3, random() % 4 == 0});
    }
    std::vector<PlacedCommand> log = commandsOf(config, accesses);
    std::stable_sort(log.begin(), log.end(), [](const auto &a, const auto &b) { return a.tick < b.tick; });
    std::vector<int64_t> activates;
    for (size_t i = 0; i < log.size(); ++i) {
      for (size_t j = i + 1; j < log.size() && log[j].tick < log[i].tick + 200; ++j)
        ASSERT_GE(log[j].tick - log[i].tick, leastDistance(config, log[i], log[j]))
            << "seed " << seed << ": " << int(log[i].command) << " at " << log[i].tick << ", " << int(log[j].command)
            << " at " << log[j].tick;
      if (config.nREFI > 0) {
        int64_t offset = log[i].where.rank * config.nREFI / config.ranks, since = log[i].tick - offset;
        ASSERT_FALSE(since >= config.nREFI && since % config.nREFI < config.nRFC) << log[i].tick;
      }
      if (log[i].command == DramCommand::Activate && log[i].where.rank == 0)
        activates.push_back(log[i].tick);
    }
    for (size_t i = 4; i < activates.size(); ++i)
      ASSERT_GE(activates[i] - activates[i - 4], config.nFAW) << seed;
  }
}

TEST(ChannelTest, IdleLatencyIsTheFormula) {
  DramConfig config = ddr4();
  Channel channel(config, lineBytes);
  EXPECT_EQ(channel.burstTicks(), 4);
  EXPECT_EQ(channel.read(0, 0), (22 + 24 + 4) * 625);            // closed
  EXPECT_EQ(channel.read(1000000, 4) - 1000000, (24 + 4) * 625); // open
  uint64_t otherRow = 0;
  for (uint64_t i = 1; otherRow == 0; ++i) {
    ChannelLocation a = channel.locate(0), b = channel.locate(i * 4);
    if (a.rank == b.rank && a.bank == b.bank && a.row != b.row)
      otherRow = i * 4;
  }
  EXPECT_EQ(channel.read(2000000, otherRow) - 2000000, (23 + 22 + 24 + 4) * 625); // another row is open
  EXPECT_EQ(channel.stats().rowHits, 1u);
  EXPECT_EQ(channel.stats().rowMisses, 1u);
  EXPECT_EQ(channel.stats().rowConflicts, 1u);
}

TEST(ChannelTest, LocationsAreDistinct) {
  Channel channel(ddr4(), lineBytes);
  std::map<std::array<int64_t, 3>, int> lines;
  for (uint64_t i = 0; i < 65536; ++i) {
    ChannelLocation where = channel.locate(i);
    ASSERT_EQ(where.group, where.bank / 4);
    ++lines[{where.rank, where.bank, where.row}];
  }
  for (const auto &[row, count] : lines)
    EXPECT_EQ(count, 128); // a row of 8 KiB
}

/// GB/s of a stream of reads that all ask at once, and of one that writes four lines after every twelve it reads.
double bandwidthOf(const DramConfig &config, bool writes, int64_t lines = 40000) {
  Channel channel(config, lineBytes);
  int64_t end = 0, latest = 0, window = 64; // requests in flight
  std::vector<int64_t> done(static_cast<size_t>(window));
  for (int64_t i = 0; i < lines; ++i) {
    int64_t arrival = latest = std::max(latest, done[static_cast<size_t>(i % window)]);
    if (writes && i / 4 % 4 == 3)
      channel.write(arrival, static_cast<uint64_t>(i));
    else
      done[static_cast<size_t>(i % window)] = channel.read(arrival, static_cast<uint64_t>(i));
    channel.advance(arrival - 1000000);
    end = std::max(end, done[static_cast<size_t>(i % window)]);
  }
  end = std::max(end, channel.flush(end));
  return static_cast<double>(lines * lineBytes) * 1000 / static_cast<double>(end);
}

TEST(ChannelTest, StreamingBandwidthIsPeakLessRefreshPerChannel) {
  DramConfig config = ddr4();
  EXPECT_NEAR(bandwidthOf(config, false), 25.6, 25.6 * 0.01);
  config.nREFI = 12480;
  // One rank at a time refreshes; the stream waits for it whenever it is there.
  double formula = 25.6 * (1 - 560.0 / 12480);
  EXPECT_NEAR(bandwidthOf(config, false), formula, formula * 0.05);
}

TEST(ChannelTest, WritesCostTurnarounds) {
  // Half a queue (16 lines, of all groups) per drain: 2 ticks from read to write, nWTRL + nCL from write to read. The
  // lines of a drain lie in more rows than one, whose opening the bus sees in part: hence the 10 %.
  double turn = 2 + 13 + 24, perDrain = 16 * 4 + 48 * 4;
  double formula = 25.6 * perDrain / (perDrain + turn), measured = bandwidthOf(ddr4(), true);
  EXPECT_GT(measured, formula * 0.9);
  EXPECT_LT(measured, 25.6);
}

TEST(ChannelTest, WholeMemoryStreamsAtAllChannels) {
  MachineConfig machine;
  machine.kind = "host";
  machine.dram = ddr4();
  machine.dram.nREFI = 12480;
  machine.dram.interleaveBytes = 256;
  machine.dram.controllerNs = 50;
  machine.core.count = 1;
  machine.core.clockGHz = 1;
  machine.l3 = {1 << 20, 16, 64, 40};
  HostMemory memory(machine);
  constexpr int64_t lines = 200000, window = 8 * 64;
  std::vector<int64_t> done(window);
  int64_t end = 0;
  for (int64_t i = 0; i < lines; ++i) {
    int64_t &slot = done[static_cast<size_t>(i % window)];
    memory.advance(slot - 2000000);
    slot = memory.read(0, static_cast<uint64_t>(i) * 64, slot);
    end = std::max(end, slot);
  }
  double measured = static_cast<double>(lines * lineBytes) * 1000 / static_cast<double>(end);
  double formula = 8 * 25.6 * (1 - 560.0 / 12480);
  EXPECT_NEAR(measured, formula, formula * 0.05);
  EXPECT_EQ(memory.stats().reads, 200000u);
  EXPECT_EQ(memory.stats().l3Misses, 200000u);
}

TEST(ChannelTest, IdleLatencyOfTheWholeMemoryIsHm8) {
  MachineConfig machine;
  machine.dram = ddr4();
  machine.dram.controllerNs = 50;
  machine.core.count = 1;
  machine.core.clockGHz = 2;
  machine.l3 = {1 << 20, 16, 64, 40};
  HostMemory plain(machine);
  double formula = 40 / 2.0 + 50 + (22 + 24 + 4) * 0.625;
  EXPECT_NEAR(static_cast<double>(plain.read(0, 0, 0)) / 1000, formula, 0.01);
  // The second access hits in the last-level cache.
  EXPECT_EQ(plain.read(0, 8, 1000000) - 1000000, 20000);
  machine.memoryLink = LinkConfig{.bandwidthGBs = 64, .latencyNs = 5};
  HostMemory linked(machine);
  EXPECT_NEAR(static_cast<double>(linked.read(0, 0, 0)) / 1000, formula + 2 * 5 + 1, 0.01);
}

TEST(ChannelTest, LinkBoundsTheBandwidth) {
  TransferMeter meter(32);
  int64_t end = 0;
  for (int64_t i = 0; i < 10000; ++i)
    end = std::max(end, meter.pass(i % 7, 64));
  EXPECT_NEAR(10000.0 * 64 * 1000 / static_cast<double>(end), 32, 0.4);
}

TEST(ChannelTest, ImpossibleChannelsAreRefused) {
  DramConfig config = ddr4();
  config.rowBytes = 3000;
  EXPECT_THROW(Channel(config, lineBytes), UserError);
  config = ddr4();
  config.nREFI = 500;
  EXPECT_THROW(Channel(config, lineBytes), UserError);
  config = ddr4();
  config.bankGroups = 32;
  EXPECT_THROW(Channel(config, lineBytes), UserError);
}

TEST(TickMapTest, FindsRunsAcrossWords) {
  TickMap map;
  map.take(60, 70);
  EXPECT_EQ(map.firstFree(50, 10), 50);
  EXPECT_EQ(map.firstFree(50, 11), 70);
  EXPECT_EQ(map.firstFree(62, 1), 70);
  map.take(74, 200);
  EXPECT_EQ(map.firstFree(0, 64), 200);
  EXPECT_EQ(map.firstFree(65, 4), 70);
  EXPECT_EQ(map.firstFree(65, 5), 200);
  map.advance(1000000);
  EXPECT_EQ(map.firstFree(1000000, 64), 1000000);
  map.take(1000000, 1000064);
  EXPECT_EQ(map.firstFree(1000000, 1), 1000064);
}

} // namespace
} // namespace nearbank::sim
