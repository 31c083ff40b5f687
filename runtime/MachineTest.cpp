// SPDX-License-Identifier: Apache-2.0
#include "runtime/Machine.h"

#include "runtime/Error.h"
#include "runtime/NearestName.h"
#include "runtime/Roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace nearbank {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string machinesFolder = NEARBANK_MACHINES_FOLDER;

/// Loads a machine that must be refused and returns the whole message.
std::string messageOf(const std::string &name, const std::vector<std::pair<std::string, std::string>> &sets = {}) {
  try {
    loadMachine(name, machinesFolder, sets);
  } catch (const UserError &error) {
    return error.report().text();
  }
  return "accepted";
}

/// A copy of a built-in machine file in which one piece of text is replaced by another.
class EditedMachine {
public:
  EditedMachine(const std::string &from, const std::string &to, const std::string &name = "nmc-64") {
    path_ = std::filesystem::temp_directory_path() / ("nearbank-machine-" + std::to_string(getpid()) + ".yaml");
    std::ifstream stream(machinesFolder + "/" + name + ".yaml");
    std::stringstream text;
    text << stream.rdbuf();
    std::string content = text.str();
    size_t position = content.find(from);
    EXPECT_NE(position, std::string::npos) << from;
    if (position != std::string::npos)
      content.replace(position, from.size(), to);
    std::ofstream(path_) << content;
  }
  ~EditedMachine() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
};

TEST(MachineTest, BuiltInMachinesAreListed) {
  EXPECT_THAT(listMachines(machinesFolder), testing::IsSupersetOf({"nmc-128", "nmc-32", "nmc-64"}));
  EXPECT_THAT(listMachines("/nonexistent"), ElementsAre());
}

TEST(MachineTest, Nmc64IsAsPublished) {
  MachineConfig machine = loadMachine("nmc-64", machinesFolder);
  EXPECT_EQ(machine.name, "nmc-64");
  EXPECT_EQ(machine.kind, "near-memory-cores");
  EXPECT_EQ(machine.core.count, 64);
  EXPECT_EQ(machine.core.clockGHz, 1.0);
  EXPECT_EQ(machine.l1d.sizeBytes, 32768);
  EXPECT_FALSE(machine.l2.has_value());
  EXPECT_EQ(double(machine.dram.vaults) * machine.dram.vaultBandwidthGBs, 320.0);
  EXPECT_EQ(machine.dram.nRCD, 17);
  EXPECT_EQ(machine.coherence.launchNs, 2000.0);
  EXPECT_EQ(machine.host.l3.sizeBytes, 8388608);
}

TEST(MachineTest, Host16IsAsPublished) {
  MachineConfig machine = loadMachine("host-16", machinesFolder);
  EXPECT_EQ(machine.kind, "host");
  EXPECT_EQ(machine.core.count, 16);
  EXPECT_EQ(machine.core.vectorBits, 256);
  EXPECT_EQ(machine.outOfOrder.robEntries, 256);
  ASSERT_TRUE(machine.l2.has_value());
  EXPECT_EQ(machine.l3SharedBy, 4);
  EXPECT_EQ(double(machine.dram.vaults) * machine.dram.vaultBandwidthGBs, 204.8);
  // What the profile's cache model reads follows from the same values.
  EXPECT_EQ(machine.host.cores, 16);
  EXPECT_EQ(machine.host.l3.sizeBytes, machine.l3.sizeBytes);
  EXPECT_NEAR(machine.host.dramLatencyNs, 113, 0.5);
  EXPECT_NEAR(machine.host.dramBandwidthGBs, 204.8, 1e-9);
}

TEST(MachineTest, PresetsAreAsPublished) {
  MachineConfig pimprof = loadMachine("pimprof-host", machinesFolder);
  EXPECT_EQ(pimprof.core.count, 1);
  EXPECT_EQ(pimprof.core.clockGHz, 3);
  // 40 cycles of L3, DRAM of 45 ns, and a line at 7.6 GB/s.
  EXPECT_NEAR(pimprof.host.dramLatencyNs, 40 / 3.0 + 45 + 64 / 7.6, 0.01);
  for (int64_t cores : {8, 16, 32, 64, 128}) {
    MachineConfig pim = loadMachine("pimprof-pim-" + std::to_string(cores), machinesFolder);
    EXPECT_EQ(pim.core.count, cores);
    EXPECT_EQ(pim.dram.vaults, cores / 4);
    EXPECT_EQ(static_cast<double>(pim.dram.nRCD + pim.dram.nCL) * pim.dram.tCkNs, 22.5); // half of the host's
    ASSERT_TRUE(pim.l2.has_value());
  }
  for (int64_t cores : {4, 16}) {
    MachineConfig damov = loadMachine("damov-host-" + std::to_string(cores), machinesFolder);
    EXPECT_EQ(damov.core.count, cores);
    EXPECT_EQ(damov.core.clockGHz, 2.4);
    EXPECT_EQ(damov.host.dramBandwidthGBs, 115);
    EXPECT_FALSE(damov.prefetch.has_value());
  }
}

TEST(MachineTest, RooflinesGiveClosedFormTimesRl1) {
  MachineConfig gpu = loadMachine("a100-80g", machinesFolder);
  ASSERT_EQ(gpu.kind, "roofline");
  EXPECT_DOUBLE_EQ(rooflineTimeNs(gpu.roofline, 0, 2039e3, ElementType::F32), 900 + 1000);
  EXPECT_DOUBLE_EQ(rooflineTimeNs(gpu.roofline, 19500e3, 2039, ElementType::F32), 900 + 1000);
  EXPECT_DOUBLE_EQ(rooflineTimeNs(gpu.roofline, 312000e3, 2039, ElementType::BF16), 900 + 1000);
  MachineConfig cpu = loadMachine("epyc-7742x2", machinesFolder);
  EXPECT_DOUBLE_EQ(rooflineTimeNs(cpu.roofline, 9216e3, 409.6e3, ElementType::F32), 12900 + 1000);
  EXPECT_THAT(messageOf("a100-80g", {{"core.count", "3"}}), HasSubstr("NB0103"));
  EXPECT_THAT(messageOf("a100-80g", {{"roofline.bandwidthGBs", "0"}}), HasSubstr("NB0105"));
}

TEST(MachineTest, SidesThatAreComparedCountEnergyAlike) {
  MachineConfig host = loadMachine("host-16", machinesFolder), pim = loadMachine("nmc-64", machinesFolder);
  ASSERT_TRUE(host.energy && pim.energy);
  EXPECT_EQ(host.energy->floatFmaPj, pim.energy->floatFmaPj);
  EXPECT_EQ(host.energy->l1AccessPj, pim.energy->l1AccessPj);
  EXPECT_GT(host.energy->dramReadPjPerBit, pim.energy->dramReadPjPerBit);
}

TEST(MachineTest, EveryValueOfEveryMachineHasUnitSourceAndLayer) {
  for (const std::string &name : listMachines(machinesFolder)) {
    MachineConfig machine = loadMachine(name, machinesFolder);
    EXPECT_GE(machine.values.size(), machine.kind == "roofline" ? 5u : 70u);
    for (const MachineValue &value : machine.values) {
      EXPECT_FALSE(value.unit.empty()) << value.path;
      EXPECT_GT(value.source.size(), 10u) << value.path;
      EXPECT_THAT(value.layer, HasSubstr("machines/" + name + ".yaml:")) << value.path;
    }
  }
}

TEST(MachineTest, CoreCountIsAllThatDiffersBetweenTheBuiltInMachines) {
  MachineConfig small = loadMachine("nmc-32", machinesFolder), large = loadMachine("nmc-128", machinesFolder);
  ASSERT_EQ(small.values.size(), large.values.size());
  for (size_t i = 0; i < small.values.size(); ++i)
    EXPECT_TRUE(small.values[i].value == large.values[i].value || small.values[i].path == "core.count")
        << small.values[i].path;
  EXPECT_EQ(small.core.count, 32);
  EXPECT_EQ(large.core.count, 128);
}

TEST(MachineTest, OverrideChangesValueAndLayer) {
  MachineConfig machine = loadMachine("nmc-64", machinesFolder, {{"vault.bandwidthGBs", "5"}, {"core.count", "16"}});
  EXPECT_EQ(machine.dram.vaultBandwidthGBs, 5.0);
  EXPECT_EQ(machine.core.count, 16);
  for (const MachineValue &value : machine.values)
    if (value.path == "vault.bandwidthGBs") {
      EXPECT_EQ(value.value, "5");
      EXPECT_EQ(value.unit, "GB/s");
      EXPECT_EQ(value.layer, "--set vault.bandwidthGBs=5");
    }
}

TEST(MachineTest, OptionalSecondLevelCacheIsRead) {
  MachineConfig machine =
      loadMachine("nmc-64", machinesFolder,
                  {{"l2.sizeBytes", "65536"}, {"l2.ways", "8"}, {"l2.lineBytes", "64"}, {"l2.hitCycles", "8"}});
  ASSERT_TRUE(machine.l2.has_value());
  EXPECT_EQ(machine.l2->sizeBytes, 65536);
  EXPECT_THAT(messageOf("nmc-64", {{"l2.sizeBytes", "65536"}}), AllOf(HasSubstr("NB0104"), HasSubstr("l2.ways")));
}

TEST(MachineTest, UnknownMachineOffersTheNearest) {
  EXPECT_EQ(messageOf("nmc-46"), "error[NB0101]: unknown machine\n"
                                 "  where:    --machine nmc-46\n"
                                 "  expected: one of " +
                                     joinNames(listMachines(machinesFolder)) +
                                     ", or the path of a .yaml file\n"
                                     "  actual:   'nmc-46'\n"
                                     "  fix:      did you mean 'nmc-64'?\n"
                                     "  more:     nearbank explain NB0101");
  EXPECT_THAT(messageOf("/no/such/nmc-64.yaml"), AllOf(HasSubstr("NB0101"), HasSubstr("/no/such/nmc-64.yaml")));
  EXPECT_THAT(messageOf(""), HasSubstr("NB0101"));
}

TEST(MachineTest, SyntaxErrorSaysWhere) {
  EditedMachine edited("core:\n", "core: [\n");
  EXPECT_THAT(messageOf(edited.path()), AllOf(HasSubstr("NB0102"), HasSubstr(edited.path() + ":")));
}

TEST(MachineTest, UnknownKeyOffersTheNearest) {
  EditedMachine edited("  bandwidthGBs: {value: 10.0", "  bandwithGBs: {value: 10.0");
  EXPECT_THAT(messageOf(edited.path()), AllOf(HasSubstr("NB0103"), HasSubstr(":36:3\n"), HasSubstr("vault.bandwithGBs"),
                                              HasSubstr("did you mean 'vault.bandwidthGBs'?")));
  EXPECT_THAT(messageOf("nmc-64", {{"vault.bandwithGBs", "5"}}),
              AllOf(HasSubstr("NB0103"), HasSubstr("--set vault.bandwithGBs=5"),
                    HasSubstr("did you mean 'vault.bandwidthGBs'?")));
  EXPECT_THAT(messageOf("nmc-64", {{"vault", "5"}}), HasSubstr("NB0103"));
}

TEST(MachineTest, UnknownSectionOffersTheNearest) {
  EditedMachine edited("coherence:\n", "coherenc:\n");
  EXPECT_THAT(messageOf(edited.path()), AllOf(HasSubstr("NB0103"), HasSubstr("did you mean 'coherence'?")));
}

TEST(MachineTest, MissingKeyIsNamed) {
  EditedMachine edited("  clockGHz: {value: 1.0", "  # {value: 1.0");
  EXPECT_THAT(messageOf(edited.path()),
              AllOf(HasSubstr("NB0104"), HasSubstr("a value for core.clockGHz"), HasSubstr(":7:1\n")));
}

TEST(MachineTest, ImpossibleValuesAreRefusedWithLineAndColumn) {
  EditedMachine edited("  count: {value: 64,", "  count: {value: -1,");
  EXPECT_EQ(messageOf(edited.path()),
            "error[NB0105]: impossible value in a machine description\n"
            "  where:    " +
                edited.path() +
                ":8:18\n"
                "  expected: core.count to be positive, in cores\n"
                "  actual:   -1\n"
                "  fix:      correct the value; nearbank machines show NAME lists valid ones\n"
                "  more:     nearbank explain NB0105");
}

class MachineSetTest : public testing::TestWithParam<std::tuple<const char *, const char *, const char *>> {};

TEST_P(MachineSetTest, IsRefused) {
  auto [path, value, code] = GetParam();
  EXPECT_THAT(messageOf("nmc-64", {{path, value}}),
              AllOf(HasSubstr(code), HasSubstr(std::string("--set ") + path + "=" + value), HasSubstr(path)));
}

INSTANTIATE_TEST_SUITE_P(
    Values, MachineSetTest,
    testing::Values(std::tuple("core.count", "0", "NB0105"), std::tuple("core.clockGHz", "0", "NB0105"),
                    std::tuple("vault.bandwidthGBs", "-5", "NB0105"), std::tuple("vault.rowBytes", "300", "NB0105"),
                    std::tuple("vault.rowBytes", "32", "NB0105"), std::tuple("l1d.sizeBytes", "33000", "NB0105"),
                    std::tuple("l1d.sizeBytes", "256", "NB0105"), std::tuple("placement.lfmr", "1.5", "NB0105"),
                    std::tuple("coherence.launchNs", "-1", "NB0105"), std::tuple("dram.nREFI", "100", "NB0105"),
                    std::tuple("network.meshWidth", "2", "NB0105"), std::tuple("host.l3.lineBytes", "128", "NB0105"),
                    std::tuple("core.count", "many", "NB0106"), std::tuple("core.count", "2.5", "NB0106"),
                    std::tuple("core.count", "", "NB0106"), std::tuple("core.clockGHz", "nan", "NB0106"),
                    std::tuple("core.clockGHz", "1GHz", "NB0106"), std::tuple("vault.bandwidthGBs", "5,10", "NB0106")));

class HostSetTest : public testing::TestWithParam<std::tuple<const char *, const char *, const char *>> {};

TEST_P(HostSetTest, IsRefused) {
  auto [path, value, code] = GetParam();
  EXPECT_THAT(messageOf("host-16", {{path, value}}),
              AllOf(HasSubstr(code), HasSubstr(std::string("--set ") + path + "=" + value), HasSubstr(path)));
}

INSTANTIATE_TEST_SUITE_P(
    Values, HostSetTest,
    testing::Values(std::tuple("core.count", "0", "NB0105"), std::tuple("channel.rowBytes", "3000", "NB0105"),
                    std::tuple("channel.bandwidthGBs", "0", "NB0105"), std::tuple("core.robEntries", "4", "NB0105"),
                    std::tuple("core.robEntries", "100000", "NB0105"), std::tuple("core.vectorBits", "64", "NB0105"),
                    std::tuple("core.vectorLanesBits", "512", "NB0105"), std::tuple("l3.sharedBy", "3", "NB0105"),
                    std::tuple("l2.lineBytes", "128", "NB0105"), std::tuple("channel.bankGroups", "32", "NB0105"),
                    std::tuple("channel.interleaveBytes", "32", "NB0105"), std::tuple("core.fpPorts", "65", "NB0105"),
                    std::tuple("channel.interleaveBytes", "16384", "NB0105"), std::tuple("vault.count", "32", "NB0103"),
                    std::tuple("coherence.launchNs", "1", "NB0103"), std::tuple("dram.nREFI", "500", "NB0105")));

TEST(MachineTest, GroupsAreGivenWhole) {
  EXPECT_THAT(messageOf("damov-host-4", {{"prefetch.streams", "4"}}),
              AllOf(HasSubstr("NB0104"), HasSubstr("prefetch.trainAccesses")));
  EXPECT_FALSE(loadMachine("damov-host-4", machinesFolder).prefetch.has_value());
}

TEST(MachineTest, KeysOfAnotherKindAreUnknown) {
  EXPECT_THAT(messageOf("nmc-64", {{"core.robEntries", "128"}}), HasSubstr("NB0103"));
  EXPECT_THAT(messageOf("nmc-64", {{"core.vectorBits", "128"}}), AllOf(HasSubstr("NB0104"), HasSubstr("core.vector")));
  EXPECT_EQ(loadMachine("nmc-64", machinesFolder, {{"core.vectorBits", "0"}}).core.vectorBits, 0);
}

TEST(MachineTest, HostWithoutBandwidthIsRefusedWithLineAndColumn) {
  EditedMachine edited("  bandwidthGBs: {", "  # {", "host-16");
  EXPECT_THAT(messageOf(edited.path()), AllOf(HasSubstr("NB0104"), HasSubstr("a value for channel.bandwidthGBs"),
                                              testing::ContainsRegex(":[0-9]+:1\n")));
}

TEST(MachineTest, ImpossibleHostsAreRefusedWithLineAndColumn) {
  EditedMachine cores("  count: {value: 16,", "  count: {value: 0,", "host-16");
  EXPECT_THAT(messageOf(cores.path()), AllOf(HasSubstr("NB0105"), HasSubstr(":8:18\n")));
  EditedMachine row("rowBytes: {value: 8192,", "rowBytes: {value: 6000,", "host-16");
  EXPECT_THAT(messageOf(row.path()),
              AllOf(HasSubstr("NB0105"), HasSubstr("power of two"), testing::ContainsRegex("yaml:[0-9]+:[0-9]+\n")));
}

TEST(MachineTest, ValueWithoutSourceOrUnitIsRefused) {
  EditedMachine bare("count: {value: 64, unit: \"cores\", source:", "count: 64 #");
  EXPECT_THAT(messageOf(bare.path()), AllOf(HasSubstr("NB0107"), HasSubstr(":8:3\n")));
  EditedMachine noUnit("count: {value: 64, unit: \"cores\",", "count: {value: 64,");
  EXPECT_THAT(messageOf(noUnit.path()), AllOf(HasSubstr("NB0107"), HasSubstr("no unit")));
  EditedMachine wrongUnit("{value: 1.0, unit: \"GHz\"", "{value: 1000, unit: \"MHz\"");
  EXPECT_THAT(messageOf(wrongUnit.path()), AllOf(HasSubstr("NB0107"), HasSubstr("unit \"MHz\"")));
  EditedMachine emptySource(
      "source: \"PIMProf (DATE'22), sniper_PIMProf config/pimprof_pim.cfg, perf_model/core frequency\"",
      "source: \" \"");
  EXPECT_THAT(messageOf(emptySource.path()), AllOf(HasSubstr("NB0107"), HasSubstr("no source")));
}

TEST(MachineTest, WrongTypesAreRefused) {
  EditedMachine list("kind: near-memory-cores", "kind: [a]");
  EXPECT_THAT(messageOf(list.path()), HasSubstr("NB0106"));
  EditedMachine scalarSection("network:\n", "network: 3\nlink:\n");
  EXPECT_THAT(messageOf(scalarSection.path()), testing::ContainsRegex("NB010[26]"));
  EditedMachine kind("kind: near-memory-cores", "kind: near-memory-core");
  EXPECT_THAT(messageOf(kind.path()), AllOf(HasSubstr("NB0105"), HasSubstr("did you mean 'near-memory-cores'?")));
}

TEST(MachineTest, EmptyFileAndFolderAreRefused) {
  EditedMachine edited("core:", "core:");
  std::ofstream(edited.path(), std::ios::trunc) << "";
  EXPECT_THAT(messageOf(edited.path()), HasSubstr("NB0106"));
  EXPECT_THAT(messageOf("/tmp/"), HasSubstr("NB0102"));
}

TEST(MachineTest, NearestNameCountsASwapOnce) {
  EXPECT_EQ(editDistance("nmc-46", "nmc-64"), 1u);
  EXPECT_EQ(editDistance("", "abc"), 3u);
  EXPECT_EQ(nearestName("two-stge", {"cpu-only", "two-stage"}), "two-stage");
  EXPECT_EQ(nearestName("x", {}), "");
}

} // namespace
} // namespace nearbank
