// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/Tasklets.h"

#include <fmt/format.h>

namespace nearbank::dpu {

Tasklets::Tasklets(Dpu &dpu, const DpuConfig &config)
    : dpu(dpu), config(config), code(dpu.program()->code), wram(dpu.wram()), numTasklets(dpu.program()->numTasklets),
      numRunning(numTasklets) {
  dpu.fault.reset();
  for (unsigned id = 0; id < numTasklets; ++id) {
    tasklets[id].registers[2] = dpu.program()->stackStart[id + 1];
    tasklets[id].registers[IdRegister] = id;
  }
}

void Tasklets::fail(uint32_t id, std::string what, uint32_t address) {
  fail(id, std::move(what));
  dpu.fault->address = address;
  dpu.fault->hasAddress = true;
}

void Tasklets::fail(uint32_t id, std::string what) {
  Fault fault;
  fault.what = std::move(what);
  fault.tasklet = id;
  fault.pc = TextBase + 4 * tasklets[id].pc;
  // Without frame pointers: every word of the stack that is the address after a call.
  auto isReturn = [&](uint32_t word) {
    size_t index = (word - TextBase) / 4;
    if (word <= TextBase || word % 4 || index > code.size())
      return false;
    const Instruction &call = code[index - 1];
    return (call.op == Op::Jal || call.op == Op::Jalr) && call.rd == 1;
  };
  if (isReturn(tasklets[id].registers[1]))
    fault.backtrace.push_back(tasklets[id].registers[1]);
  uint32_t top = dpu.program()->stackStart[id + 1];
  for (uint32_t at = (tasklets[id].registers[2] + 3) & ~3u; at + 4 <= top && fault.backtrace.size() < 16; at += 4) {
    uint32_t word;
    std::memcpy(&word, wram + at, 4);
    if (isReturn(word) && (fault.backtrace.empty() || fault.backtrace.back() != word))
      fault.backtrace.push_back(word);
  }
  dpu.fault = std::move(fault);
}

bool Tasklets::callRoutine(uint32_t id, Tasklet &tasklet) {
  uint32_t back = (tasklet.registers[1] - TextBase) >> 2;
  while (tasklet.pc != back) {
    if (tasklet.pc >= code.size()) {
      fail(id, "jump out of the program", tasklet.pc * 4 + TextBase);
      return false;
    }
    Effect effect;
    execute(id, tasklet, code[tasklet.pc], effect);
    ++stats.instructions;
    if (effect.kind == Effect::Faulted)
      return false;
  }
  return true;
}

// WRAM decodes the low bits of addresses only: the first 64 KB of MRAM's addresses fall on WRAM.
bool Tasklets::slowAccess(uint32_t id, uint32_t address, void *data, uint32_t size, bool isRead, Effect &effect) {
  uint32_t low = address - MramBase;
  if (address >= MramBase && low <= WramBytes - size && address % size == 0) {
    std::memcpy(isRead ? data : wram + low, isRead ? wram + low : data, size);
    return true;
  }
  fail(id, address % size ? "unaligned access to WRAM" : "access out of WRAM", address);
  effect.kind = Effect::Faulted;
  return false;
}

void Tasklets::mramAccess(uint32_t id, Tasklet &tasklet, const Instruction &in, Effect &effect) {
  uint32_t *x = tasklet.registers;
  uint32_t address = x[in.rs1] + static_cast<uint32_t>(in.imm), offset = address & (Mram::Bytes - 1);
  bool isByte = in.op == Op::MramLb || in.op == Op::MramLbu || in.op == Op::MramSb;
  uint32_t size = isByte ? 1 : in.op == Op::MramLw || in.op == Op::MramSw ? 4 : 2;
  if (address % size) {
    fail(id, "unaligned access to MRAM", address);
    effect.kind = Effect::Faulted;
    return;
  }
  effect.kind = Effect::Dma;
  effect.isRead = true;
  effect.writesBack = in.op >= Op::MramSb;
  effect.bytes = 8;
  ++stats.dmaReads, stats.dmaReadBytes += 8;
  if (effect.writesBack) {
    dpu.mram.write(offset, &x[in.rs2], size);
    ++stats.dmaWrites, stats.dmaWriteBytes += 8;
    return;
  }
  uint32_t value = 0;
  dpu.mram.read(offset, &value, size);
  if (in.op == Op::MramLb)
    value = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(value)));
  if (in.op == Op::MramLh)
    value = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(value)));
  x[in.rd] = value;
}

// Both addresses lose their low bits and the length field wraps, as on the DPU: 0 bytes are 2048.
void Tasklets::dma(uint32_t id, Tasklet &tasklet, const Instruction &in, Effect &effect) {
  uint32_t local = tasklet.registers[in.rs1] & ~7u, remote = tasklet.registers[in.rs2] & (Mram::Bytes - 8);
  uint32_t bytes = (((tasklet.registers[in.imm] >> 3) - 1) & 255) * 8 + 8;
  if (local > WramBytes || bytes > WramBytes - local) {
    fail(id, fmt::format("DMA of {} bytes out of WRAM", bytes), tasklet.registers[in.rs1]);
    effect.kind = Effect::Faulted;
    return;
  }
  if (bytes > Mram::Bytes - remote) {
    fail(id, fmt::format("DMA of {} bytes beyond the end of MRAM", bytes), tasklet.registers[in.rs2]);
    effect.kind = Effect::Faulted;
    return;
  }
  effect.kind = Effect::Dma;
  effect.isRead = in.op == Op::DmaLoad;
  effect.bytes = bytes;
  // The slots before the transfer have been charged already.
  effect.extraSlots = 1u - in.slots;
  if (effect.isRead) {
    dpu.mram.read(remote, wram + local, bytes);
    ++stats.dmaReads, stats.dmaReadBytes += bytes;
  } else {
    dpu.mram.write(remote, wram + local, bytes);
    ++stats.dmaWrites, stats.dmaWriteBytes += bytes;
  }
}

void Tasklets::control(uint32_t id, Tasklet &tasklet, const Instruction &in, Effect &effect) {
  uint32_t *x = tasklet.registers;
  uint32_t a = x[in.rs1];
  switch (in.op) {
  case Op::Acquire:
  case Op::TryAcquire: {
    uint8_t &bit = dpu.lockBits[a & 255];
    if (in.op == Op::TryAcquire)
      x[in.rd] = bit;
    else if (bit)
      effect.kind = Effect::Retry;
    bit = 1;
    break;
  }
  case Op::Release:
    dpu.lockBits[a & 255] = 0;
    break;
  case Op::Stop:
    effect.kind = Effect::Stop;
    break;
  case Op::Resume:
    if (a >= numTasklets) {
      fail(id, fmt::format("resume of tasklet {}, which does not exist", a));
      effect.kind = Effect::Faulted;
    } else {
      effect.kind = tasklets[a].isAsleep ? Effect::Resume : Effect::Retry;
      effect.target = a;
    }
    break;
  case Op::Halt:
    effect.kind = Effect::Halt;
    break;
  case Op::Fault: {
    uint32_t text = x[in.rs2];
    std::string why = text ? formatGuest(dpu, text, 0) : "";
    fail(id, a == 2 ? "assertion failed: " + why : a == 3 ? why : why.empty() ? "halt" : why);
    effect.kind = Effect::Faulted;
    break;
  }
  case Op::CounterConfig:
    effect.kind = Effect::Counter;
    effect.target = in.rd;
    effect.bytes = a & 3;
    effect.writesBack = x[in.rs2] != 0;
    break;
  case Op::CounterGet:
    effect.kind = Effect::Counter;
    effect.target = in.rd;
    break;
  case Op::ClockHz:
    x[in.rd] = static_cast<uint32_t>(config.clockMHz * 1e6);
    break;
  case Op::Print: {
    std::string text = formatGuest(dpu, a, x[in.rs2]);
    x[in.rd] = static_cast<uint32_t>(text.size());
    dpu.log += text;
    break;
  }
  default:
    fail(id, "illegal instruction");
    effect.kind = Effect::Faulted;
  }
}

uint32_t Tasklets::multiplyBytes(unsigned variant, uint32_t a, uint32_t b) {
  auto part = [](uint32_t value, unsigned which) {
    uint32_t byte = (which & 1) ? (value >> 8) & 255 : value & 255;
    return which & 2 ? static_cast<int32_t>(byte) : static_cast<int32_t>(static_cast<int8_t>(byte));
  };
  return static_cast<uint32_t>(part(a, variant >> 2) * part(b, variant & 3));
}

} // namespace nearbank::dpu
