// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/Dpu.h"

#include "sim/dpu/Decode.h"

#include <cstdio>
#include <cstring>
#include <fmt/format.h>

namespace nearbank::dpu {

void LaunchStats::add(const LaunchStats &other) {
  cycles += other.cycles, slots += other.slots, instructions += other.instructions;
  for (unsigned kind = 0; kind < NumSlotKinds; ++kind)
    slotsOf[kind] += other.slotsOf[kind];
  dmaReads += other.dmaReads, dmaWrites += other.dmaWrites;
  dmaReadBytes += other.dmaReadBytes, dmaWriteBytes += other.dmaWriteBytes;
  dmaStallCycles += other.dmaStallCycles, dmaBusyCycles += other.dmaBusyCycles, portCycles += other.portCycles;
  taskletCycles += other.taskletCycles, sleepCycles += other.sleepCycles;
  tasklets = other.tasklets;
}

std::byte *Dpu::wram() {
  if (!wram_)
    wram_ = std::make_unique<std::byte[]>(WramBytes);
  return wram_.get();
}

void Dpu::load(std::shared_ptr<const Program> program) {
  program_ = std::move(program);
  std::memset(wram(), 0, WramBytes);
  for (const MemoryImage &image : program_->wram)
    std::memcpy(wram() + image.address, image.bytes.data(), image.bytes.size());
  for (const MemoryImage &image : program_->mram)
    mram.write(image.address, image.bytes.data(), image.bytes.size());
  lockBits.fill(0);
  counterMode = 0;
  fault.reset();
  log.clear();
}

std::vector<std::string> sourceLines(const Program &program, const std::vector<uint32_t> &addresses) {
  std::vector<std::string> lines(addresses.size());
  if (program.path.empty() || addresses.empty())
    return lines;
  std::string quoted;
  for (char c : program.path)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  std::string command = fmt::format("riscv64-unknown-elf-addr2line -a -i -e '{}'", quoted);
  for (uint32_t address : addresses)
    command += fmt::format(" {:#x}", address);
  command += " 2>/dev/null";
  FILE *pipe = popen(command.c_str(), "r");
  if (!pipe)
    return lines;
  char text[4096];
  size_t number = 0; // Of the address that lines belong to, from 1.
  while (fgets(text, sizeof text, pipe)) {
    std::string line = text;
    line.erase(line.find_last_not_of(" \n") + 1);
    if (line.rfind("0x", 0) == 0)
      ++number;
    else if (line.find("/upmem/device/include/") != std::string::npos)
      continue; // What the headers inline is the caller's doing.
    else if (number > 0 && number <= lines.size() && line.rfind("??", 0) != 0)
      lines[number - 1] += (lines[number - 1].empty() ? "" : ", inlined at ") + line;
  }
  pclose(pipe);
  return lines;
}

std::string describeFault(const Dpu &dpu, const Fault &fault) {
  std::vector<uint32_t> addresses = {fault.pc};
  for (uint32_t caller : fault.backtrace)
    addresses.push_back(caller - 4);
  std::vector<std::string> lines = sourceLines(*dpu.program(), addresses);
  std::string text = fault.what;
  if (fault.hasAddress)
    text += fmt::format(" (address {:#x})", fault.address);
  text += fmt::format(" in tasklet {}", fault.tasklet);
  for (size_t i = 0; i < addresses.size(); ++i)
    text += fmt::format("\n  #{} {}{}{}", i, dpu.program()->describe(addresses[i]), lines[i].empty() ? "" : " at ",
                        lines[i]);
  return text;
}

} // namespace nearbank::dpu
