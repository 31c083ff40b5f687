// SPDX-License-Identifier: Apache-2.0
// What instructions do to the tasklets and memories of a DPU, without time.
#pragma once

#include "sim/dpu/Decode.h"
#include "sim/dpu/Dpu.h"

#include <bit>
#include <cstring>

namespace nearbank::dpu {

struct Tasklet {
  uint32_t registers[33] = {};
  uint32_t pc = 0; ///< Index of the next instruction.
  uint32_t pendingSlots = 0;
  bool isPrepared = false; ///< The length field of the next DMA has been computed.
  bool isAsleep = false;
  uint64_t sleepStart = 0;
};

/// What an instruction wants of the engine.
struct Effect {
  enum Kind : uint8_t { None, Dma, Stop, Resume, Halt, Counter, Retry, Faulted } kind = None;
  bool isRead = false, writesBack = false;
  uint32_t extraSlots = 0;
  uint32_t bytes = 0;
  uint32_t target = 0;
};

class Tasklets {
public:
  Tasklets(Dpu &dpu, const DpuConfig &config);

protected:
  void fail(uint32_t id, std::string what);
  void fail(uint32_t id, std::string what, uint32_t address);
  /// Runs a library routine to its end, outside time.
  bool callRoutine(uint32_t id, Tasklet &tasklet);
  void execute(uint32_t id, Tasklet &tasklet, const Instruction &in, Effect &effect);

  Dpu &dpu;
  const DpuConfig &config;
  const std::vector<Instruction> &code;
  std::byte *wram;
  Tasklet tasklets[24];
  unsigned numTasklets, numRunning;
  LaunchStats stats;

private:
  template <typename T> bool load(uint32_t id, uint32_t address, T &value, Effect &effect);
  template <typename T> void store(uint32_t id, uint32_t address, T value, Effect &effect);
  bool slowAccess(uint32_t id, uint32_t address, void *data, uint32_t size, bool isRead, Effect &effect);
  void mramAccess(uint32_t id, Tasklet &tasklet, const Instruction &in, Effect &effect);
  void dma(uint32_t id, Tasklet &tasklet, const Instruction &in, Effect &effect);
  void control(uint32_t id, Tasklet &tasklet, const Instruction &in, Effect &effect);
  static uint32_t multiplyBytes(unsigned variant, uint32_t a, uint32_t b);
};

template <typename T>
inline __attribute__((always_inline)) bool Tasklets::load(uint32_t id, uint32_t address, T &value, Effect &effect) {
  if (__builtin_expect(address <= WramBytes - sizeof(T) && address % sizeof(T) == 0, 1)) {
    std::memcpy(&value, wram + address, sizeof(T));
    return true;
  }
  return slowAccess(id, address, &value, sizeof(T), true, effect);
}

template <typename T>
inline __attribute__((always_inline)) void Tasklets::store(uint32_t id, uint32_t address, T value, Effect &effect) {
  if (__builtin_expect(address <= WramBytes - sizeof(T) && address % sizeof(T) == 0, 1))
    std::memcpy(wram + address, &value, sizeof(T));
  else
    slowAccess(id, address, &value, sizeof(T), false, effect);
}

inline __attribute__((always_inline)) void Tasklets::execute(uint32_t id, Tasklet &tasklet, const Instruction &in,
                                                             Effect &effect) {
  uint32_t *x = tasklet.registers;
  uint32_t a = x[in.rs1], b = x[in.rs2];
  auto immediate = static_cast<uint32_t>(in.imm);
  auto signedA = static_cast<int32_t>(a), signedB = static_cast<int32_t>(b);
  uint32_t next = tasklet.pc + 1;
  auto multiplySlots = [&] {
    uint32_t least = std::min(a, b);
    if (in.slots)
      effect.extraSlots =
          static_cast<uint32_t>(config.multiplyCallSlots) + static_cast<uint32_t>(std::bit_width(least | 1)) - 1u;
  };
  auto divideSlots = [&] { effect.extraSlots = static_cast<uint32_t>(config.divide32Slots) - 1; };
  switch (in.op) {
  case Op::Li:
    x[in.rd] = immediate;
    break;
  case Op::Jal:
    x[in.rd] = TextBase + 4 * next;
    next = immediate;
    break;
  case Op::Jalr: {
    uint32_t target = a + immediate;
    x[in.rd] = TextBase + 4 * next;
    next = (target - TextBase) >> 2;
    break;
  }
  case Op::Beq:
    next = a == b ? immediate : next;
    break;
  case Op::Bne:
    next = a != b ? immediate : next;
    break;
  case Op::Blt:
    next = signedA < signedB ? immediate : next;
    break;
  case Op::Bge:
    next = signedA >= signedB ? immediate : next;
    break;
  case Op::Bltu:
    next = a < b ? immediate : next;
    break;
  case Op::Bgeu:
    next = a >= b ? immediate : next;
    break;
  case Op::Lw: {
    uint32_t value = 0;
    load(id, a + immediate, value, effect);
    x[in.rd] = value;
    break;
  }
  case Op::Lb: {
    int8_t value = 0;
    load(id, a + immediate, value, effect);
    x[in.rd] = static_cast<uint32_t>(static_cast<int32_t>(value));
    break;
  }
  case Op::Lbu: {
    uint8_t value = 0;
    load(id, a + immediate, value, effect);
    x[in.rd] = value;
    break;
  }
  case Op::Lh: {
    int16_t value = 0;
    load(id, a + immediate, value, effect);
    x[in.rd] = static_cast<uint32_t>(static_cast<int32_t>(value));
    break;
  }
  case Op::Lhu: {
    uint16_t value = 0;
    load(id, a + immediate, value, effect);
    x[in.rd] = value;
    break;
  }
  case Op::Sw:
    store(id, a + immediate, b, effect);
    break;
  case Op::Sh:
    store(id, a + immediate, static_cast<uint16_t>(b), effect);
    break;
  case Op::Sb:
    store(id, a + immediate, static_cast<uint8_t>(b), effect);
    break;
  case Op::Addi:
    x[in.rd] = a + immediate;
    break;
  case Op::AddSp:
    x[2] = a + immediate;
    if (in.imm < 0 && x[2] < dpu.program()->stackStart[id]) {
      fail(id, "stack overflow", x[2]);
      effect.kind = Effect::Faulted;
    }
    break;
  case Op::Slti:
    x[in.rd] = signedA < in.imm;
    break;
  case Op::Sltiu:
    x[in.rd] = a < immediate;
    break;
  case Op::Xori:
    x[in.rd] = a ^ immediate;
    break;
  case Op::Ori:
    x[in.rd] = a | immediate;
    break;
  case Op::Andi:
    x[in.rd] = a & immediate;
    break;
  case Op::Slli:
    x[in.rd] = a << immediate;
    break;
  case Op::Srli:
    x[in.rd] = a >> immediate;
    break;
  case Op::Srai:
    x[in.rd] = static_cast<uint32_t>(signedA >> in.imm);
    break;
  case Op::Add:
    x[in.rd] = a + b;
    break;
  case Op::Sub:
    x[in.rd] = a - b;
    break;
  case Op::Sll:
    x[in.rd] = a << (b & 31);
    break;
  case Op::Slt:
    x[in.rd] = signedA < signedB;
    break;
  case Op::Sltu:
    x[in.rd] = a < b;
    break;
  case Op::Xor:
    x[in.rd] = a ^ b;
    break;
  case Op::Srl:
    x[in.rd] = a >> (b & 31);
    break;
  case Op::Sra:
    x[in.rd] = static_cast<uint32_t>(signedA >> (b & 31));
    break;
  case Op::Or:
    x[in.rd] = a | b;
    break;
  case Op::And:
    x[in.rd] = a & b;
    break;
  case Op::Mul:
    x[in.rd] = a * b;
    multiplySlots();
    break;
  case Op::Mulh:
    x[in.rd] = static_cast<uint32_t>((static_cast<int64_t>(signedA) * signedB) >> 32);
    break;
  case Op::Mulhsu:
    x[in.rd] = static_cast<uint32_t>((static_cast<int64_t>(signedA) * static_cast<int64_t>(b)) >> 32);
    break;
  case Op::Mulhu:
    x[in.rd] = static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
    break;
  case Op::Div:
    x[in.rd] = b == 0 ? ~0u : (a == 0x80000000u && b == ~0u) ? a : static_cast<uint32_t>(signedA / signedB);
    divideSlots();
    break;
  case Op::Divu:
    x[in.rd] = b == 0 ? ~0u : a / b;
    divideSlots();
    break;
  case Op::Rem:
    x[in.rd] = b == 0 ? a : (a == 0x80000000u && b == ~0u) ? 0 : static_cast<uint32_t>(signedA % signedB);
    divideSlots();
    break;
  case Op::Remu:
    x[in.rd] = b == 0 ? a : a % b;
    divideSlots();
    break;
  case Op::MulByte:
    x[in.rd] = multiplyBytes(immediate, a, b);
    break;
  case Op::Nop:
    break;
  case Op::MramLb:
  case Op::MramLh:
  case Op::MramLw:
  case Op::MramLbu:
  case Op::MramLhu:
  case Op::MramSb:
  case Op::MramSh:
  case Op::MramSw:
    mramAccess(id, tasklet, in, effect);
    break;
  case Op::DmaLoad:
  case Op::DmaStore:
    dma(id, tasklet, in, effect);
    break;
  default:
    control(id, tasklet, in, effect);
    break;
  }
  if (effect.kind != Effect::Retry)
    tasklet.pc = next;
}

} // namespace nearbank::dpu
