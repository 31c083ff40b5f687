// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/SlotTable.h"

#include <algorithm>

namespace nearbank::dpu {
namespace {

class Pass {
public:
  Pass(std::vector<Instruction> &code, const DpuConfig &config) : code_(code), config_(config) {
    isTarget_.assign(code.size() + 1, false);
    for (const Instruction &in : code)
      if ((isBranch(in.op) || in.op == Op::Jal) && in.imm >= 0 && static_cast<size_t>(in.imm) < code.size())
        isTarget_[static_cast<size_t>(in.imm)] = true;
  }

  void run() {
    for (size_t i = 0; i < code_.size(); ++i) {
      wideAdd(i);
      wideMultiply(i);
      scaledIndex(i);
    }
    for (size_t i = 0; i < code_.size(); ++i)
      argumentMoves(i);
    for (size_t i = 0; i + 1 < code_.size(); ++i)
      if (!isTarget_[i + 1])
        pair(code_[i], code_[i + 1]);
  }

private:
  // Last index, at most `reach` further, of the straight line that begins at `first`.
  size_t lineEnd(size_t first, size_t reach) const {
    size_t i = first;
    while (i < first + reach && i + 1 < code_.size() && !isTarget_[i + 1] && !isBranch(code_[i].op) &&
           code_[i].op != Op::Jal && code_[i].op != Op::Jalr)
      ++i;
    return i;
  }

  // A shifted index that only additions read, until it is overwritten: each of them is an lsl_add.
  void scaledIndex(size_t i) {
    Instruction &shift = code_[i];
    if (shift.op != Op::Slli)
      return;
    for (size_t k = i + 1, end = lineEnd(i, 12); k <= end; ++k) {
      const Instruction &in = code_[k];
      if (reads(in, shift.rd) && (in.op != Op::Add || in.rs1 == in.rs2))
        return;
      if (written(in) == shift.rd) {
        if (in.op == Op::Add && reads(in, shift.rd))
          shift.slots = 0;
        return;
      }
    }
  }

  // 64-bit add: low add, carry by sltu, high add, add of the carry = add and addc. Subtraction: sltu, sub, sub, sub.
  void wideAdd(size_t i) {
    const Instruction &carry = code_[i];
    if (carry.op != Op::Sltu)
      return;
    size_t from = i < 4 ? 0 : i - 4, low = code_.size();
    for (size_t k = i; k-- > from && !isTarget_[k + 1];) {
      const Instruction &in = code_[k];
      if (in.op == Op::Add && in.rd == carry.rs1 &&
          (in.rs1 == carry.rs2 || in.rs2 == carry.rs2 || in.rd == in.rs1 || in.rd == in.rs2))
        low = k;
    }
    size_t end = lineEnd(i, 8);
    if (low == code_.size())
      for (size_t k = i; k <= end; ++k)
        if (code_[k].op == Op::Sub && code_[k].rs1 == carry.rs1 && code_[k].rs2 == carry.rs2)
          low = k;
    if (low == code_.size())
      return;
    for (size_t k = i + 1; k <= end; ++k) {
      Instruction &in = code_[k];
      if ((in.op != Op::Add && in.op != Op::Sub) || !reads(in, carry.rd))
        continue;
      code_[i].slots = 0;
      // With a constant as the other operand the carry's add is the high add, else it is part of it.
      in.slots = isHighOf(i, k, carry.rd) ? 0 : 1;
      wideLoads(low);
      wideStore(std::max(low, k), code_[low].rd, in.rd);
      return;
    }
  }
  // Whether what the carry is added to at `consumer` is itself the sum or difference of the high halves.
  bool isHighOf(size_t first, size_t consumer, uint8_t carryRegister) const {
    const Instruction &use = code_[consumer];
    uint8_t high = use.rs1 == carryRegister ? use.rs2 : use.rs1;
    for (size_t k = consumer; k-- > (first < 4 ? 0 : first - 4);)
      if ((code_[k].op == Op::Add || code_[k].op == Op::Sub) && code_[k].rd == high && code_[k].slots)
        return true;
    return false;
  }
  // Loads of both halves just before a 64-bit add are one ld.
  void wideLoads(size_t low) {
    for (size_t k = low < 5 ? 0 : low - 5; k + 1 < low + 1; ++k)
      loadPair(k);
  }
  bool isPair(const Instruction &a, const Instruction &b) const {
    return a.rs1 == b.rs1 && (b.imm - a.imm == 4 || a.imm - b.imm == 4) && (std::min(a.imm, b.imm) & 7) == 0;
  }
  void loadPair(size_t k) {
    Instruction &a = code_[k], &b = code_[k + 1];
    if (a.op == Op::Lw && b.op == Op::Lw && a.rd != a.rs1 && !isTarget_[k + 1] && a.slots == 1 && b.slots == 1 &&
        isPair(a, b))
      b.slots = 0;
  }

  // Stores of both halves of a result into one double word are one sd.
  void wideStore(size_t from, uint8_t low, uint8_t high) {
    const Instruction *first = nullptr;
    for (size_t k = from + 1, end = lineEnd(from, 6); k <= end; ++k) {
      Instruction &in = code_[k];
      if (in.op == Op::Sw && (in.rs2 == low || in.rs2 == high)) {
        if (!first) {
          first = &in;
          continue;
        }
        if (first->rs2 != in.rs2 && isPair(*first, in))
          in.slots = 0;
        return;
      }
      if (written(in) == low || written(in) == high)
        return;
    }
  }

  // 64-bit product: mulhu and the three mul of its low half and cross terms = one call of the library's __muldi3.
  void wideMultiply(size_t i) {
    Instruction &high = code_[i];
    if (high.op != Op::Mulhu && high.op != Op::Mulh && high.op != Op::Mulhsu)
      return;
    high.slots = static_cast<uint8_t>(config_.wideMultiplySlots);
    size_t from = i < 6 ? 0 : i - 6;
    unsigned absorbed = 0;
    auto absorb = [&](size_t k) {
      if (absorbed < 3 && code_[k].op == Op::Mul && code_[k].slots) {
        code_[k].slots = 0;
        ++absorbed;
      }
    };
    for (size_t k = i; k-- > from && !isTarget_[k + 1];)
      absorb(k);
    for (size_t k = i + 1, end = lineEnd(i, 8); k <= end; ++k)
      absorb(k);
  }

  // __mulsi3 takes its operands in r0 and r1 and overwrites them: one that was not computed just before is moved there.
  void argumentMoves(size_t i) {
    Instruction &in = code_[i];
    if (in.op != Op::Mul || in.slots == 0)
      return;
    auto isMoved = [&](uint8_t reg) {
      for (size_t k = i; k-- > (i < 4 ? 0 : i - 4) && !isTarget_[k + 1];) {
        if (isBranch(code_[k].op) || code_[k].op == Op::Jal || code_[k].op == Op::Jalr)
          break;
        if (written(code_[k]) == reg)
          return false;
      }
      return true;
    };
    in.slots = static_cast<uint8_t>(in.slots + isMoved(in.rs1) + (in.rs1 == in.rs2 || isMoved(in.rs2)));
  }

  void pair(Instruction &a, Instruction &b) {
    if (a.slots != 1 || b.slots != 1)
      return;
    bool feeds = a.rd != DiscardRegister && b.rs1 == a.rd;
    // Immediates of 32 bits and addresses of 24 bits are part of the instruction.
    if (a.op == Op::Li && feeds &&
        ((b.op == Op::Addi && b.rd == a.rd) || isLoad(b.op) || isStore(b.op) || b.op == Op::Jalr)) {
      a.slots = 0;
      return;
    }
    bool isConstant = a.op == Op::Li || (a.op == Op::Addi && a.rs1 == 0);
    if (isConstant && isBranch(b.op) && reads(b, a.rd)) {
      a.slots = 0; // Compare with an immediate and jump.
      return;
    }
    if (a.op == Op::Slli && b.op == Op::Sub && b.rd == a.rd && b.rs2 == a.rd && b.rs1 != a.rd) {
      a.slots = 0; // lsl_sub.
      return;
    }
    if (a.op == Op::Slli && (b.op == Op::Srli || b.op == Op::Srai) && b.rd == a.rd && feeds && a.imm == b.imm &&
        (a.imm == 16 || a.imm == 24)) {
      a.slots = 0; // extsb, extsh, extuh.
      return;
    }
    if (isBranch(b.op) && isAlu(a.op) && a.rd != DiscardRegister) {
      bool againstZero = (b.rs1 == a.rd && b.rs2 == 0) || (b.rs2 == a.rd && b.rs1 == 0);
      if (againstZero && b.op != Op::Bltu && b.op != Op::Bgeu)
        b.slots = 0; // Every arithmetic instruction can jump on its result.
      return;
    }
    if (a.op == Op::TryAcquire && isBranch(b.op) && reads(b, a.rd)) {
      b.slots = 0;
      return;
    }
    bool onStack = a.rs1 == 2 && b.rs1 == 2;
    if (a.op == Op::Sw && b.op == Op::Sw && onStack && isPair(a, b))
      b.slots = 0; // Register pairs are saved with sd.
    if (a.op == Op::Lw && b.op == Op::Lw && onStack && isPair(a, b))
      b.slots = 0;
  }

  std::vector<Instruction> &code_;
  const DpuConfig &config_;
  std::vector<bool> isTarget_;
};

// lw lw sw sw of one aligned double word is ld, sd.
void wideCopies(std::vector<Instruction> &code) {
  for (size_t k = 0; k + 3 < code.size(); ++k) {
    Instruction &a = code[k], &b = code[k + 1], &c = code[k + 2], &d = code[k + 3];
    if (a.op != Op::Lw || b.op != Op::Lw || c.op != Op::Sw || d.op != Op::Sw || a.slots != 1 || d.slots != 1)
      continue;
    auto together = [](const Instruction &x, const Instruction &y) {
      return x.rs1 == y.rs1 && (y.imm - x.imm == 4 || x.imm - y.imm == 4) && (std::min(x.imm, y.imm) & 7) == 0;
    };
    bool same = (c.rs2 == a.rd && d.rs2 == b.rd) || (c.rs2 == b.rd && d.rs2 == a.rd);
    if (together(a, b) && together(c, d) && same && a.rd != a.rs1)
      b.slots = d.slots = 0;
  }
}

} // namespace

void assignSlots(std::vector<Instruction> &code, const DpuConfig &config) {
  Pass(code, config).run();
  wideCopies(code);
}

} // namespace nearbank::dpu
