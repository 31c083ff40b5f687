// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/RiscvLink.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

namespace nearbank::codegen {
namespace {

/// Debian's picolibc for rv64imafdc/lp64d: double-precision functions, memory moves. Kernels without it link too.
constexpr const char *cLibraries[] = {
    "/usr/lib/picolibc/riscv64-unknown-elf/lib/release/rv64imafdc/lp64d/libm.a",
    "/usr/lib/picolibc/riscv64-unknown-elf/lib/release/rv64imafdc/lp64d/libc.a",
};

/// Runs the linker in this process while it can, else as a program.
bool runLinker(llvm::ArrayRef<const char *> arguments, std::string &output) {
  static std::mutex mutex;
  static bool canRunHere = true;
  std::lock_guard<std::mutex> lock(mutex);
  if (canRunHere) {
    llvm::raw_string_ostream stream(output);
    lld::Result result = lld::lldMain(arguments, llvm::nulls(), stream, {{lld::Gnu, &lld::elf::link}});
    canRunHere = result.canRunAgain;
    return result.retCode == 0;
  }
  llvm::ErrorOr<std::string> program = llvm::sys::findProgramByName("ld.lld-22");
  if (!program)
    program = llvm::sys::findProgramByName("ld.lld");
  if (!program) {
    output = "ld.lld is not installed (Debian package lld-22)";
    return false;
  }
  llvm::SmallVector<llvm::StringRef> words(arguments.begin(), arguments.end());
  return llvm::sys::ExecuteAndWait(*program, words, std::nullopt, {}, 60, 0, &output) == 0;
}

/// Writes bytes to a temporary file that is removed with `remover`.
bool writeTemporary(llvm::StringRef suffix, llvm::StringRef content, llvm::SmallString<128> &path,
                    llvm::FileRemover &remover) {
  int descriptor;
  if (llvm::sys::fs::createTemporaryFile("nearbank", suffix, descriptor, path))
    return false;
  remover.setFile(path);
  llvm::raw_fd_ostream(descriptor, /*shouldClose=*/true) << content;
  return true;
}

} // namespace

std::vector<std::byte> linkRiscv(llvm::StringRef object, const std::string &entry, std::string &failure) {
  llvm::SmallString<128> input, output;
  llvm::FileRemover removeInput, removeOutput;
  if (!writeTemporary("o", object, input, removeInput) || !writeTemporary("elf", "", output, removeOutput)) {
    failure = "no temporary file can be written for the linker";
    return {};
  }
  std::string entryFlag = "--entry=" + entry;
  std::string messages;
  llvm::SmallVector<const char *> arguments = {
      "ld.lld",     "-m",      "elf64lriscv",          "--static",        "--no-relax", "--gc-sections",
      "-z",         "norelro", "--image-base=0x10000", entryFlag.c_str(), "-o",         output.c_str(),
      input.c_str()};
  for (const char *library : cLibraries)
    if (llvm::sys::fs::exists(library))
      arguments.push_back(library);
  if (!runLinker(arguments, messages)) {
    failure = "the linker refused the kernel: " + messages;
    return {};
  }
  auto linked = llvm::MemoryBuffer::getFile(output);
  if (!linked) {
    failure = "the linker left no output";
    return {};
  }
  auto *bytes = reinterpret_cast<const std::byte *>((*linked)->getBufferStart());
  return {bytes, bytes + (*linked)->getBufferSize()};
}

} // namespace nearbank::codegen
