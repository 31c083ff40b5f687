// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/upmem/EmitUpmemC.h"

#include "compiler/codegen/upmem/CText.h"
#include "compiler/codegen/upmem/DpuMath.h"
#include "compiler/codegen/upmem/DpuNest.h"
#include "compiler/codegen/upmem/DpuSplit.h"
#include "compiler/loopnest/NestFacts.h"
#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"

#include <fmt/format.h>

using namespace mlir;

namespace nearbank::codegen {
namespace {

class Writer {
public:
  Writer(DpuNest &nest, const DpuKernel &layout, std::string &reason) : nest_(nest), layout_(layout), reason_(reason) {}

  std::string write() {
    std::string work = item();
    if (!reason_.empty())
      return "";
    std::string text = "// SPDX-License-Identifier: Apache-2.0\n";
    text += fmt::format("// {} on one of {} DPUs.\n", name(), layout_.dpus());
    bool isShared = nest_.pieces > 1;
    text += isShared ? "#include <barrier.h>\n" : "";
    text += "#include <defs.h>\n#include <mram.h>\n#include <stdint.h>\n\n";
    if (isShared)
      text += fmt::format("#if NR_TASKLETS != {0}\n#error sums are shared out among {0} tasklets\n#endif\n"
                          "BARRIER_INIT(sums_are_made, NR_TASKLETS);\n\n",
                          layout_.tasklets);
    text += arguments() + blocks() + fetchText() + statements_.functions();
    text += "int main(void) {\n";
    text += "  const unsigned tasklet = me();\n";
    text += "  const uint32_t heap = (uint32_t)DPU_MRAM_HEAP_POINTER;\n";
    text += scalars_ + counts() + work + "  return 0;\n}\n";
    return text;
  }

private:
  std::string name() const { return nest_.op->getParentOfType<func::FuncOp>().getName().str(); }

  bool isBlocked() const { return nest_.vectorLoop.has_value(); }
  std::string countOf(size_t loop) const {
    return nest_.loops[loop].split >= 0 ? fmt::format("n{}", loop) : fmt::format("{}u", nest_.loops[loop].extent);
  }
  const DpuKernel::Operand &placeOf(const DpuMemory &memory) const {
    return layout_.operands[static_cast<size_t>(&memory - nest_.memories.data())];
  }

  std::string arguments() const {
    size_t splits = std::max<size_t>(1, layout_.splits.size());
    return fmt::format(
        R"(// Where this DPU's part of the split loops begins, how much of them it has, and, to time a part of the work, the most
// pieces of work it does and the most iterations of the innermost sum (0: all).
typedef struct {{
  uint32_t first[{0}], count[{0}], items, depth;
}} arguments_t;
__host arguments_t arguments;
// Not 0 when an index was out of range, and that index.
__host int32_t status[2];

)",
        splits);
  }

  std::string counts() const {
    std::string text;
    for (size_t loop = 0; loop < nest_.loops.size(); ++loop)
      if (int split = nest_.loops[loop].split; split >= 0)
        text += fmt::format("  const uint32_t n{} = arguments.count[{}];\n", loop, split);
    if (nest_.innerLoop && nest_.innerBlock < nest_.loops[*nest_.innerLoop].extent)
      text +=
          fmt::format("  const uint32_t depth = arguments.depth ? arguments.depth : {};\n", countOf(*nest_.innerLoop));
    return text;
  }

  /// WRAM of each tasklet for each operand.
  std::string blocks() const {
    std::string text;
    for (const DpuMemory &memory : nest_.memories)
      text += fmt::format("__dma_aligned static uint8_t {}_block[NR_TASKLETS][{}];\n", memory.name,
                          memory.fetch == DpuFetch::Block ? nest_.blockBytes : 16);
    return text + "\n";
  }

  /// Place of an element of `memory` in MRAM. Loops that are not in `indices` stand at their first iteration.
  std::string placeText(const DpuMemory &memory, const std::vector<std::string> &indices) const {
    const DpuKernel::Operand &place = placeOf(memory);
    std::string sum;
    for (size_t loop = 0; loop < nest_.loops.size(); ++loop) {
      if (memory.packedSteps[loop] == 0 || indices[loop].empty())
        continue;
      std::string term = memory.packedSteps[loop] == 1
                             ? indices[loop]
                             : fmt::format("{} * {}", indices[loop], memory.packedSteps[loop]);
      sum += (sum.empty() ? "" : " + ") + term;
    }
    std::string text = fmt::format("heap + {}", place.mramOffset);
    if (!sum.empty())
      text += place.elementBytes == 1 ? " + " + sum : fmt::format(" + ({}) * {}", sum, place.elementBytes);
    return text;
  }

  /// A pointer to elements of `memory` from the place of `indices` on.
  std::string fetchBlock(const DpuMemory &memory, const std::vector<std::string> &indices, const std::string &count,
                         size_t loop, const std::string &indent) const {
    std::string type = memoryTypeOf(memory.element);
    uint32_t width = placeOf(memory).elementBytes;
    int64_t step = memory.packedSteps[loop];
    std::string bytes =
        step == 1 ? fmt::format("{} * {}", count, width) : fmt::format("(({} - 1) * {} + 1) * {}", count, step, width);
    return fmt::format("{0}const {1} *{2} = fetch({3}, {2}_block[tasklet], {4});\n", indent, type, memory.name,
                       placeText(memory, indices), bytes);
  }

  std::string fetchSingle(const DpuMemory &memory, const std::vector<std::string> &indices, const std::string &indent) {
    std::string type = memoryTypeOf(memory.element);
    std::string element = fmt::format("*(const {} *)fetch({}, {}_block[tasklet], {})", type, placeText(memory, indices),
                                      memory.name, placeOf(memory).elementBytes);
    return fmt::format("{}const {} {}_element = {};\n", indent, computeTypeOf(memory.element), memory.name,
                       statements_.loaded(memory.element, element));
  }

  bool usesAny(const DpuMemory &memory, llvm::function_ref<bool(size_t)> isAsked) const {
    for (size_t loop = 0; loop < nest_.loops.size(); ++loop)
      if (isAsked(loop) && memory.packedSteps[loop] != 0)
        return true;
    return false;
  }

  /// Scalars that the kernel computes before its loops.
  bool writeScalars() {
    func::FuncOp kernel = nest_.op->getParentOfType<func::FuncOp>();
    for (Operation &op : kernel.getBody().front()) {
      if (&op == nest_.op.getOperation() || isa<func::ReturnOp>(op))
        continue;
      if (!addOperation(op, "  ", scalars_))
        return false;
    }
    return true;
  }

  bool addOperation(Operation &op, const std::string &indent, std::string &text) {
    if (auto load = dyn_cast<memref::LoadOp>(op))
      return addTableLoad(load, indent, text);
    if (auto index = dyn_cast<linalg::IndexOp>(op)) {
      int loop = nest_.loopOf[index.getDim()];
      std::string value = "0";
      if (loop >= 0) {
        int split = nest_.loops[loop].split;
        value = split >= 0 ? fmt::format("(int32_t)(arguments.first[{}] + {})", split, current_[loop])
                           : fmt::format("(int32_t)({})", current_[loop]);
      }
      statements_.name(index.getResult(), value);
      return true;
    }
    if (auto assertion = dyn_cast<cf::AssertOp>(op)) {
      std::string holds = statements_.nameOf(assertion.getArg());
      auto compare = assertion.getArg().getDefiningOp<arith::CmpIOp>();
      std::string value = compare ? "(int32_t)" + statements_.nameOf(compare.getLhs()) : "0";
      text += fmt::format("{0}if (!{1}) {{\n{0}  status[1] = {2};\n{0}  status[0] = 1;\n{0}}}\n", indent, holds, value);
      return true;
    }
    return statements_.add(op, indent, text, reason_);
  }

  bool addTableLoad(memref::LoadOp load, const std::string &indent, std::string &text) {
    const DpuMemory *table = nullptr;
    for (const DpuMemory &memory : nest_.memories)
      if (memory.fetch == DpuFetch::Table && memory.memory == load.getMemRef())
        table = &memory;
    const DpuKernel::Operand &place = placeOf(*table);
    std::string position;
    for (auto [number, index] : llvm::enumerate(load.getIndices())) {
      int64_t size = load.getMemRefType().getDimSize(static_cast<unsigned>(number));
      std::string value = statements_.nameOf(index);
      std::string safe = fmt::format("{}_at{}_{}", table->name, number, numLoads_);
      // An index out of range is reported, and reads the first element.
      text += fmt::format("{}uint32_t {} = (uint32_t){};\n", indent, safe, value);
      if (!index.getDefiningOp<arith::ConstantOp>())
        text += fmt::format("{0}if ({1} >= {2}u) {{\n{0}  status[1] = (int32_t){1};\n{0}  status[0] = 1;\n{0}  {1} = "
                            "0;\n{0}}}\n",
                            indent, safe, size);
      int64_t stride = place.dimensions[number].packedStride;
      position += (position.empty() ? "" : " + ") + (stride == 1 ? safe : fmt::format("{} * {}", safe, stride));
    }
    std::string type = memoryTypeOf(table->element);
    std::string value = fmt::format("loaded{}", numLoads_++);
    std::string element =
        fmt::format("*(const {} *)fetch(heap + {} + ({}) * {}, {}_block[tasklet], {})", type, place.mramOffset,
                    position.empty() ? "0" : position, place.elementBytes, table->name, place.elementBytes);
    text += fmt::format("{}const {} {} = {};\n", indent, computeTypeOf(table->element), value,
                        statements_.loaded(table->element, element));
    statements_.name(load.getResult(), value);
    return true;
  }

  /// The body with its inputs named; returns what it yields.
  std::vector<std::string> body(const std::string &indent, std::string &text) {
    for (Operation &op : nest_.op.getBody()->without_terminator())
      if (!addOperation(op, indent, text))
        return {};
    std::vector<std::string> results;
    for (Value value : nest_.op.getBody()->getTerminator()->getOperands())
      results.push_back(statements_.nameOf(value));
    return results;
  }

  void nameScalarInputs() {
    for (OpOperand *operand : nest_.op.getDpsInputOperands())
      if (!isa<MemRefType>(operand->get().getType()))
        statements_.name(nest_.op.getMatchingBlockArgument(operand), statements_.nameOf(operand->get()));
  }

  const DpuMemory &output(size_t number) const { return nest_.memories[nest_.numInputs + number]; }

  /// The loop over pieces of work, which tasklets take in turn.
  std::string item() {
    if (!writeScalars())
      return "";
    nameScalarInputs();
    current_.assign(nest_.loops.size(), "");
    std::string total, decode = "    uint32_t rest = item;\n";
    for (size_t loop = nest_.loops.size(); loop-- > 0;) {
      if (!nest_.loops[loop].isParallel || loop == nest_.vectorLoop)
        continue;
      std::string count = countOf(loop);
      total += " * " + count;
      decode += fmt::format("    const uint32_t i{0} = rest % {1};\n    rest /= {1};\n", loop, count);
      current_[loop] = fmt::format("i{}", loop);
    }
    std::string text;
    if (isBlocked()) {
      size_t loop = *nest_.vectorLoop;
      // The blocks of one row are neighbours.
      text += fmt::format("  const uint32_t blocks = ({} + {}) / {};\n", countOf(loop), nest_.blockLength - 1,
                          nest_.blockLength);
      decode = fmt::format("    uint32_t rest = item / blocks;\n    const uint32_t begin = item % blocks * {0};\n"
                           "    const uint32_t length = {1} - begin < {0} ? {1} - begin : {0};\n",
                           nest_.blockLength, countOf(loop)) +
               decode.substr(decode.find('\n') + 1);
      text += "  uint32_t items = blocks" + total + ";\n";
      current_[loop] = "begin";
    } else {
      decode += "    const uint32_t length = 1;\n";
      text += fmt::format("  uint32_t items = 1{};\n", total);
    }
    if (decode.find("rest %") == std::string::npos)
      decode = isBlocked() ? decode.substr(decode.find('\n') + 1) : "    const uint32_t length = 1;\n";
    if (nest_.pieces > 1)
      return text + sharedSums(decode);
    text += "  if (arguments.items && arguments.items < items)\n    items = arguments.items;\n";
    text += "  for (uint32_t item = tasklet; item < items; item += NR_TASKLETS) {\n" + decode;
    text += nest_.innerLoop ? reduction() : parallel();
    return text + writeBack() + "  }\n";
  }

  /// Several tasklets make each sum; the first of them adds the others' parts to its own.
  std::string sharedSums(const std::string &decode) {
    std::string text = fmt::format("  const uint32_t item = tasklet / {0}, piece = tasklet % {0};\n", nest_.pieces);
    text += "  if (item < items) {\n" + decode + reduction() + "  }\n  barrier_wait(&sums_are_made);\n";
    text += "  if (item < items && piece == 0) {\n" + decode;
    for (size_t i = 0; i < nest_.numOutputs; ++i)
      text +=
          fmt::format("    {0} *{1} = ({0} *){1}_block[tasklet];\n", memoryTypeOf(output(i).element), output(i).name);
    text += fmt::format(
        "    for (uint32_t other = 1; other < {}; other++)\n      for (uint32_t j = 0; j < length; j++) {{\n",
        nest_.pieces);
    for (size_t i = 0; i < nest_.numOutputs; ++i) {
      const std::string &name = output(i).name;
      std::string part = fmt::format("(({} *){}_block[tasklet + other])[j]", memoryTypeOf(output(i).element), name);
      text += fmt::format("        {}[j] = {};\n", name, sumText(output(i).element, name + "[j]", part));
    }
    return text + "      }\n" + writeBack() + "  }\n";
  }

  /// Room for a block of results, filled with what memory holds where the nest reads that.
  std::string openOutputs() const {
    std::string text;
    for (size_t i = 0; i < nest_.numOutputs; ++i) {
      const DpuMemory &memory = output(i);
      std::string type = memoryTypeOf(memory.element);
      if (memory.isRead)
        text += fmt::format("    mram_read((__mram_ptr void *)({}), {}_block[tasklet], (length * {} + 7) & ~7u);\n",
                            placeText(memory, current_), memory.name, placeOf(memory).elementBytes);
      text += fmt::format("    {0} *{1} = ({0} *){1}_block[tasklet];\n", type, memory.name);
    }
    return text;
  }

  std::string writeBack() const {
    std::string text;
    for (size_t i = 0; i < nest_.numOutputs; ++i) {
      const DpuMemory &memory = output(i);
      text += fmt::format("    mram_write({}, (__mram_ptr void *)({}), (length * {} + 7) & ~7u);\n", memory.name,
                          placeText(memory, current_), placeOf(memory).elementBytes);
    }
    return text;
  }

  /// Inputs that can be fetched once the loops of the piece of work are known.
  std::string fetchEarly(const std::string &indent) {
    std::string text;
    for (size_t i = 0; i < nest_.numInputs; ++i) {
      const DpuMemory &memory = nest_.memories[i];
      bool isLate = usesAny(memory, [&](size_t loop) { return !nest_.loops[loop].isParallel; });
      bool movesAlong = isBlocked() && nest_.usesLoop(memory, *nest_.vectorLoop);
      if (isLate)
        continue;
      if (!movesAlong) {
        text += fetchSingle(memory, current_, indent);
        statements_.name(memory.bodyArgument, memory.name + "_element");
      } else if (memory.fetch == DpuFetch::Block) {
        text += fetchBlock(memory, current_, "length", *nest_.vectorLoop, indent);
      }
    }
    return text;
  }

  std::string elementOf(const DpuMemory &memory, const std::string &counter, size_t loop) {
    int64_t step = memory.packedSteps[loop];
    std::string element = step == 1 ? fmt::format("{}[{}]", memory.name, counter)
                                    : fmt::format("{}[{} * {}]", memory.name, counter, step);
    return element;
  }

  /// Names the element of an input that lies in a block.
  std::string takeElement(const DpuMemory &memory, const std::string &counter, size_t loop, const std::string &indent) {
    statements_.name(memory.bodyArgument, memory.name + "_element");
    return fmt::format("{}const {} {}_element = {};\n", indent, computeTypeOf(memory.element), memory.name,
                       statements_.loaded(memory.element, elementOf(memory, counter, loop)));
  }

  std::string initialText(size_t number, const std::string &position) {
    const DpuMemory &memory = output(number);
    auto initial = nest_.op->getAttrOfType<ArrayAttr>(loopnest::initAttr);
    if (initial && !isa<UnitAttr>(initial[number]))
      return constantText(initial[number]);
    if (memory.isRead)
      return statements_.loaded(memory.element, fmt::format("{}[{}]", memory.name, position));
    return "0";
  }

  std::string parallel() {
    std::string text = openOutputs() + fetchEarly("    ");
    text += "    for (uint32_t j = 0; j < length; j++) {\n";
    std::vector<std::string> outer = current_;
    if (isBlocked())
      current_[*nest_.vectorLoop] = "(begin + j)";
    for (size_t i = 0; i < nest_.numInputs; ++i) {
      const DpuMemory &memory = nest_.memories[i];
      if (!isBlocked() || !nest_.usesLoop(memory, *nest_.vectorLoop))
        continue;
      if (memory.fetch == DpuFetch::Block) {
        text += takeElement(memory, "j", *nest_.vectorLoop, "      ");
      } else {
        text += fetchSingle(memory, current_, "      ");
        statements_.name(memory.bodyArgument, memory.name + "_element");
      }
    }
    for (size_t i = 0; i < nest_.numOutputs; ++i) {
      const DpuMemory &memory = output(i);
      std::string start = initialText(i, "j");
      if (start != "0" || memory.isRead)
        text += fmt::format("      const {} {}_start = {};\n", computeTypeOf(memory.element), memory.name, start);
      statements_.name(memory.bodyArgument, memory.name + "_start");
    }
    std::vector<std::string> results = body("      ", text);
    for (size_t i = 0; i < results.size(); ++i)
      text += fmt::format("      {}[j] = {};\n", output(i).name, statements_.stored(output(i).element, results[i]));
    current_ = outer;
    return text + "    }\n";
  }

  std::string reduction() {
    size_t inner = *nest_.innerLoop;
    std::string text = openOutputs() + fetchEarly("    ");
    text += "    for (uint32_t j = 0; j < length; j++) {\n";
    std::vector<std::string> outer = current_;
    if (isBlocked())
      current_[*nest_.vectorLoop] = "(begin + j)";
    for (size_t i = 0; i < nest_.numOutputs; ++i) {
      const DpuMemory &memory = output(i);
      text += fmt::format("      {} {}_sum = {}{};\n", computeTypeOf(memory.element), memory.name,
                          nest_.pieces > 1 ? "piece ? 0 : " : "", initialText(i, "j"));
    }
    std::string indent = "      ", close;
    for (size_t loop = 0; loop < nest_.loops.size(); ++loop) {
      if (nest_.loops[loop].isParallel || loop == inner)
        continue;
      current_[loop] = fmt::format("r{}", loop);
      text += fmt::format("{0}for (uint32_t r{1} = 0; r{1} < {2}; r{1}++) {{\n", indent, loop, countOf(loop));
      close = indent + "}\n" + close;
      indent += "  ";
    }
    // What does not move with the innermost loop.
    auto isSettled = [&](const DpuMemory &memory) { return memory.packedSteps[inner] == 0; };
    for (size_t i = 0; i < nest_.numInputs; ++i) {
      const DpuMemory &memory = nest_.memories[i];
      if (!isSettled(memory))
        continue;
      bool isLate = usesAny(memory, [&](size_t loop) { return !nest_.loops[loop].isParallel; });
      bool movesAlong = isBlocked() && nest_.usesLoop(memory, *nest_.vectorLoop);
      if (!isLate && !movesAlong)
        continue;
      if (!isLate && memory.fetch == DpuFetch::Block) {
        text += takeElement(memory, "j", *nest_.vectorLoop, indent);
      } else {
        text += fetchSingle(memory, current_, indent);
        statements_.name(memory.bodyArgument, memory.name + "_element");
      }
    }
    std::string count = nest_.innerBlock < nest_.loops[inner].extent ? "depth" : countOf(inner);
    int64_t block = nest_.innerBlock;
    std::string begin = nest_.pieces > 1 ? fmt::format("piece * {}", block) : "0";
    text += fmt::format("{}for (uint32_t from = {}; from < {}; from += {}) {{\n", indent, begin, count,
                        block * nest_.pieces);
    text += fmt::format("{0}  const uint32_t part = {1} - from < {2} ? {1} - from : {2};\n", indent, count, block);
    current_[inner] = "from";
    std::string deep = indent + "  ", deeper = indent + "    ";
    for (size_t i = 0; i < nest_.numInputs; ++i)
      if (const DpuMemory &memory = nest_.memories[i]; !isSettled(memory) && memory.fetch == DpuFetch::Block)
        text += fetchBlock(memory, current_, "part", inner, deep);
    auto sumOf = [&](size_t i) { return output(i).name + (nest_.sumsByBlock[i] ? "_partial" : "_sum"); };
    for (size_t i = 0; i < nest_.numOutputs; ++i) {
      if (nest_.sumsByBlock[i])
        text += fmt::format("{}{} {} = 0;\n", deep, computeTypeOf(output(i).element), sumOf(i));
      statements_.name(output(i).bodyArgument, sumOf(i));
    }
    text += fmt::format("{}for (uint32_t k = 0; k < part; k++) {{\n", deep);
    current_[inner] = "(from + k)";
    for (size_t i = 0; i < nest_.numInputs; ++i) {
      const DpuMemory &memory = nest_.memories[i];
      if (isSettled(memory))
        continue;
      if (memory.fetch == DpuFetch::Block) {
        text += takeElement(memory, "k", inner, deeper);
      } else {
        text += fetchSingle(memory, current_, deeper);
        statements_.name(memory.bodyArgument, memory.name + "_element");
      }
    }
    std::vector<std::string> results = body(deeper, text);
    for (size_t i = 0; i < results.size(); ++i)
      text += fmt::format("{}{} = {};\n", deeper, sumOf(i), results[i]);
    text += deep + "}\n";
    for (size_t i = 0; i < nest_.numOutputs; ++i)
      if (nest_.sumsByBlock[i])
        text += fmt::format("{}{}_sum += {};\n", deep, output(i).name, sumOf(i));
    text += indent + "}\n" + close;
    for (size_t i = 0; i < results.size(); ++i)
      text += fmt::format("      {}[j] = {};\n", output(i).name,
                          statements_.stored(output(i).element, output(i).name + "_sum"));
    current_ = outer;
    return text + "    }\n";
  }

  DpuNest &nest_;
  const DpuKernel &layout_;
  std::string &reason_;
  CStatements statements_;
  std::vector<std::string> current_; ///< Iteration that each loop is in, from the first of this DPU; empty when none.
  std::string scalars_;
  int numLoads_ = 0;
};

} // namespace

std::unique_ptr<DpuKernel> emitUpmemC(func::FuncOp kernel, const dpu::DpuConfig &config, std::string &reason) {
  if (!loopnest::nestOf(kernel)) {
    reason = "it is no perfect loop nest";
    return nullptr;
  }
  OwningOpRef<ModuleOp> module = expandMath(kernel);
  if (!module) {
    reason = "its mathematical functions cannot be expanded";
    return nullptr;
  }
  auto expanded = *module->getOps<func::FuncOp>().begin();
  auto layout = std::make_unique<DpuKernel>();
  std::optional<DpuNest> nest = shareOut(expanded, config, *layout, reason);
  if (!nest)
    return nullptr;
  layout->source = Writer(*nest, *layout, reason).write();
  return reason.empty() ? std::move(layout) : nullptr;
}

} // namespace nearbank::codegen
