// SPDX-License-Identifier: Apache-2.0
// Runs the training kernel's source on the host, to test its function without a simulator.
#pragma once

#include "sgd/DeviceImage.h"
#include "sgd/DeviceMemory.h"

#include <string>
#include <vector>

namespace nearbank::sgd {

/// Variants that were built, each for 1, 11 and 16 tasklets.
const std::vector<std::string> &nativeVariants();

/// MRAM as memory of the host.
class NativeMemory : public DeviceMemory {
public:
  explicit NativeMemory(const DeviceImage &image) : bytes(static_cast<size_t>(image.size())) {}
  void write(uint32_t at, const void *from, size_t size) override;
  void read(uint32_t at, void *to, size_t size) const override;

  std::vector<uint8_t> bytes;
};

/// Runs one launch of a variant; `numTasklets` is one of those built.
void runNative(const std::string &variant, int numTasklets, const DeviceImage &image, NativeMemory &memory);

} // namespace nearbank::sgd
