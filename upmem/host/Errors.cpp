// SPDX-License-Identifier: Apache-2.0

#include "upmem/host/System.h"

#include <cstring>
#include <fmt/format.h>

namespace {
constexpr const char *texts[] = {
    "success",
    "internal error",
    "system error",
    "driver error",
    "allocation error",
    "invalid dpu set",
    "invalid thread id",
    "invalid notify id",
    "invalid wram access",
    "invalid iram access",
    "invalid mram access",
    "invalid symbol access",
    "mram is busy",
    "transfer already set",
    "no program loaded",
    "different dpu programs in the set",
    "corrupted memory",
    "dpu is disabled",
    "dpu is already running",
    "invalid memory transfer",
    "invalid launch policy",
    "dpu is in fault",
    "invalid elf file",
    "no such elf file",
    "no such elf section",
    "timeout",
    "invalid profile",
    "unknown symbol",
    "log: format error",
    "log: context missing",
    "log: buffer too small",
    "invalid buffer size",
    "sync from a non-blocking callback",
    "scatter-gather: too many blocks",
    "scatter-gather: lengths do not match",
    "scatter-gather is not activated",
    "scatter-gather needs an mram symbol",
    "error in an asynchronous job",
};
} // namespace

NB_API char *dpu_error_to_string(dpu_error_t status) {
  size_t index = static_cast<size_t>(status);
  return strdup(index < sizeof texts / sizeof *texts ? texts[index] : "unknown error");
}

namespace nearbank::upmem {

void explain(const ErrorReport &report) { fmt::print(stderr, "{}\n", report.text()); }

} // namespace nearbank::upmem
