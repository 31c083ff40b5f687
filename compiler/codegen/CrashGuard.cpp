// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/CrashGuard.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"

#include <exception>
#include <mutex>

namespace nearbank::codegen {

/// Leaves the guarded work with the reason of a fatal error, where LLVM would end the process.
static void leaveGuardedWork(void *reason, const char *message, bool) {
  *static_cast<std::string *>(reason) = message;
  if (llvm::CrashRecoveryContext *context = llvm::CrashRecoveryContext::GetCurrent())
    context->HandleExit(1);
}

bool survivesCrash(const std::function<void()> &work, std::string &reason) {
  static std::recursive_mutex mutex;
  std::lock_guard<std::recursive_mutex> lock(mutex);
  std::exception_ptr exception;
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  llvm::ScopedFatalErrorHandler handler(leaveGuardedWork, &reason);
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
