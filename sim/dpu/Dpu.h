// SPDX-License-Identifier: Apache-2.0
// One DPU: its memories, the program in it, and what the last launch left.
#pragma once

#include "sim/dpu/Mram.h"
#include "sim/dpu/Program.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace nearbank::dpu {

/// Why a DPU stopped in fault state.
struct Fault {
  std::string what; ///< "stack overflow", "memory access out of bounds", ...
  unsigned tasklet = 0;
  uint32_t pc = 0;
  uint32_t address = 0; ///< The address that was used, where there is one.
  bool hasAddress = false;
  std::vector<uint32_t> backtrace; ///< Addresses of calls, innermost first.
};

/// What one launch of one DPU cost. Cycles are those of the DPU.
struct LaunchStats {
  uint64_t cycles = 0;
  uint64_t slots = 0;        ///< Issue slots spent; slots / cycles is the IPC.
  uint64_t instructions = 0; ///< RV32IM instructions executed.
  std::array<uint64_t, NumSlotKinds> slotsOf{};
  uint64_t dmaReads = 0, dmaWrites = 0, dmaReadBytes = 0, dmaWriteBytes = 0;
  uint64_t dmaStallCycles = 0; ///< Summed over tasklets: cycles a tasklet slept for DMA.
  uint64_t dmaBusyCycles = 0;  ///< Cycles the DMA engine worked.
  uint64_t portCycles = 0;     ///< Issue cycles lost to DMA at the WRAM port.
  uint64_t taskletCycles = 0;  ///< Summed over tasklets: cycles from start to end.
  uint64_t sleepCycles = 0;    ///< Summed over tasklets: cycles asleep at barriers and the like.
  unsigned tasklets = 0;

  void add(const LaunchStats &other);
};

class Dpu {
public:
  Dpu() = default;

  /// Puts a program in: WRAM, MRAM variables with values, and the lock bits as after a reset.
  void load(std::shared_ptr<const Program> program);
  const std::shared_ptr<const Program> &program() const { return program_; }
  std::byte *wram();
  bool hasWram() const { return static_cast<bool>(wram_); }

  Mram mram;
  std::array<uint8_t, 256> lockBits{};
  uint32_t counterMode = 0;
  std::string log;
  std::optional<Fault> fault;
  LaunchStats last;  ///< Of the last launch.
  LaunchStats total; ///< Of all launches since it was allocated.

private:
  std::shared_ptr<const Program> program_;
  std::unique_ptr<std::byte[]> wram_;
};

class Checker;

struct RunLimits {
  uint64_t timeoutCycles = 0; ///< 0: none.
  Checker *checker = nullptr; ///< Sees every instruction, when there is one.
};

/// Formats like printf. `arguments` is where the C variable arguments lie in WRAM.
std::string formatGuest(Dpu &dpu, uint32_t format, uint32_t arguments);

/// "file.c:12" for addresses in the code of a program that lies in a file; empty where there is no line.
std::vector<std::string> sourceLines(const Program &program, const std::vector<uint32_t> &addresses);
/// The fault with source lines and backtrace.
std::string describeFault(const Dpu &dpu, const Fault &fault);

} // namespace nearbank::dpu
