// SPDX-License-Identifier: Apache-2.0
// What a translator makes of a DPU program for the engine `fast`. compiler/translate implements it; sim needs no LLVM.
#pragma once

#include "sim/dpu/Program.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace nearbank::dpu {

/// Why native code came back.
enum class NativeStop : uint32_t {
  GoOn,   ///< The next instruction lies in other code.
  Engine, ///< The next instruction is not for native code: DMA, synchronisation, fault and the like.
  Budget  ///< Enough slots were spent; asked at loops' ends.
};

/// What native code gets and gives besides the registers.
struct NativeCall {
  std::byte *wram = nullptr;
  uint64_t limit = 0; ///< Stops at the end of a loop's pass when counts[0] is not below.
  /// Sums of what was executed, three fields each: slots, arithmetic slots, memory slots; control slots, multiply
  /// slots, instructions. Slots that are in no field of their own are those of divisions.
  uint64_t counts[2] = {};
  const uint8_t *watched = nullptr; ///< By double word of WRAM: not 0 where stores are for the engine.
  uint32_t stackStart = 0;          ///< Lowest address of the tasklet's stack.
  uint32_t pc = 0;                  ///< Index of the instruction to begin with; afterwards of the next one.
};
/// Widths of the fields of NativeCall::counts: the upper one takes the rest.
inline constexpr unsigned CountBits = 21;

using NativeFunction = NativeStop (*)(uint32_t *registers, NativeCall *call);

class NativeProgram {
public:
  explicit NativeProgram(size_t numInstructions) : entries_(numInstructions) {}
  virtual ~NativeProgram() = default;
  NativeProgram(const NativeProgram &) = delete;
  NativeProgram &operator=(const NativeProgram &) = delete;

  /// Code that may begin at instruction `pc`, made when it is first asked for; null when none begins there.
  NativeFunction at(uint32_t pc) {
    NativeFunction found = entries_[pc].load(std::memory_order_acquire);
    return __builtin_expect(found == notYet(), 0) ? compile(pc) : found;
  }
  /// Whether it has loops that wait for another tasklet's store.
  bool hasSpinLoops = false;
  /// By instruction: a load in such a loop, which is for the engine.
  std::vector<bool> isSpinLoad;

protected:
  static NativeFunction notYet() { return reinterpret_cast<NativeFunction>(uintptr_t{1}); }
  virtual NativeFunction compile(uint32_t pc) = 0;
  std::vector<std::atomic<NativeFunction>> entries_;
};

class Translator {
public:
  virtual ~Translator() = default;
  /// Programs of the same code share what is made of them. Thread-safe.
  virtual std::shared_ptr<NativeProgram> translate(const Program &program, const DpuConfig &config) = 0;
};

/// The symbol of the translator's shared library: a function without arguments that returns a Translator *.
inline constexpr const char *TranslatorSymbol = "nearbankTranslator";

} // namespace nearbank::dpu
