// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/Race.h"

#include <algorithm>

namespace nearbank::dpu {

Clocks::Clocks() {
  for (unsigned tasklet = 0; tasklet < 24; ++tasklet)
    known_[tasklet][tasklet] = 1;
}

void Clocks::join(Clock &into, const Clock &from) {
  for (unsigned i = 0; i < into.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

void Clocks::release(unsigned tasklet, unsigned lock) {
  join(locks_[lock], known_[tasklet]);
  ++known_[tasklet][tasklet];
}

void Clocks::wake(unsigned tasklet, unsigned sleeper) {
  join(known_[sleeper], known_[tasklet]);
  ++known_[tasklet][tasklet];
}

Access Shadow::note(uint32_t doubleWord, const Access &access, const Clocks &clocks) {
  auto &page = pages_[doubleWord / PageWords];
  if (!page)
    page = std::make_unique<std::array<Last, PageWords>>();
  Last &last = (*page)[doubleWord % PageWords];
  Access race;
  Access *place = nullptr;
  for (Access &old : last) {
    bool isOrdered = old.bytes == 0 || clocks.isBefore(old.tasklet, old.clock, access.tasklet);
    if (!isOrdered && (old.isWrite || access.isWrite) && (old.bytes & access.bytes))
      race = old;
    if (old.bytes && old.tasklet == access.tasklet && old.isWrite == access.isWrite && old.clock == access.clock) {
      old.bytes |= access.bytes;
      old.pc = access.pc;
      return race;
    }
    if (isOrdered)
      place = &old;
  }
  // When none is over, the oldest place goes: a race was or will be reported of this double word anyway.
  *(place ? place : last.data()) = access;
  return race;
}

} // namespace nearbank::dpu
