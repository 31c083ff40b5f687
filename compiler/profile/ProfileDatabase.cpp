// SPDX-License-Identifier: Apache-2.0

#include "compiler/profile/ProfileDatabase.h"

#include "compiler/profile/HostProfiler.h"
#include "compiler/profile/SqliteStatement.h"
#include "runtime/Error.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace nearbank::profile {
namespace {

constexpr int schemaVersion = 3;
constexpr int versionWithoutSimulations = 2; ///< Its table of profiles is the same.
constexpr int applicationId = 0x4e42504b;    // "NBPK"
constexpr int busyMs = 20000;

constexpr const char *keyColumns = "nest, host, indexClass, cacheConfig, threads, codegenVersion, profilerVersion";
constexpr const char *simulationColumns = "code, operands, machine, sampling, simulator, result";
constexpr const char *simulationTable =
    "CREATE TABLE simulations(code TEXT, operands TEXT, machine TEXT, sampling TEXT, simulator TEXT, result TEXT,"
    " created TEXT DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY(code, operands, machine, sampling, simulator)) WITHOUT ROWID";
constexpr const char *valueColumns =
    "oneThreadNs, oneThreadSpreadNs, allThreadsNs, allThreadsSpreadNs, repeats, accesses, l1Misses, l2Misses, "
    "l3Misses, dramBytes, instructions, sampledShare, cacheSource, parallelTasks";

[[noreturn]] void failWrite(const std::string &path, const std::string &actual) {
  throw DeviceError({"NB0401", "profile database cannot be written", path, "a file in a writable folder", actual,
                     "set NEARBANK_HOME to a writable folder, or name another file with --db"});
}

/// Excludes other processes while a database is opened, checked and perhaps set aside.
class OpenLock {
public:
  explicit OpenLock(const std::string &path)
      : file_(::open((path + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (file_ < 0)
      failWrite(path, std::strerror(errno));
    while (flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~OpenLock() { ::close(file_); }
  OpenLock(const OpenLock &) = delete;
  OpenLock &operator=(const OpenLock &) = delete;

private:
  int file_;
};

bool queryInteger(sqlite3 *database, const std::string &text, int64_t &value) {
  Statement statement(database, text);
  if (statement.step() != SQLITE_ROW)
    return false;
  value = statement.integer();
  return true;
}

/// Why a file is not a database of ours; empty when it is, or when it is still empty.
std::string findFault(sqlite3 *database, bool &isEmpty) {
  int64_t tables = 0, application = 0, version = 0;
  isEmpty = false;
  if (!queryInteger(database, "SELECT count(*) FROM sqlite_master", tables)) {
    int code = sqlite3_errcode(database);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
      return "it is not a readable SQLite file";
    failWrite(sqlite3_db_filename(database, "main"), sqlite3_errmsg(database));
  }
  queryInteger(database, "PRAGMA application_id", application);
  queryInteger(database, "PRAGMA user_version", version);
  if (tables == 0 && application == 0) {
    isEmpty = true;
    return "";
  }
  if (application != applicationId)
    return "it belongs to another program";
  if (version != schemaVersion && version != versionWithoutSimulations)
    return fmt::format("it has schema version {}, not {}", version, schemaVersion);
  Statement check(database, "PRAGMA quick_check(1)");
  if (check.step() != SQLITE_ROW || check.text() != "ok")
    return "its contents are damaged";
  return "";
}

std::string freeName(const std::string &path) {
  for (int number = 1;; ++number) {
    std::string candidate = fmt::format("{}.corrupt-{}", path, number);
    if (!std::filesystem::exists(candidate))
      return candidate;
  }
}

} // namespace

struct ProfileDatabase::Impl {
  std::string path, message;
  sqlite3 *database = nullptr;
  int64_t numStale = 0;

  ~Impl() { close(); }

  void close() {
    sqlite3_close(database);
    database = nullptr;
  }

  [[noreturn]] void fail() {
    int code = sqlite3_errcode(database);
    std::string text = sqlite3_errmsg(database);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
      throw DeviceError({"NB0402", "profile database was damaged while in use", path,
                         "a SQLite file that no other program writes", text,
                         "run again: the file will be set aside and a new one begun"});
    failWrite(path, text);
  }

  void execute(const std::string &text) {
    if (sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      fail();
  }

  void connect() {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    if (sqlite3_open_v2(path.c_str(), &database, flags, nullptr) != SQLITE_OK) {
      std::string text = database ? sqlite3_errmsg(database) : "out of memory";
      close();
      failWrite(path, text);
    }
    sqlite3_busy_timeout(database, busyMs);
  }

  void setAside(const std::string &fault) {
    close();
    std::string aside = freeName(path);
    std::error_code error;
    std::filesystem::rename(path, aside, error);
    if (error)
      failWrite(path, error.message());
    for (const char *suffix : {"-wal", "-shm", "-journal"})
      std::filesystem::remove(path + suffix, error);
    message =
        fmt::format("profile database {} was set aside as {} because {}; a new one was begun", path, aside, fault);
  }

  void createSchema() {
    execute(
        fmt::format("BEGIN IMMEDIATE;"
                    "CREATE TABLE profiles(nest TEXT, host TEXT, indexClass TEXT, cacheConfig TEXT, threads INTEGER,"
                    " codegenVersion INTEGER, profilerVersion INTEGER, oneThreadNs REAL, oneThreadSpreadNs REAL,"
                    " allThreadsNs REAL, allThreadsSpreadNs REAL, repeats INTEGER, accesses REAL, l1Misses REAL,"
                    " l2Misses REAL, l3Misses REAL, dramBytes REAL, instructions REAL, sampledShare REAL,"
                    " cacheSource TEXT, parallelTasks INTEGER, created TEXT DEFAULT CURRENT_TIMESTAMP, PRIMARY "
                    "KEY({})) WITHOUT ROWID; {};"
                    "PRAGMA application_id={}; PRAGMA user_version={}; COMMIT",
                    keyColumns, simulationTable, applicationId, schemaVersion));
  }

  /// Brings a file of the version before to this one; its profiles stay.
  void upgrade() {
    int64_t version = 0;
    queryInteger(database, "PRAGMA user_version", version);
    if (version == versionWithoutSimulations)
      execute(fmt::format("BEGIN IMMEDIATE; {}; PRAGMA user_version={}; COMMIT", simulationTable, schemaVersion));
  }
};

ProfileDatabase::ProfileDatabase(const std::string &path) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  std::error_code error;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty())
    std::filesystem::create_directories(folder, error);
  if (error)
    failWrite(path, error.message());
  if (std::filesystem::is_directory(path, error))
    failWrite(path, "a folder of that name");
  OpenLock lock(path);
  impl_->connect();
  bool isEmpty = false;
  std::string fault = findFault(impl_->database, isEmpty);
  if (!fault.empty()) {
    impl_->setAside(fault);
    impl_->connect();
    isEmpty = true;
  }
  if (sqlite3_db_readonly(impl_->database, "main") == 1)
    failWrite(path, "a read-only file");
  if (isEmpty)
    impl_->createSchema();
  impl_->upgrade();
  impl_->execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
}

ProfileDatabase::~ProfileDatabase() = default;
ProfileDatabase::ProfileDatabase(ProfileDatabase &&) noexcept = default;
ProfileDatabase &ProfileDatabase::operator=(ProfileDatabase &&) noexcept = default;

const std::string &ProfileDatabase::message() const { return impl_->message; }
const std::string &ProfileDatabase::path() const { return impl_->path; }
int64_t ProfileDatabase::numStale() const { return impl_->numStale; }

std::optional<NestProfile> ProfileDatabase::find(const ProfileKey &key) {
  Statement statement(
      impl_->database,
      fmt::format("SELECT codegenVersion, profilerVersion, {} FROM profiles WHERE nest=? AND host=? AND "
                  "indexClass=? AND cacheConfig=? AND threads=?",
                  valueColumns));
  statement.bind(key.nest).bind(key.host).bind(key.indexClass).bind(key.cacheConfig).bind(key.threads);
  bool hasStale = false;
  int status;
  while ((status = statement.step()) == SQLITE_ROW) {
    int64_t codegen = statement.integer();
    int64_t profiler = statement.integer();
    if (codegen != key.codegenVersion || profiler != profilerVersion) {
      hasStale = true;
      continue;
    }
    NestProfile profile;
    profile.key = key.nest;
    profile.host = key.host;
    profile.threads = key.threads;
    profile.version = codegen;
    profile.oneThreadNs = statement.real();
    profile.oneThreadSpreadNs = statement.real();
    profile.allThreadsNs = statement.real();
    profile.allThreadsSpreadNs = statement.real();
    profile.repeats = statement.integer();
    profile.cache.accesses = statement.real();
    profile.cache.l1Misses = statement.real();
    profile.cache.l2Misses = statement.real();
    profile.cache.l3Misses = statement.real();
    profile.cache.dramBytes = statement.real();
    profile.cache.instructions = statement.real();
    profile.cache.sampledShare = statement.real();
    profile.cacheSource = statement.text();
    profile.parallelTasks = statement.integer();
    return profile;
  }
  if (status != SQLITE_DONE)
    impl_->fail();
  if (hasStale)
    ++impl_->numStale;
  return std::nullopt;
}

void ProfileDatabase::store(const ProfileKey &key, const NestProfile &profile) {
  Statement statement(impl_->database, fmt::format("INSERT OR REPLACE INTO profiles({}, {}) "
                                                   "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                                                   keyColumns, valueColumns));
  statement.bind(key.nest).bind(key.host).bind(key.indexClass).bind(key.cacheConfig).bind(key.threads);
  statement.bind(key.codegenVersion).bind(profilerVersion);
  statement.bind(profile.oneThreadNs).bind(profile.oneThreadSpreadNs);
  statement.bind(profile.allThreadsNs).bind(profile.allThreadsSpreadNs).bind(profile.repeats);
  const CacheProfile &cache = profile.cache;
  statement.bind(cache.accesses).bind(cache.l1Misses).bind(cache.l2Misses).bind(cache.l3Misses);
  statement.bind(cache.dramBytes).bind(cache.instructions).bind(cache.sampledShare).bind(profile.cacheSource);
  statement.bind(profile.parallelTasks);
  if (statement.step() != SQLITE_DONE)
    impl_->fail();
}

std::optional<std::string> ProfileDatabase::findSimulation(const SimulationKey &key) {
  Statement statement(impl_->database, "SELECT result FROM simulations WHERE code=? AND operands=? AND machine=? AND "
                                       "sampling=? AND simulator=?");
  statement.bind(key.code).bind(key.operands).bind(key.machine).bind(key.sampling).bind(key.simulator);
  int status = statement.step();
  if (status == SQLITE_ROW)
    return statement.text();
  if (status != SQLITE_DONE)
    impl_->fail();
  return std::nullopt;
}

void ProfileDatabase::storeSimulation(const SimulationKey &key, const std::string &result) {
  Statement statement(impl_->database,
                      fmt::format("INSERT OR REPLACE INTO simulations({}) VALUES(?,?,?,?,?,?)", simulationColumns));
  statement.bind(key.code).bind(key.operands).bind(key.machine).bind(key.sampling).bind(key.simulator).bind(result);
  if (statement.step() != SQLITE_DONE)
    impl_->fail();
}

int64_t ProfileDatabase::numSimulations() {
  int64_t count = 0;
  if (!queryInteger(impl_->database, "SELECT count(*) FROM simulations", count))
    impl_->fail();
  return count;
}

int64_t ProfileDatabase::merge(const std::string &otherPath) {
  auto failMerge = [&](const std::string &actual) {
    throw UserError({"NB0403", "file to merge is not a profile database", otherPath, "a file that Nearbank wrote",
                     actual, "name the profiles.sqlite of another NEARBANK_HOME"});
  };
  if (!std::filesystem::is_regular_file(otherPath))
    failMerge("no such file");
  sqlite3 *other = nullptr;
  std::string fault;
  bool isEmpty = false;
  if (sqlite3_open_v2(otherPath.c_str(), &other, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK)
    fault = other ? sqlite3_errmsg(other) : "out of memory";
  else
    fault = findFault(other, isEmpty);
  sqlite3_close(other);
  if (!fault.empty() || isEmpty)
    failMerge(isEmpty ? "an empty file" : fault);
  Statement attach(impl_->database, "ATTACH ? AS other");
  if (attach.bind(otherPath).step() != SQLITE_DONE)
    impl_->fail();
  int64_t before = size();
  impl_->execute(fmt::format("INSERT OR IGNORE INTO profiles({0}, {1}) SELECT {0}, {1} FROM other.profiles", keyColumns,
                             valueColumns));
  int64_t hasSimulations = 0;
  queryInteger(impl_->database, "SELECT count(*) FROM other.sqlite_master WHERE name='simulations'", hasSimulations);
  if (hasSimulations)
    impl_->execute(
        fmt::format("INSERT OR IGNORE INTO simulations({0}) SELECT {0} FROM other.simulations", simulationColumns));
  impl_->execute("DETACH other");
  return size() - before;
}

int64_t ProfileDatabase::size() {
  int64_t count = 0;
  if (!queryInteger(impl_->database, "SELECT count(*) FROM profiles", count))
    impl_->fail();
  return count;
}

} // namespace nearbank::profile
