// SPDX-License-Identifier: Apache-2.0
// Which accesses of tasklets happen before which: vector clocks, and the last accesses to every double word.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace nearbank::dpu {

/// CH-1 (docs/model.md): what each tasklet knows of the others.
class Clocks {
public:
  Clocks();
  uint32_t now(unsigned tasklet) const { return known_[tasklet][tasklet]; }
  /// Whether what `other` did at its time `clock` happens before what `tasklet` does now.
  bool isBefore(unsigned other, uint32_t clock, unsigned tasklet) const { return clock <= known_[tasklet][other]; }
  void acquire(unsigned tasklet, unsigned lock) { join(known_[tasklet], locks_[lock]); }
  void release(unsigned tasklet, unsigned lock);
  void wake(unsigned tasklet, unsigned sleeper);

private:
  using Clock = std::array<uint32_t, 24>;
  static void join(Clock &into, const Clock &from);
  Clock known_[24] = {}, locks_[256] = {};
};

/// An access to some bytes of a double word.
struct Access {
  uint32_t clock = 0, pc = 0;
  uint8_t tasklet = 0;
  uint8_t bytes = 0; ///< A bit for each byte; 0 when there is no access.
  bool isWrite = false;
};

/// The last accesses to a memory. Four are kept of each double word, so some races of many tasklets are seen once only.
class Shadow {
public:
  /// Notes an access; returns an earlier one that nothing orders with it, or one without bytes.
  Access note(uint32_t doubleWord, const Access &access, const Clocks &clocks);

private:
  static constexpr uint32_t PageWords = 512;
  using Last = std::array<Access, 4>;
  std::unordered_map<uint32_t, std::unique_ptr<std::array<Last, PageWords>>> pages_;
};

} // namespace nearbank::dpu
