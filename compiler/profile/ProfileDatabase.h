// SPDX-License-Identifier: Apache-2.0
// Keeps nest profiles and simulated times in one SQLite file, shared by processes and models.
#pragma once

#include "compiler/profile/NestProfile.h"

#include <memory>
#include <optional>
#include <string>

namespace nearbank::profile {

/// What a profile depends on.
struct ProfileKey {
  std::string nest;        ///< Structural key of the nest.
  std::string host;        ///< hostFingerprint().
  std::string indexClass;  ///< Class of index operands; indexClassOf().
  std::string cacheConfig; ///< cacheConfigHash().
  int64_t threads = 1;     ///< Threads of the all-threads time.
  int64_t codegenVersion = 1;
};

/// What a simulated time depends on; every part is a hash or a short text.
struct SimulationKey {
  std::string code;      ///< Machine code of the kernel and length of its task range.
  std::string operands;  ///< Sizes, types and index classes of the operands, and where they lie in memory.
  std::string machine;   ///< Values of the machine file that timing depends on.
  std::string sampling;  ///< "exact", or the options of sampling.
  std::string simulator; ///< Code of the simulator.
  bool operator==(const SimulationKey &) const = default;
  auto operator<=>(const SimulationKey &) const = default;
};

/// Thread-compatible: one object per thread. Several processes may hold the same file open.
class ProfileDatabase {
public:
  /// Opens or creates the database. A corrupt or foreign file is renamed to `path`.corrupt-1, -2, ... and a new
  /// one begun; message() then says so.
  /// @throws DeviceError NB0401 when the folder or the file cannot be written
  explicit ProfileDatabase(const std::string &path);
  ~ProfileDatabase();
  ProfileDatabase(ProfileDatabase &&) noexcept;
  ProfileDatabase &operator=(ProfileDatabase &&) noexcept;

  /// What the user should be told about opening, e.g. that a foreign file was set aside; empty when all was well.
  const std::string &message() const;
  /// The profile of exactly this key; stale ones (other code generator or profiler version) are counted, not returned.
  std::optional<NestProfile> find(const ProfileKey &key);
  void store(const ProfileKey &key, const NestProfile &profile);
  /// What storeSimulation() was given under this key.
  std::optional<std::string> findSimulation(const SimulationKey &key);
  void storeSimulation(const SimulationKey &key, const std::string &result);
  int64_t numSimulations();
  /// Adds the entries of another database that are absent here and returns the number of profiles.
  /// @throws UserError NB0403 when `otherPath` is not a Nearbank profile database
  int64_t merge(const std::string &otherPath);
  int64_t size();           ///< Number of profiles.
  int64_t numStale() const; ///< Lookups so far that met only entries of another version.
  const std::string &path() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Names this machine: processor model, cores and cache sizes, e.g. "AMD EPYC, 2 cores, L1d 32K, L2 512K, L3 32768K".
std::string hostFingerprint();
/// Hash of the host caches that the cache model uses, 16 hex digits.
std::string cacheConfigHash(const HostConfig &host);

} // namespace nearbank::profile
