// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/DpuCode.h"

#include "compiler/codegen/upmem/EmitUpmemHost.h"
#include "runtime/Error.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace nearbank::driver {

void writeUpmemProject(const std::string &folder, const DpuKernel &kernel, const NestKernel &nest) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  auto write = [&](const char *name, const std::string &text) {
    std::ofstream file(folder + "/" + name);
    file << text;
    if (!file.flush())
      throw DeviceError({"NB0601", "the output folder cannot be written", folder + "/" + name,
                         "a folder that can be written", error ? error.message() : "an error of the file system",
                         "name another folder"});
  };
  write("dpu.c", kernel.source);
  write("host.c", codegen::emitUpmemHost(kernel, nest));
  write("Makefile", codegen::emitUpmemMakefile(kernel));
}

static std::string contentOf(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

std::vector<std::byte> compileDpuProgram(const std::string &source, int64_t tasklets, const std::string &upmemHome) {
  std::string compiler = upmemHome + "/bin/dpu-upmem-dpurte-clang";
  if (!llvm::sys::fs::can_execute(compiler))
    throw DeviceError({"NB0809", "the UPMEM tools are not built", compiler, "the compiler driver for DPUs", "none",
                       "pip install nearbank, or build the target upmem_home"});
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("nearbank-dpu", folder))
    throw DeviceError({"NB0813", "a DPU program cannot be compiled", folder.str().str(), "a folder for temporary files",
                       error.message(), "set TMPDIR to a folder that can be written"});
  llvm::scope_exit cleanup([&] {
    std::error_code ignored;
    std::filesystem::remove_all(folder.str().str(), ignored);
  });
  std::string base = folder.str().str(), file = base + "/dpu.c", program = base + "/dpu", messages = base + "/log";
  std::ofstream(file) << source;
  std::string definition = fmt::format("-DNR_TASKLETS={}", tasklets), failure;
  llvm::StringRef arguments[] = {compiler, "-O2", "-g", definition, file, "-o", program};
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(messages),
                                                llvm::StringRef(messages)};
  int status = llvm::sys::ExecuteAndWait(compiler, arguments, std::nullopt, redirects, 0, 0, &failure);
  std::string text = contentOf(program);
  if (status != 0 || text.empty())
    throw DeviceError({"NB0813", "a DPU program cannot be compiled", compiler, "a program",
                       failure.empty() ? contentOf(messages) : failure,
                       "apt-get install clang-22 lld-22 gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf"});
  const auto *begin = reinterpret_cast<const std::byte *>(text.data());
  return {begin, begin + text.size()};
}

} // namespace nearbank::driver
