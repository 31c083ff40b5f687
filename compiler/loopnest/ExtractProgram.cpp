// SPDX-License-Identifier: Apache-2.0
#include "compiler/loopnest/ExtractProgram.h"
#include "compiler/loopnest/BufferRoot.h"
#include "compiler/loopnest/NestFacts.h"
#include "compiler/loopnest/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace nearbank::loopnest {
namespace {

/// Source line, module path and PyTorch operation found in a location.
struct Origin {
  std::string source, modulePath, torchOp;
};

void findOrigin(Location location, Origin &origin) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    auto [path, op] = name.getName().getValue().split('|');
    if (origin.torchOp.empty()) {
      origin.modulePath = path.str();
      origin.torchOp = op.str();
    }
    findOrigin(name.getChildLoc(), origin);
  } else if (auto file = dyn_cast<FileLineColLoc>(location)) {
    if (origin.source.empty())
      origin.source = file.getFilename().str() + ":" + std::to_string(file.getLine());
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    findOrigin(call.getCaller(), origin);
    findOrigin(call.getCallee(), origin);
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      findOrigin(part, origin);
  }
}

class Extractor {
public:
  Extractor(ModuleOp module, const ExtractOptions &options) : module_(module), options_(options) {}

  FailureOr<Program> run() {
    auto main = module_.lookupSymbol<func::FuncOp>("main");
    program_.name = options_.name;
    for (BlockArgument argument : main.getArguments())
      if (failed(addArgument(argument)))
        return failure();
    for (Operation &op : main.getBody().front())
      if (failed(visit(op)))
        return failure();
    markHoisted();
    return std::move(program_);
  }

private:
  FailureOr<uint32_t> addBuffer(Value value, BufferKind kind, const std::string &name) {
    auto type = cast<MemRefType>(value.getType());
    FailureOr<ElementType> element = elementTypeOf(type.getElementType());
    if (failed(element))
      return mlir::emitError(value.getLoc(), "buffer of unsupported element type ") << type.getElementType();
    BufferInfo buffer;
    buffer.name = name;
    buffer.kind = kind;
    buffer.elementType = *element;
    buffer.bytes = std::max<int64_t>(1, type.getNumElements()) * bytesOf(*element);
    program_.buffers.push_back(std::move(buffer));
    uint32_t index = program_.buffers.size() - 1;
    buffers_[value] = index;
    return index;
  }

  LogicalResult addArgument(BlockArgument argument) {
    uint32_t position = argument.getArgNumber();
    bool isParameter = options_.parameters.count(position) > 0;
    bool isNamed = position < options_.argumentNames.size() && !options_.argumentNames[position].empty();
    std::string name = isNamed ? options_.argumentNames[position] : "arg" + std::to_string(position);
    FailureOr<uint32_t> index = addBuffer(argument, isParameter ? BufferKind::Parameter : BufferKind::Input, name);
    if (failed(index))
      return failure();
    BufferInfo &buffer = program_.buffers[*index];
    buffer.argumentIndex = position;
    if (auto found = options_.indexClasses.find(position); found != options_.indexClasses.end())
      buffer.indexClass = found->second;
    return success();
  }

  LogicalResult visit(Operation &op) {
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return addBuffer(alloc, BufferKind::Temporary, "tmp" + std::to_string(numTemporaries_++));
    if (auto global = dyn_cast<memref::GetGlobalOp>(op))
      return addConstant(global);
    if (auto call = dyn_cast<func::CallOp>(op))
      return addNest(call);
    if (auto result = dyn_cast<func::ReturnOp>(op))
      return addOutputs(result);
    return success();
  }

  LogicalResult addConstant(memref::GetGlobalOp op) {
    auto global = module_.lookupSymbol<memref::GlobalOp>(op.getName());
    auto value = dyn_cast_or_null<ElementsAttr>(global.getConstantInitValue());
    FailureOr<uint32_t> index =
        addBuffer(op.getResult(), BufferKind::Constant, "const" + std::to_string(numConstants_++));
    if (failed(index) || !value)
      return failure();
    BufferInfo &buffer = program_.buffers[*index];
    buffer.constantData.resize(buffer.bytes);
    return copyElements(value, buffer) ? success() : op.emitOpError("holds a constant of unsupported form");
  }

  /// Expands splats and packed booleans into the memory form.
  static bool copyElements(ElementsAttr value, BufferInfo &buffer) {
    std::byte *target = buffer.constantData.data();
    uint64_t width = bytesOf(buffer.elementType);
    auto write = [&](const APInt &bits) {
      std::memcpy(target, bits.getRawData(), width);
      target += width;
    };
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
      AsmResourceBlob *blob = resource.getRawHandle().getBlob();
      if (!blob || blob->getData().size() != buffer.bytes)
        return false;
      std::memcpy(target, blob->getData().data(), buffer.bytes);
      return true;
    }
    auto dense = dyn_cast<DenseElementsAttr>(value);
    if (!dense)
      return false;
    if (isa<FloatType>(dense.getElementType()))
      for (const APFloat &element : dense.getValues<APFloat>())
        write(element.bitcastToAPInt());
    else
      for (const APInt &element : dense.getValues<APInt>())
        write(element);
    return true;
  }

  LogicalResult addNest(func::CallOp call) {
    auto kernel = module_.lookupSymbol<func::FuncOp>(call.getCallee());
    auto [entry, isNew] = kernels_.try_emplace(kernel, program_.kernels.size());
    if (isNew)
      program_.kernels.push_back(describeKernel(kernel));
    NestInstance nest;
    nest.id = call->getAttrOfType<StringAttr>(idAttr).str();
    nest.kernel = entry->second;
    Origin origin;
    findOrigin(call.getLoc(), origin);
    nest.source = origin.source;
    nest.modulePath = origin.modulePath;
    nest.torchOp = origin.torchOp;
    for (auto [position, argument] : llvm::enumerate(call.getOperands())) {
      FailureOr<NestOperand> operand = describeOperand(kernel, position, argument);
      if (failed(operand))
        return call.emitOpError("operand ") << position << " has no static place in memory";
      nest.operands.push_back(*operand);
    }
    program_.nests.push_back(std::move(nest));
    return success();
  }

  static NestKernel describeKernel(func::FuncOp kernel) {
    NestKernel description;
    description.key = kernel->getAttrOfType<StringAttr>(keyAttr).str();
    description.name = kernel.getName().str();
    description.facts = computeFacts(kernel);
    llvm::raw_string_ostream stream(description.text);
    kernel->print(stream, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
    return description;
  }

  FailureOr<NestOperand> describeOperand(func::FuncOp kernel, unsigned position, Value view) {
    // The call site casts the view to a type with a free offset; the view itself has the static one.
    if (auto cast = view.getDefiningOp<memref::CastOp>();
        cast && failed(staticLayout(mlir::cast<MemRefType>(view.getType()))))
      view = cast.getSource();
    auto type = cast<MemRefType>(view.getType());
    FailureOr<StaticLayout> layout = staticLayout(type);
    auto buffer = buffers_.find(bufferRoot(view));
    if (failed(layout) || buffer == buffers_.end())
      return failure();
    NestOperand operand;
    operand.buffer = buffer->second;
    uint64_t width = bytesOf(program_.buffers[operand.buffer].elementType);
    operand.byteOffset = layout->offset * width;
    int64_t first = layout->offset, last = layout->offset;
    uint64_t distinct = 1;
    for (auto [size, stride] : llvm::zip(type.getShape(), layout->strides)) {
      (stride < 0 ? first : last) += (size - 1) * stride;
      distinct *= stride == 0 ? 1 : size;
    }
    operand.spanBegin = first * width;
    operand.spanEnd = (last + 1) * width;
    operand.distinctBytes = distinct * width;
    ArgumentAccess access = accessOf(kernel, position);
    operand.reads = access.reads;
    operand.writes = access.writes;
    return operand;
  }

  LogicalResult addOutputs(func::ReturnOp result) {
    for (Value value : result.getOperands()) {
      auto type = dyn_cast<MemRefType>(value.getType());
      if (!type)
        return result.emitOpError("result of type ") << value.getType() << " is not a tensor";
      FailureOr<StaticLayout> layout = staticLayout(type);
      auto buffer = buffers_.find(bufferRoot(value));
      if (failed(layout) || buffer == buffers_.end())
        return result.emitOpError("result has no static place in memory");
      ProgramOutput output;
      output.buffer = buffer->second;
      output.elementType = program_.buffers[output.buffer].elementType;
      output.elementOffset = layout->offset;
      output.sizes.assign(type.getShape().begin(), type.getShape().end());
      output.strides.assign(layout->strides.begin(), layout->strides.end());
      if (BufferInfo &info = program_.buffers[output.buffer]; info.kind == BufferKind::Temporary)
        info.kind = BufferKind::Output;
      program_.outputs.push_back(std::move(output));
    }
    return success();
  }

  /// A nest is hoisted when everything it reads comes from parameters, constants and hoisted nests, and no other
  /// nest writes what it writes.
  void markHoisted() {
    std::vector<bool> isFixed(program_.buffers.size());
    for (size_t i = 0; i < program_.buffers.size(); ++i)
      isFixed[i] = program_.buffers[i].kind != BufferKind::Input;
    auto dependsOnInput = [&](const NestInstance &nest) {
      return llvm::any_of(nest.operands, [&](const NestOperand &operand) { return !isFixed[operand.buffer]; });
    };
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      for (const NestInstance &nest : program_.nests) {
        if (!dependsOnInput(nest))
          continue;
        for (const NestOperand &operand : nest.operands)
          if (operand.writes && isFixed[operand.buffer]) {
            isFixed[operand.buffer] = false;
            isChanged = true;
          }
      }
    }
    for (NestInstance &nest : program_.nests)
      nest.isHoisted = !dependsOnInput(nest);
  }

  ModuleOp module_;
  const ExtractOptions &options_;
  Program program_;
  DenseMap<Value, uint32_t> buffers_;
  DenseMap<Operation *, uint32_t> kernels_;
  int numTemporaries_ = 0, numConstants_ = 0;
};

} // namespace

FailureOr<Program> extractProgram(ModuleOp module, const ExtractOptions &options) {
  return Extractor(module, options).run();
}

} // namespace nearbank::loopnest
