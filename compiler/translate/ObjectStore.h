// SPDX-License-Identifier: Apache-2.0
// Native code on disk, so that a program that ran before starts at once.
#pragma once

#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace nearbank::translate {

/// Files in `upmem-native` of NEARBANK_HOME, or of ~/.cache/nearbank. Where they cannot be read or written, code is
/// made anew.
class ObjectStore {
public:
  ObjectStore();
  /// What was written for `source`; null when nothing was.
  std::unique_ptr<llvm::MemoryBuffer> read(const std::string &source) const;
  void write(const std::string &source, const llvm::MemoryBuffer &object) const;

private:
  std::string pathOf(const std::string &source) const;
  std::string folder_; // Empty without a home.
};

} // namespace nearbank::translate
