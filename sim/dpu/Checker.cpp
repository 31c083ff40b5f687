// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/Checker.h"

#include "sim/dpu/Decode.h"
#include "sim/dpu/Dpu.h"
#include "sim/dpu/Tasklets.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace nearbank::dpu {
namespace {

uint32_t addressOf(const Program &program, const char *name, uint32_t otherwise) {
  const Symbol *symbol = program.find(name);
  return symbol ? symbol->address : otherwise;
}

bool isInRange(Op op, Op first, Op last) { return op >= first && op <= last; }

/// Bytes of a load or store, counted from the first of its group: loads with sign, without, and stores.
uint32_t sizeOf(Op op, Op first) {
  constexpr uint32_t sizes[] = {1, 2, 4, 1, 2, 1, 2, 4};
  return sizes[static_cast<int>(op) - static_cast<int>(first)];
}

} // namespace

Checker::Checker(Dpu &dpu) : dpu_(dpu) {
  const Program &program = *dpu.program();
  heapStart_ = addressOf(program, "__sys_heap_start", WramBytes);
  heapPointer_ = addressOf(program, "__nb_heap_pointer", 0);
  heapLock_ = addressOf(program, "__atomic_bit___nb_heap", ~0u);
  for (const char *name : {"barrier_wait", "sem_take", "sem_give"})
    if (const Symbol *symbol = program.find(name))
      waiters_.emplace_back(symbol->address, symbol->address + symbol->size);
}

bool Checker::isInRuntime(uint32_t pc) const {
  return std::any_of(waiters_.begin(), waiters_.end(),
                     [&](const auto &range) { return pc >= range.first && pc < range.second; });
}

void Checker::add(Finding finding) {
  if (std::none_of(findings_.begin(), findings_.end(), [&](const Finding &old) { return old.isLike(finding); }))
    findings_.push_back(std::move(finding));
}

void Checker::access(uint32_t id, uint32_t pc, uint32_t address, uint32_t size, bool isMram, bool isWrite) {
  if (!isMram && heapPointer_ && address == heapPointer_)
    return; // Guarded by a lock that orders nothing else.
  for (uint32_t at = address, end = address + size; at < end;) {
    uint32_t part = std::min(end - at, 8 - at % 8);
    auto bytes = static_cast<uint8_t>(((1u << part) - 1) << (at % 8));
    Access now{clocks_.now(id), pc, static_cast<uint8_t>(id), bytes, isWrite};
    Access race = (isMram ? mram_ : wram_).note(at / 8, now, clocks_);
    if (race.bytes)
      add({Finding::Race, pc, id, at, isMram, isWrite, "", race.pc, race.tasklet, race.isWrite});
    at += part;
  }
}

void Checker::wramAccess(uint32_t id, uint32_t pc, uint32_t address, uint32_t size, bool isWrite) {
  if (address >= WramBytes || size > WramBytes - address)
    return; // The engine makes a fault of it.
  if (address < 8)
    add({Finding::OutOfBounds, pc, id, address, false, isWrite, "the null pointer", 0, 0, false});
  uint32_t heapEnd = WramBytes;
  if (heapPointer_)
    std::memcpy(&heapEnd, dpu_.wram() + heapPointer_, 4);
  if (address + size > heapEnd && address + size > heapStart_)
    add({Finding::OutOfBounds, pc, id, address, false, isWrite,
         fmt::format("{} bytes beyond the end of what mem_alloc gave out ({:#x})", address + size - heapEnd, heapEnd),
         0, 0, false});
  access(id, pc, address, size, false, isWrite);
}

void Checker::dma(uint32_t id, const Tasklet &tasklet, const Instruction &in, uint32_t pc) {
  uint32_t wram = tasklet.registers[in.rs1], mram = tasklet.registers[in.rs2];
  uint32_t bytes = tasklet.registers[static_cast<uint32_t>(in.imm)];
  bool toWram = in.op == Op::DmaLoad;
  if (bytes == 0 || bytes > 2048)
    add({Finding::EmptyDma, pc, id, mram, true, !toWram, fmt::format("{} bytes", bytes), 0, 0, false});
  else if (wram % 8 || mram % 8 || bytes % 8)
    add({Finding::UnalignedDma, pc, id, mram, true, !toWram,
         fmt::format("WRAM address {:#x}, MRAM address {:#x}, {} bytes", wram, mram, bytes), 0, 0, false});
  if (mram >= Mram::Bytes && (mram < MramBase || mram - MramBase >= Mram::Bytes))
    add({Finding::OutOfBounds, pc, id, mram, true, !toWram, "MRAM ends at 0x4000000", 0, 0, false});
  // What hardware makes of it (Tasklets::dma).
  bytes = (((bytes >> 3) - 1) & 255) * 8 + 8;
  wramAccess(id, pc, wram & ~7u, bytes, toWram);
  access(id, pc, mram & (Mram::Bytes - 8), bytes, true, !toWram);
}

void Checker::take(uint32_t id, const Instruction &in, uint32_t lock, uint32_t pc) {
  bool isAddress = lock >= AtomicBase && lock < AtomicBase + 256;
  if (!isAddress && !isInRuntime(pc))
    add({Finding::Mutex, pc, id, lock, false, false, fmt::format("lock {:#x}", lock), 0, 0, false});
  unsigned bit = lock & 255;
  if (lock == heapLock_)
    return;
  if (in.op == Op::Release)
    clocks_.release(id, bit);
  else if (!dpu_.lockBits[bit])
    clocks_.acquire(id, bit);
}

void Checker::observe(uint32_t id, const Tasklet &tasklet, const Instruction &in, bool isTargetAsleep) {
  uint32_t pc = TextBase + 4 * tasklet.pc, first = tasklet.registers[in.rs1];
  uint32_t address = first + static_cast<uint32_t>(in.imm);
  if (isInRange(in.op, Op::Lb, Op::Sw)) {
    bool isWrite = in.op >= Op::Sb;
    if (address >= MramBase && address - MramBase < Mram::Bytes) {
      add({Finding::MramAsWram, pc, id, address, true, isWrite, "", 0, 0, false});
      return; // Whatever else is wrong there comes of this.
    }
    wramAccess(id, pc, address, sizeOf(in.op, Op::Lb), isWrite);
  } else if (isInRange(in.op, Op::MramLb, Op::MramSw)) {
    access(id, pc, address & (Mram::Bytes - 1), sizeOf(in.op, Op::MramLb), true, in.op >= Op::MramSb);
  } else if (in.op == Op::DmaLoad || in.op == Op::DmaStore) {
    dma(id, tasklet, in, pc);
  } else if (isInRange(in.op, Op::Acquire, Op::Release)) {
    take(id, in, first, pc);
  } else if (in.op == Op::Resume && isTargetAsleep) {
    clocks_.wake(id, first);
  }
}

ErrorReport describeFinding(const Program &program, const Finding &finding, const std::string &dpu) {
  std::vector<std::string> lines = sourceLines(program, {finding.pc, finding.otherPc});
  auto place = [&](uint32_t pc, const std::string &line, unsigned tasklet, bool isWrite) {
    return fmt::format("{} at {}, tasklet {}", isWrite ? "write" : "read", line.empty() ? program.describe(pc) : line,
                       tasklet);
  };
  std::string where = dpu + ", " + place(finding.pc, lines[0], finding.tasklet, finding.isWrite);
  std::string memory =
      fmt::format("{} {}", finding.isMram ? "MRAM" : "WRAM", program.describeData(finding.address, finding.isMram));
  switch (finding.kind) {
  case Finding::UnalignedDma:
    return {"NB0820",       "DMA that is not aligned",
            where,          "addresses and length that are multiples of 8",
            finding.detail, "mram_read_unaligned and mram_write_unaligned, or pad the data"};
  case Finding::EmptyDma:
    return {"NB0821",       "DMA of a length that hardware does not know",     where, "8 to 2048 bytes; 0 moves 2048",
            finding.detail, "test the length before the transfer, or split it"};
  case Finding::MramAsWram:
    return {"NB0822",
            "an MRAM address is dereferenced as one of WRAM",
            where,
            "a pointer declared __mram_ptr, or mram_read",
            memory + fmt::format(": WRAM {:#x} is accessed instead", finding.address & 0xffff),
            "keep __mram_ptr in the pointer's type"};
  case Finding::Mutex:
    return {"NB0823",
            "a mutex that was never initialised",
            fmt::format("{}, {}, tasklet {}", dpu, lines[0].empty() ? program.describe(finding.pc) : lines[0],
                        finding.tasklet),
            "a mutex of MUTEX_INIT or a bit of ATOMIC_BIT_INIT",
            finding.detail,
            "MUTEX_INIT(name) at file scope"};
  case Finding::Race:
    return {"NB0824",
            "race between tasklets",
            where,
            "a barrier, mutex or handshake between both accesses",
            memory + ", after " + place(finding.otherPc, lines[1], finding.otherTasklet, finding.otherIsWrite),
            "barrier_wait between them, or a mutex around both"};
  case Finding::OutOfBounds:
    return {"NB0825", "access out of bounds", where, "memory of the program", memory + ": " + finding.detail, ""};
  }
  return {};
}

} // namespace nearbank::dpu
