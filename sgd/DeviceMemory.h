// SPDX-License-Identifier: Apache-2.0
// Where the training kernel's data lie: a DPU's MRAM, or memory of this host in tests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearbank::sgd {

/// The MRAM heap of one DPU; `at` counts from its start.
class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;
  virtual void write(uint32_t at, const void *from, size_t size) = 0;
  virtual void read(uint32_t at, void *to, size_t size) const = 0;
};

} // namespace nearbank::sgd
