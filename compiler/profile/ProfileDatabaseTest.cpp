// SPDX-License-Identifier: Apache-2.0
#include "compiler/profile/ProfileDatabase.h"

#include "runtime/Error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace nearbank::profile {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ProfileDatabaseTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::temp_directory_path() / ("nearbank-db-" + std::to_string(getpid()) + "-" + name);
    fs::remove_all(folder_);
    path_ = (folder_ / "home" / "profiles.sqlite").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  void writeFile(const std::string &content) {
    fs::create_directories(fs::path(path_).parent_path());
    std::ofstream(path_, std::ios::binary) << content;
  }
  void runSql(const std::string &text) {
    fs::create_directories(fs::path(path_).parent_path());
    sqlite3 *database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  fs::path folder_;
  std::string path_;
};

ProfileKey keyOf(const std::string &nest) { return {nest, "host A", "", "c0ffee", 2, 1}; }

NestProfile profileOf(const std::string &nest) {
  NestProfile profile;
  profile.key = nest;
  profile.host = "host A";
  profile.oneThreadNs = 123.5;
  profile.oneThreadSpreadNs = 1.25;
  profile.allThreadsNs = 62.0;
  profile.allThreadsSpreadNs = 0.5;
  profile.threads = 2;
  profile.repeats = 7;
  profile.cache = {1000, 60, 50, 40, 2560, 4000, 0.25};
  profile.cacheSource = "cache-model";
  profile.parallelTasks = 96;
  return profile;
}

TEST_F(ProfileDatabaseTest, StoredProfileComesBackWhole) {
  {
    ProfileDatabase database(path_);
    EXPECT_EQ(database.message(), "");
    EXPECT_EQ(database.find(keyOf("k1")), std::nullopt);
    database.store(keyOf("k1"), profileOf("k1"));
  }
  ProfileDatabase database(path_);
  std::optional<NestProfile> found = database.find(keyOf("k1"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key, "k1");
  EXPECT_EQ(found->host, "host A");
  EXPECT_EQ(found->oneThreadNs, 123.5);
  EXPECT_EQ(found->oneThreadSpreadNs, 1.25);
  EXPECT_EQ(found->allThreadsNs, 62.0);
  EXPECT_EQ(found->allThreadsSpreadNs, 0.5);
  EXPECT_EQ(found->threads, 2);
  EXPECT_EQ(found->repeats, 7);
  EXPECT_EQ(found->cache.accesses, 1000);
  EXPECT_EQ(found->cache.l1Misses, 60);
  EXPECT_EQ(found->cache.l2Misses, 50);
  EXPECT_EQ(found->cache.l3Misses, 40);
  EXPECT_EQ(found->cache.dramBytes, 2560);
  EXPECT_EQ(found->cache.instructions, 4000);
  EXPECT_EQ(found->cache.sampledShare, 0.25);
  EXPECT_EQ(found->cacheSource, "cache-model");
  EXPECT_EQ(found->parallelTasks, 96);
  EXPECT_EQ(database.size(), 1);
}

TEST_F(ProfileDatabaseTest, EveryPartOfTheKeyCounts) {
  ProfileDatabase database(path_);
  database.store(keyOf("k1"), profileOf("k1"));
  ProfileKey key = keyOf("k1");
  key.host = "host B";
  EXPECT_FALSE(database.find(key));
  key = keyOf("k1");
  key.indexClass = "zipf";
  EXPECT_FALSE(database.find(key));
  key = keyOf("k1");
  key.cacheConfig = "other";
  EXPECT_FALSE(database.find(key));
  key = keyOf("k1");
  key.threads = 1;
  EXPECT_FALSE(database.find(key));
  EXPECT_EQ(database.numStale(), 0);
  EXPECT_TRUE(database.find(keyOf("k1")));
}

TEST_F(ProfileDatabaseTest, EntriesOfAnotherVersionAreStale) {
  ProfileDatabase database(path_);
  database.store(keyOf("k1"), profileOf("k1"));
  ProfileKey newer = keyOf("k1");
  newer.codegenVersion = 2;
  EXPECT_FALSE(database.find(newer));
  EXPECT_EQ(database.numStale(), 1);
  database.store(newer, profileOf("k1"));
  EXPECT_TRUE(database.find(newer));
  EXPECT_EQ(database.numStale(), 1);
  EXPECT_EQ(database.size(), 2);
}

TEST_F(ProfileDatabaseTest, StoringAgainReplaces) {
  ProfileDatabase database(path_);
  database.store(keyOf("k1"), profileOf("k1"));
  NestProfile faster = profileOf("k1");
  faster.oneThreadNs = 1;
  database.store(keyOf("k1"), faster);
  EXPECT_EQ(database.find(keyOf("k1"))->oneThreadNs, 1);
  EXPECT_EQ(database.size(), 1);
}

TEST_F(ProfileDatabaseTest, CorruptFileIsSetAsideAndANewOneBegun) {
  writeFile("this is no database, but long enough to have a header: " + std::string(200, 'x'));
  ProfileDatabase database(path_);
  EXPECT_THAT(database.message(), HasSubstr(path_ + ".corrupt-1"));
  EXPECT_THAT(database.message(), HasSubstr("not a readable SQLite file"));
  EXPECT_TRUE(fs::exists(path_ + ".corrupt-1"));
  database.store(keyOf("k1"), profileOf("k1"));
  EXPECT_TRUE(database.find(keyOf("k1")));
}

TEST_F(ProfileDatabaseTest, SecondCorruptFileGetsTheNextNumber) {
  for (int round = 1; round <= 2; ++round) {
    writeFile(std::string(4096, char('a' + round)));
    ProfileDatabase database(path_);
    EXPECT_THAT(database.message(), HasSubstr(".corrupt-" + std::to_string(round)));
  }
}

TEST_F(ProfileDatabaseTest, ForeignDatabaseIsSetAsideUntouched) {
  runSql("CREATE TABLE contacts(name TEXT); INSERT INTO contacts VALUES('x')");
  ProfileDatabase database(path_);
  EXPECT_THAT(database.message(), HasSubstr("belongs to another program"));
  sqlite3 *aside = nullptr;
  ASSERT_EQ(sqlite3_open((path_ + ".corrupt-1").c_str(), &aside), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(aside, "SELECT name FROM contacts", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(aside);
}

TEST_F(ProfileDatabaseTest, SimulationsAreKeptByEveryPartOfTheirKey) {
  const SimulationKey key{"code", "operands", "machine", "exact", "simulator"};
  ProfileDatabase database(path_);
  EXPECT_EQ(database.findSimulation(key), std::nullopt);
  database.storeSimulation(key, "{}");
  database.storeSimulation(key, "{\"timeNs\": 1}");
  EXPECT_EQ(database.findSimulation(key), "{\"timeNs\": 1}");
  EXPECT_EQ(database.numSimulations(), 1);
  for (std::string SimulationKey::*part : {&SimulationKey::code, &SimulationKey::operands, &SimulationKey::machine,
                                           &SimulationKey::sampling, &SimulationKey::simulator}) {
    SimulationKey other = key;
    other.*part = "other";
    EXPECT_EQ(database.findSimulation(other), std::nullopt);
  }
}

TEST_F(ProfileDatabaseTest, FileOfTheVersionWithoutSimulationsKeepsItsProfiles) {
  {
    ProfileDatabase database(path_);
    database.store(keyOf("k1"), profileOf("k1"));
  }
  runSql("DROP TABLE simulations; PRAGMA user_version=2");
  ProfileDatabase database(path_);
  EXPECT_EQ(database.message(), "");
  EXPECT_TRUE(database.find(keyOf("k1")));
  EXPECT_EQ(database.numSimulations(), 0);
}

TEST_F(ProfileDatabaseTest, MergeAddsSimulations) {
  const SimulationKey key{"code", "operands", "machine", "exact", "simulator"};
  std::string otherPath = (folder_ / "other.sqlite").string();
  ProfileDatabase(otherPath).storeSimulation(key, "{}");
  ProfileDatabase database(path_);
  EXPECT_EQ(database.merge(otherPath), 0);
  EXPECT_EQ(database.findSimulation(key), "{}");
}

TEST_F(ProfileDatabaseTest, OtherSchemaVersionIsSetAside) {
  {
    ProfileDatabase database(path_);
  }
  runSql("PRAGMA user_version=99");
  ProfileDatabase database(path_);
  EXPECT_THAT(database.message(), HasSubstr("schema version 99, not 3"));
}

TEST_F(ProfileDatabaseTest, DamagedPagesAreFound) {
  {
    ProfileDatabase database(path_);
    for (int i = 0; i < 500; ++i)
      database.store(keyOf("k" + std::to_string(i)), profileOf("k"));
  }
  ASSERT_GT(fs::file_size(path_), 40000u);
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    file << std::string(16384, '\x7f');
  }
  ProfileDatabase database(path_);
  EXPECT_THAT(database.message(), HasSubstr("set aside"));
  EXPECT_EQ(database.size(), 0);
}

TEST_F(ProfileDatabaseTest, EmptyFileIsTakenAsNew) {
  writeFile("");
  ProfileDatabase database(path_);
  EXPECT_EQ(database.message(), "");
  EXPECT_EQ(database.size(), 0);
}

TEST_F(ProfileDatabaseTest, FolderThatCannotBeWrittenIsADeviceError) {
  for (std::string path : {std::string("/proc/nearbank/profiles.sqlite"), std::string("/dev/null/profiles.sqlite")})
    try {
      ProfileDatabase database(path);
      FAIL();
    } catch (const DeviceError &error) {
      EXPECT_EQ(error.report().code, "NB0401");
      EXPECT_THAT(error.report().text(), HasSubstr("NEARBANK_HOME"));
    }
  fs::create_directories(path_);
  EXPECT_THROW(ProfileDatabase{path_}, DeviceError); // A folder of that name.
}

TEST_F(ProfileDatabaseTest, ReadOnlyFolderIsADeviceErrorForAnOrdinaryUser) {
  fs::create_directories(folder_ / "home");
  fs::permissions(folder_ / "home", fs::perms::owner_read | fs::perms::owner_exec);
  if (geteuid() == 0) {
    // root may write anywhere: try as nobody, in a child.
    pid_t child = fork();
    if (child == 0) {
      if (setuid(65534) != 0)
        _exit(2);
      try {
        ProfileDatabase database(path_);
      } catch (const DeviceError &) {
        _exit(0);
      } catch (...) {
        _exit(3);
      }
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  } else {
    EXPECT_THROW(ProfileDatabase{path_}, DeviceError);
  }
  fs::permissions(folder_ / "home", fs::perms::owner_all);
}

TEST_F(ProfileDatabaseTest, MergeAddsWhatIsAbsent) {
  std::string other = (folder_ / "other" / "profiles.sqlite").string();
  {
    ProfileDatabase second(other);
    second.store(keyOf("k1"), profileOf("k1"));
    second.store(keyOf("k2"), profileOf("k2"));
  }
  ProfileDatabase database(path_);
  NestProfile own = profileOf("k1");
  own.oneThreadNs = 9;
  database.store(keyOf("k1"), own);
  EXPECT_EQ(database.merge(other), 1);
  EXPECT_EQ(database.find(keyOf("k1"))->oneThreadNs, 9);
  EXPECT_TRUE(database.find(keyOf("k2")));
  EXPECT_EQ(database.merge(other), 0);
}

TEST_F(ProfileDatabaseTest, MergeRefusesWhatIsNoDatabase) {
  ProfileDatabase database(path_);
  EXPECT_THROW(database.merge("/no/such/file"), UserError);
  std::string text = (folder_ / "text").string();
  std::ofstream(text) << std::string(500, 'x');
  try {
    database.merge(text);
    FAIL();
  } catch (const UserError &error) {
    EXPECT_EQ(error.report().code, "NB0403");
  }
  EXPECT_TRUE(fs::exists(text));
}

TEST_F(ProfileDatabaseTest, ProcessesShareOneFile) {
  // Four processes begin on a corrupt file at the same time; every entry of each survives, one file is set aside.
  writeFile(std::string(4096, 'z'));
  constexpr int numProcesses = 4, numEntries = 50;
  std::vector<pid_t> children;
  for (int process = 0; process < numProcesses; ++process) {
    pid_t child = fork();
    if (child == 0) {
      try {
        ProfileDatabase database(path_);
        for (int i = 0; i < numEntries; ++i)
          database.store(keyOf(std::to_string(process) + "-" + std::to_string(i)), profileOf("x"));
      } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ProfileDatabase database(path_);
  EXPECT_EQ(database.size(), numProcesses * numEntries);
  EXPECT_TRUE(fs::exists(path_ + ".corrupt-1"));
  EXPECT_FALSE(fs::exists(path_ + ".corrupt-2"));
}

TEST(HostFingerprintTest, NamesTheMachineAndStaysTheSame) {
  EXPECT_THAT(hostFingerprint(), HasSubstr("cores"));
  EXPECT_EQ(hostFingerprint(), hostFingerprint());
}

} // namespace
} // namespace nearbank::profile
