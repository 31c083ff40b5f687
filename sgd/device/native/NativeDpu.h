// SPDX-License-Identifier: Apache-2.0
// Runs the training kernel's source on the host, to test its function without a simulator.
#pragma once

#include "sgd/DeviceImage.h"

#include <string>
#include <vector>

namespace nearbank::sgd {

/// Variants that were built, each for 1, 11 and 16 tasklets.
const std::vector<std::string> &nativeVariants();

/// Runs one launch of a variant; `numTasklets` is one of those built.
void runNative(const std::string &variant, int numTasklets, DeviceImage &image);

} // namespace nearbank::sgd
