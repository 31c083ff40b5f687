// SPDX-License-Identifier: Apache-2.0
// Messages of traps.
#include "sim/system/TrapReport.h"

#include "runtime/Error.h"

#include <fmt/format.h>

namespace nearbank::sim {

void throwTrap(const Trap &trap, size_t core, const GuestMemory &memory) {
  ErrorReport report;
  report.where = fmt::format("core {}, pc {:#x}: {}", core, trap.pc, describe(trap.instruction));
  report.fix = "report this with the command that led here; --policy=cpu-only runs without near-memory cores";
  std::string access = fmt::format("{} B at {:#x}", trap.bytes, trap.address);
  switch (trap.kind) {
  case TrapKind::AccessOutside: {
    report.code = "NB0501";
    report.title = "near-memory kernel accessed memory outside its buffers";
    const MemoryRange *near = memory.nearest(trap.address);
    report.expected =
        near == nullptr ? "a mapped address"
                        : fmt::format("a mapped address; the nearest range is [{:#x}, {:#x})", near->begin, near->end);
    report.actual = std::move(access);
    break;
  }
  case TrapKind::WriteToReadOnly:
    report.code = "NB0502";
    report.title = "near-memory kernel wrote to a read-only buffer";
    report.expected = "a writable address";
    report.actual = std::move(access);
    break;
  case TrapKind::IllegalInstruction:
    report.code = "NB0503";
    report.title = "near-memory kernel executed an illegal instruction";
    report.expected = "an instruction of RV64GC with Zfhmin and Zfbfmin, CSRs fflags, frm and fcsr, a rounding mode of "
                      "RNE, RTZ, RDN or RUP";
    report.actual = describe(trap.instruction);
    break;
  case TrapKind::JumpOutside:
    report.code = "NB0504";
    report.title = "near-memory kernel jumped outside its code";
    report.expected = "an even address of an executable segment";
    report.actual = fmt::format("{:#x}", trap.address);
    break;
  case TrapKind::EnvironmentCall:
    report.code = "NB0507";
    report.title = "near-memory kernel called its environment";
    report.expected = "no ecall and no ebreak: there is no operating system";
    report.actual = describe(trap.instruction);
    break;
  case TrapKind::MisalignedAtomic:
    report.code = "NB0508";
    report.title = "near-memory kernel used a misaligned atomic";
    report.expected = fmt::format("an address aligned to {} B", trap.bytes);
    report.actual = fmt::format("{:#x}", trap.address);
    break;
  }
  throw DeviceError(std::move(report));
}

} // namespace nearbank::sim
