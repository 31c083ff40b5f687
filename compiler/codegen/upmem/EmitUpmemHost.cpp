// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/upmem/EmitUpmemHost.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace nearbank::codegen {
namespace {

constexpr const char *head = R"(#define _GNU_SOURCE
#include <dpu.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

)";

constexpr const char *files = R"(static double seconds(void) {
  struct timeval now;
  gettimeofday(&now, NULL);
  return now.tv_sec + now.tv_usec * 1e-6;
}

static void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes);
  if (!memory) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    exit(1);
  }
  return memory;
}

// Bytes of FOLDER/operandN.bin, where there is such a file.
static int read_operand(const char *folder, int number, void *to, size_t bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/operand%d.bin", folder, number);
  FILE *file = fopen(path, "rb");
  if (!file)
    return 0;
  size_t read = fread(to, 1, bytes, file);
  fclose(file);
  if (read != bytes) {
    fprintf(stderr, "%s: %zu bytes, not %zu\n", path, read, bytes);
    exit(1);
  }
  return 1;
}

static void write_result(const char *folder, int number, const void *from, size_t bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/result%d.bin", folder, number);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(from, 1, bytes, file) != bytes || fclose(file)) {
    perror(path);
    exit(1);
  }
}

static uint64_t hash_of(const void *from, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; i++)
    hash = (hash ^ ((const uint8_t *)from)[i]) * 0x100000001b3;
  return hash;
}

// Numbers that look random: the i-th of operand `number`.
static uint32_t number_at(int number, size_t i) {
  uint32_t x = (uint32_t)i * 2654435761u + (uint32_t)number * 40503u + 1;
  x ^= x >> 16, x *= 0x85ebca6b, x ^= x >> 13, x *= 0xc2b2ae35;
  return x ^ x >> 16;
}

)";

/// Elements of host memory from an operand's first to its last.
int64_t spanOf(const DpuKernel::Operand &operand) {
  int64_t last = 0;
  for (const DpuKernel::Dimension &dimension : operand.dimensions)
    last += (dimension.size - 1) * dimension.stride;
  return last + 1;
}

struct Argument {
  std::string type;
  int64_t elements = 0;
  bool isWritten = false;
};

/// The nest's operands, each once: several accesses may have one in common.
std::map<uint32_t, Argument> argumentsOf(const DpuKernel &kernel) {
  std::map<uint32_t, Argument> arguments;
  for (const DpuKernel::Operand &operand : kernel.operands) {
    Argument &argument = arguments[operand.argument];
    argument.type = operand.type;
    argument.elements = std::max(argument.elements, spanOf(operand));
    argument.isWritten |= operand.isWritten;
  }
  return arguments;
}

std::string partText(const DpuKernel &kernel) {
  size_t splits = std::max<size_t>(1, kernel.splits.size());
  std::string text =
      fmt::format(R"(// What dpu.c declares: where a DPU's part of the split loops begins, and how much of them it has.
typedef struct {{
  uint32_t first[{0}], count[{0}], items, depth;
}} arguments_t;

static arguments_t part_of(uint32_t dpu) {{
  arguments_t part = {{{{0}}, {{0}}, 0, 0}};
)",
                  splits);
  for (size_t i = kernel.splits.size(); i-- > 0;) {
    const DpuKernel::Split &split = kernel.splits[i];
    text += fmt::format("  part.first[{0}] = dpu % {1} * {2};\n  part.count[{0}] = {3} - part.first[{0}] < {2} ? {3} - "
                        "part.first[{0}] : {2};\n  dpu /= {1};\n",
                        i, split.parts(), split.chunk, split.extent);
  }
  return text + (kernel.splits.empty() ? "  (void)dpu;\n" : "") + "  return part;\n}\n\n";
}

/// A function that copies a DPU's part of an operand to its form in MRAM, or back.
std::string copyText(const DpuKernel &kernel, const DpuKernel::Operand &operand, bool isBack) {
  std::string text = fmt::format("static void {}_{}(const arguments_t *part, {}{} *host, {}{} *packed) {{\n",
                                 isBack ? "unpack" : "pack", operand.name, isBack ? "" : "const ", operand.type,
                                 isBack ? "const " : "", operand.type);
  std::string indent = "  ", host, packed, close;
  bool usesPart = false;
  for (size_t i = 0; i < operand.dimensions.size(); ++i) {
    const DpuKernel::Dimension &dimension = operand.dimensions[i];
    std::string begin = fmt::format("{}", dimension.offset), length = fmt::format("{}", dimension.length);
    for (size_t split = 0; split < kernel.splits.size(); ++split) {
      int64_t step = dimension.steps[split];
      if (step == 0)
        continue;
      usesPart = true;
      std::string times = step == 1 ? "" : fmt::format("{} * ", step);
      begin += fmt::format(" + {}part->first[{}]", times, split);
      length += fmt::format(" - {}({} - part->count[{}])", times, kernel.splits[split].chunk, split);
    }
    text += fmt::format("{0}const size_t begin{1} = {2}, end{1} = begin{1} + {3} < {4} ? begin{1} + {3} : {4};\n",
                        indent, i, begin, length, dimension.size);
    text += fmt::format("{0}for (size_t i{1} = begin{1}; i{1} < end{1}; i{1}++)", indent, i);
    bool isLast = i + 1 == operand.dimensions.size();
    text += isLast ? "\n" : " {\n";
    if (!isLast)
      close = indent + "}\n" + close;
    host += fmt::format("{}i{} * {}", host.empty() ? "" : " + ", i, dimension.stride);
    packed += fmt::format("{0}(i{1} - begin{1}) * {2}", packed.empty() ? "" : " + ", i, dimension.packedStride);
    indent += "  ";
  }
  if (host.empty())
    host = packed = "0";
  std::string from = isBack ? "packed" : "host", to = isBack ? "host" : "packed";
  text += fmt::format("{}{}[{}] = {}[{}];\n", indent, to, isBack ? host : packed, from, isBack ? packed : host);
  return text + close + (usesPart ? "" : "  (void)part;\n") + "}\n\n";
}

std::string fillText(uint32_t number, const Argument &argument, const NestKernel &nest) {
  auto bound = nest.facts.indexBounds.find(number);
  std::string value = fmt::format("number_at({}, i)", number);
  if (bound != nest.facts.indexBounds.end())
    value = fmt::format("{} % {}u", value, bound->second);
  else if (argument.type == "float" || argument.type == "double")
    value = fmt::format("({0})(int32_t){1} / 2147483648.0f", argument.type, value);
  else if (argument.type == "uint16_t") // bfloat16 between 1 and 2.
    value = fmt::format("0x3f80 | ({} & 0x7f)", value);
  else if (argument.type == "uint8_t")
    value = fmt::format("{} & 1", value);
  else
    value = fmt::format("({})({} % 199) - 99", argument.type, value);
  return fmt::format("  if (!folder || !read_operand(folder, {0}, operand{0}, {1} * sizeof *operand{0}))\n"
                     "    for (size_t i = 0; i < {1}; i++)\n      operand{0}[i] = {2};\n",
                     number, argument.elements, value);
}

std::string transferText(const DpuKernel &kernel, const DpuKernel::Operand &operand, bool isBack) {
  std::string text;
  std::string arguments = fmt::format("DPU_MRAM_HEAP_POINTER_NAME, {}, ", operand.mramOffset);
  if (!isBack && operand.isBroadcast())
    return fmt::format("  {{\n    arguments_t part = part_of(0);\n    pack_{0}(&part, operand{1}, (void *)packed);\n"
                       "    DPU_ASSERT(dpu_broadcast_to(set, {2}packed, {3}, DPU_XFER_DEFAULT));\n  }}\n",
                       operand.name, operand.argument, arguments, operand.bytes);
  std::string prepare = fmt::format("    DPU_ASSERT(dpu_prepare_xfer(dpu, packed + (size_t)i * {}));\n", operand.bytes);
  std::string push = fmt::format("  DPU_ASSERT(dpu_push_xfer(set, {}, {}{}, DPU_XFER_DEFAULT));\n",
                                 isBack ? "DPU_XFER_FROM_DPU" : "DPU_XFER_TO_DPU", arguments, operand.bytes);
  std::string copy = fmt::format("    arguments_t part = part_of(i);\n    {}_{}(&part, operand{}, (void *)(packed + "
                                 "(size_t)i * {}));\n",
                                 isBack ? "unpack" : "pack", operand.name, operand.argument, operand.bytes);
  std::string each = "  DPU_FOREACH(set, dpu, i) {\n";
  return isBack ? each + prepare + "  }\n" + push + each + copy + "  }\n" : each + copy + prepare + "  }\n" + push;
}

} // namespace

std::string emitUpmemHost(const DpuKernel &kernel, const NestKernel &nest) {
  std::map<uint32_t, Argument> arguments = argumentsOf(kernel);
  std::string text = "// SPDX-License-Identifier: Apache-2.0\n";
  text += fmt::format("// {}: shares operands out among {} DPUs, launches them, and collects what they computed.\n",
                      nest.name, kernel.dpus());
  text += "// Takes a folder with operandN.bin, and writes resultN.bin there; without one it makes numbers up.\n";
  text += head + partText(kernel) + files;
  uint64_t most = 8;
  for (const DpuKernel::Operand &operand : kernel.operands) {
    most = std::max(most, operand.isRead && operand.isBroadcast() && !operand.isWritten
                              ? operand.bytes
                              : operand.bytes * static_cast<uint64_t>(kernel.dpus()));
    if (operand.isRead)
      text += copyText(kernel, operand, false);
    if (operand.isWritten)
      text += copyText(kernel, operand, true);
  }
  text += "int main(int argc, char **argv) {\n  const char *folder = argc > 1 ? argv[1] : NULL;\n";
  text += "  struct dpu_set_t set, dpu;\n  uint32_t i;\n";
  text += fmt::format("  uint8_t *packed = allocate({});\n", most);
  for (const auto &[number, argument] : arguments)
    text += fmt::format("  {0} *operand{1} = allocate({2} * sizeof *operand{1});\n", argument.type, number,
                        argument.elements);
  for (const auto &[number, argument] : arguments)
    text += fillText(number, argument, nest);
  text += fmt::format("  DPU_ASSERT(dpu_alloc({}, NULL, &set));\n", kernel.dpus());
  text += "  DPU_ASSERT(dpu_load(set, \"bin/dpu_code\", NULL));\n";
  text += "  arguments_t parts[" + fmt::format("{}", kernel.dpus()) + "];\n";
  text += "  DPU_FOREACH(set, dpu, i) {\n    parts[i] = part_of(i);\n"
          "    DPU_ASSERT(dpu_prepare_xfer(dpu, &parts[i]));\n  }\n";
  text += "  DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, \"arguments\", 0, sizeof(arguments_t), "
          "DPU_XFER_DEFAULT));\n";
  text += "  double begin = seconds();\n";
  for (const DpuKernel::Operand &operand : kernel.operands)
    if (operand.isRead)
      text += transferText(kernel, operand, false);
  text += "  double loaded = seconds();\n  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));\n"
          "  double computed = seconds();\n";
  text += "  int32_t status[2];\n  DPU_FOREACH(set, dpu, i) {\n"
          "    DPU_ASSERT(dpu_copy_from(dpu, \"status\", 0, status, sizeof status));\n"
          "    if (status[0]) {\n      fprintf(stderr, \"index out of range: %d\\n\", status[1]);\n"
          "      return 1;\n    }\n  }\n";
  text += "  double read = seconds();\n";
  for (const DpuKernel::Operand &operand : kernel.operands)
    if (operand.isWritten)
      text += transferText(kernel, operand, true);
  text += "  double end = seconds();\n  DPU_ASSERT(dpu_free(set));\n";
  text += "  printf(\"to DPUs %.3f ms, kernel %.3f ms, from DPUs %.3f ms\\n\", (loaded - begin) * 1e3, (computed - "
          "loaded) * 1e3,\n         (end - read) * 1e3);\n";
  for (const auto &[number, argument] : arguments)
    if (argument.isWritten)
      text += fmt::format("  if (folder)\n    write_result(folder, {0}, operand{0}, {1} * sizeof *operand{0});\n"
                          "  printf(\"result{0} %016llx\\n\", (unsigned long long)hash_of(operand{0}, {1} * sizeof "
                          "*operand{0}));\n",
                          number, argument.elements);
  for (const auto &[number, argument] : arguments)
    text += fmt::format("  free(operand{});\n", number);
  return text + "  free(packed);\n  return 0;\n}\n";
}

std::string emitUpmemMakefile(const DpuKernel &kernel) {
  return fmt::format(R"(# SPDX-License-Identifier: Apache-2.0
NR_TASKLETS ?= {}
BUILDDIR ?= bin

all: $(BUILDDIR)/host_code $(BUILDDIR)/dpu_code

$(BUILDDIR)/host_code: host.c
	@mkdir -p $(BUILDDIR)
	$(CC) -std=c11 -O2 -Wall host.c -o $@ `dpu-pkg-config --cflags --libs dpu`

$(BUILDDIR)/dpu_code: dpu.c
	@mkdir -p $(BUILDDIR)
	dpu-upmem-dpurte-clang -O2 -DNR_TASKLETS=$(NR_TASKLETS) dpu.c -o $@

run: all
	./$(BUILDDIR)/host_code

clean:
	$(RM) -r $(BUILDDIR)

.PHONY: all run clean
)",
                     kernel.tasklets);
}

} // namespace nearbank::codegen
