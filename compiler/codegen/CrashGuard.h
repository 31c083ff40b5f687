// SPDX-License-Identifier: Apache-2.0
// Keeps a crash of the code generator from ending the user's process.
#pragma once

#include <functional>
#include <string>

namespace nearbank::codegen {

/// Runs `work` and returns whether it came to an end: false after a fatal error, an abort or a bad memory access
/// inside. Exceptions pass through. Memory that crashed work held is lost; nothing it was building may be used.
/// Signal handlers are replaced while it runs; calls from several threads are taken one at a time.
/// @param reason receives LLVM's message where it gave one
bool survivesCrash(const std::function<void()> &work, std::string &reason);

} // namespace nearbank::codegen
