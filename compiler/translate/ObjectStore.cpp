// SPDX-License-Identifier: Apache-2.0
#include "compiler/translate/ObjectStore.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <cstdlib>

namespace nearbank::translate {

ObjectStore::ObjectStore() {
  const char *chosen = std::getenv("NEARBANK_HOME"), *home = std::getenv("HOME");
  if (chosen && *chosen)
    folder_ = std::string(chosen) + "/upmem-native";
  else if (home && *home)
    folder_ = std::string(home) + "/.cache/nearbank/upmem-native";
  if (!folder_.empty() && llvm::sys::fs::create_directories(folder_))
    folder_.clear();
}

std::string ObjectStore::pathOf(const std::string &source) const {
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(LLVM_VERSION_STRING + source));
  return folder_ + "/" + llvm::utohexstr(hash.high64) + llvm::utohexstr(hash.low64) + ".o";
}

std::unique_ptr<llvm::MemoryBuffer> ObjectStore::read(const std::string &source) const {
  if (folder_.empty())
    return nullptr;
  auto file = llvm::MemoryBuffer::getFile(pathOf(source), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return file ? std::move(*file) : nullptr;
}

void ObjectStore::write(const std::string &source, const llvm::MemoryBuffer &object) const {
  if (folder_.empty())
    return;
  // Renamed when complete, so that no other process reads half of it.
  auto file = llvm::sys::fs::TempFile::create(folder_ + "/%%%%%%%%.tmp");
  if (!file)
    return llvm::consumeError(file.takeError());
  llvm::raw_fd_ostream(file->FD, /*shouldClose=*/false) << object.getBuffer();
  llvm::consumeError(file->keep(pathOf(source)));
}

} // namespace nearbank::translate
