// SPDX-License-Identifier: Apache-2.0
// Links RISC-V objects into static executables with LLD.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <string>
#include <vector>

namespace nearbank::codegen {

/// Links one object at 0x10000 with the given entry symbol. On failure the result is empty and `failure` says why.
/// Thread-safe: LLD runs under one lock, and as a program of its own once it cannot run in this process again.
std::vector<std::byte> linkRiscv(llvm::StringRef object, const std::string &entry, std::string &failure);

} // namespace nearbank::codegen
