// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/Program.h"

#include "runtime/Error.h"
#include "sim/dpu/Decode.h"
#include "sim/dpu/Mram.h"
#include "sim/dpu/SlotTable.h"

#include <cstring>
#include <elf.h>
#include <fmt/format.h>

namespace nearbank::dpu {
namespace {

[[noreturn]] void fail(const std::string &path, std::string expected, std::string actual, std::string fix) {
  throw UserError(
      {"NB0801", "not a program for this DPU", path, std::move(expected), std::move(actual), std::move(fix)});
}

struct Routine {
  const char *name;
  double DpuConfig::*slots;
  SlotKind kind;
};
// What the compiler calls for types that the DPU has no instructions for.
constexpr Routine routines[] = {
    {"__addsf3", &DpuConfig::floatAddSlots, SlotKind::Float},
    {"__subsf3", &DpuConfig::floatSubSlots, SlotKind::Float},
    {"__mulsf3", &DpuConfig::floatMulSlots, SlotKind::Float},
    {"__divsf3", &DpuConfig::floatDivSlots, SlotKind::Float},
    {"__adddf3", &DpuConfig::doubleAddSlots, SlotKind::Float},
    {"__subdf3", &DpuConfig::doubleSubSlots, SlotKind::Float},
    {"__muldf3", &DpuConfig::doubleMulSlots, SlotKind::Float},
    {"__divdf3", &DpuConfig::doubleDivSlots, SlotKind::Float},
    {"__muldi3", &DpuConfig::wideMultiplySlots, SlotKind::Multiply},
    {"__divdi3", &DpuConfig::divide64Slots, SlotKind::Divide},
    {"__udivdi3", &DpuConfig::divide64Slots, SlotKind::Divide},
    {"__moddi3", &DpuConfig::divide64Slots, SlotKind::Divide},
    {"__umoddi3", &DpuConfig::divide64Slots, SlotKind::Divide},
};

class Loader {
public:
  Loader(std::span<const std::byte> file, const std::string &path, const DpuConfig &config)
      : file_(file), path_(path), config_(config), program_(std::make_shared<Program>()) {}

  std::shared_ptr<const Program> load() {
    program_->path = path_;
    readHeader();
    readSegments();
    readSymbols();
    if (program_->code.empty())
      fail(path_, "code at 0x80000000", "none", "link with dpu-upmem-dpurte-clang");
    checkSize();
    assignSlots(program_->code, config_);
    markRoutines();
    readStacks();
    return program_;
  }

private:
  template <typename T> T at(size_t offset) const {
    if (offset > file_.size() || file_.size() - offset < sizeof(T))
      fail(path_, "a complete ELF file", "a truncated one", "build it again");
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof(T));
    return value;
  }
  std::span<const std::byte> bytes(size_t offset, size_t size) const {
    if (offset > file_.size() || file_.size() - offset < size)
      fail(path_, "a complete ELF file", "a truncated one", "build it again");
    return file_.subspan(offset, size);
  }

  void readHeader() {
    if (file_.size() < sizeof(Elf32_Ehdr) || std::memcmp(file_.data(), ELFMAG, SELFMAG) != 0)
      fail(path_, "an ELF file", "something else", "build it with dpu-upmem-dpurte-clang");
    header_ = at<Elf32_Ehdr>(0);
    if (header_.e_ident[EI_CLASS] != ELFCLASS32 || header_.e_machine != EM_RISCV || header_.e_type != ET_EXEC)
      fail(path_, "a linked RV32IM executable of dpu-upmem-dpurte-clang",
           fmt::format("ELF class {}, machine {}, type {}", header_.e_ident[EI_CLASS], header_.e_machine,
                       header_.e_type),
           "build the DPU program with Nearbank's dpu-upmem-dpurte-clang; binaries of the SDK do not run here");
  }

  void readSegments() {
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
      auto segment = at<Elf32_Phdr>(header_.e_phoff + i * sizeof(Elf32_Phdr));
      if (segment.p_type != PT_LOAD || segment.p_filesz == 0)
        continue;
      auto content = bytes(segment.p_offset, std::min(segment.p_filesz, segment.p_memsz));
      uint32_t address = segment.p_vaddr;
      if (address == TextBase) {
        std::vector<uint32_t> words(content.size() / 4);
        std::memcpy(words.data(), content.data(), words.size() * 4);
        program_->code = decodeText(words);
      } else if (address < WramBytes && content.size() <= WramBytes - address) {
        program_->wram.push_back({address, {content.begin(), content.end()}});
      } else if (address >= MramBase && address - MramBase <= Mram::Bytes - content.size()) {
        program_->mram.push_back({address - MramBase, {content.begin(), content.end()}});
      } else {
        fail(path_, "segments in IRAM, WRAM and MRAM", fmt::format("{} bytes at {:#x}", content.size(), address),
             "link with dpu-upmem-dpurte-clang");
      }
    }
  }

  void readSymbols() {
    std::vector<Elf32_Shdr> sections;
    for (unsigned i = 0; i < header_.e_shnum; ++i)
      sections.push_back(at<Elf32_Shdr>(header_.e_shoff + i * sizeof(Elf32_Shdr)));
    if (header_.e_shstrndx >= sections.size())
      return;
    auto text = [&](const Elf32_Shdr &table, uint32_t offset) {
      auto all = bytes(table.sh_offset, table.sh_size);
      const char *begin = reinterpret_cast<const char *>(all.data()) + std::min<size_t>(offset, all.size());
      return std::string(begin, strnlen(begin, all.size() - std::min<size_t>(offset, all.size())));
    };
    for (const Elf32_Shdr &section : sections) {
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size())
        continue;
      for (size_t offset = 0; offset + sizeof(Elf32_Sym) <= section.sh_size; offset += sizeof(Elf32_Sym)) {
        auto entry = at<Elf32_Sym>(section.sh_offset + offset);
        unsigned type = ELF32_ST_TYPE(entry.st_info);
        std::string name = text(sections[section.sh_link], entry.st_name);
        if (name.empty() || type == STT_SECTION || type == STT_FILE || name[0] == '$')
          continue;
        Symbol symbol{entry.st_value, entry.st_size, false, type == STT_FUNC};
        symbol.isForHost = symbol.address >= MramBase && symbol.address < MramBase + Mram::Bytes;
        program_->symbols.insert_or_assign(name, symbol);
      }
    }
    // Variables of WRAM: those that are declared __host, which dpu.ld puts between two marks.
    const Symbol *begin = program_->find("__nb_host_start"), *last = program_->find("__nb_host_end");
    for (auto &[name, symbol] : program_->symbols)
      if (begin && last && symbol.size > 0 && symbol.address >= begin->address && symbol.address < last->address)
        symbol.isForHost = true;
    auto end = program_->symbols.find("__sys_used_mram_end");
    if (end != program_->symbols.end()) {
      end->second.isForHost = true;
      end->second.size = MramBase + Mram::Bytes - end->second.address;
    }
  }

  void checkSize() const {
    auto limit = static_cast<size_t>(config_.iramInstructions * config_.iramMargin);
    if (program_->code.size() > limit)
      fail(path_,
           fmt::format("at most {} RV32IM instructions: {:.0f} of IRAM times {} ({} dpu.iramMargin)", limit,
                       config_.iramInstructions, config_.iramMargin, config_.file),
           fmt::format("{}: IRAM overflow", program_->code.size()),
           "compile with -Os, or call fewer library functions");
  }

  void markRoutines() {
    for (const Routine &routine : routines) {
      const Symbol *symbol = program_->find(routine.name);
      if (!symbol || symbol->address < TextBase)
        continue;
      size_t index = (symbol->address - TextBase) / 4;
      if (index < program_->code.size()) {
        program_->code[index].routineSlots = static_cast<uint16_t>(config_.*routine.slots);
        program_->code[index].kind = routine.kind;
      }
    }
  }

  void readStacks() {
    const Symbol *tasklets = program_->find("__nb_tasklets"), *table = program_->find("__nb_stack_start");
    if (!tasklets || !table || program_->wram.empty())
      fail(path_, "the start-up code of dpu-upmem-dpurte-clang", "none", "link with dpu-upmem-dpurte-clang");
    program_->numTasklets = tasklets->address;
    if (program_->numTasklets > config_.tasklets)
      fail(path_, fmt::format("at most {:.0f} tasklets ({} dpu.tasklets)", config_.tasklets, config_.file),
           fmt::format("{}", program_->numTasklets), "build with a smaller NR_TASKLETS");
    const MemoryImage &data = program_->wram.front();
    if (table->address < data.address ||
        table->address + sizeof(program_->stackStart) > data.address + data.bytes.size())
      fail(path_, "the table of stacks in initialised WRAM", "none", "link with dpu-upmem-dpurte-clang");
    std::memcpy(program_->stackStart, data.bytes.data() + (table->address - data.address),
                sizeof(program_->stackStart));
  }

  std::span<const std::byte> file_;
  std::string path_;
  const DpuConfig &config_;
  Elf32_Ehdr header_{};
  std::shared_ptr<Program> program_;
};

} // namespace

std::shared_ptr<const Program> Program::load(std::span<const std::byte> file, const std::string &path,
                                             const DpuConfig &config) {
  return Loader(file, path, config).load();
}

const Symbol *Program::find(std::string_view name) const {
  auto found = symbols.find(name);
  return found == symbols.end() ? nullptr : &found->second;
}

std::string Program::describe(uint32_t address) const {
  const std::string *best = nullptr;
  uint32_t start = 0;
  for (const auto &[name, symbol] : symbols)
    if (symbol.isFunction && symbol.address <= address && (!best || symbol.address > start))
      best = &name, start = symbol.address;
  return best ? fmt::format("{}+{:#x}", *best, address - start) : fmt::format("{:#x}", address);
}

std::string Program::describeData(uint32_t address, bool isMram) const {
  uint32_t target = isMram ? MramBase + (address & (Mram::Bytes - 1)) : address;
  for (const auto &[name, symbol] : symbols)
    if (!symbol.isFunction && symbol.address <= target && target - symbol.address < symbol.size)
      return target == symbol.address ? fmt::format("{:#x} ({})", address, name)
                                      : fmt::format("{:#x} ({}+{:#x})", address, name, target - symbol.address);
  for (unsigned id = 0; id < numTasklets && !isMram; ++id)
    if (target >= stackStart[id] && target < stackStart[id + 1])
      return fmt::format("{:#x} (stack of tasklet {})", address, id);
  const Symbol *heap = find("__sys_heap_start");
  return !isMram && heap && target >= heap->address ? fmt::format("{:#x} (heap)", address)
                                                    : fmt::format("{:#x}", address);
}

} // namespace nearbank::dpu
