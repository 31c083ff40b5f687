// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/CrashGuard.h"

#include "llvm/Support/CrashRecoveryContext.h"

#include <exception>
#include <mutex>

namespace nearbank::codegen {

bool survivesCrash(const std::function<void()> &work) {
  static std::recursive_mutex mutex;
  std::lock_guard<std::recursive_mutex> lock(mutex);
  std::exception_ptr exception;
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  // Exceptions must not unwind through LLVM's frames.
  bool isFinished = context.RunSafely([&] {
    try {
      work();
    } catch (...) {
      exception = std::current_exception();
    }
  });
  llvm::CrashRecoveryContext::Disable();
  if (exception)
    std::rethrow_exception(exception);
  return isFinished;
}

} // namespace nearbank::codegen
