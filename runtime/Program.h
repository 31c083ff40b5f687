// SPDX-License-Identifier: Apache-2.0
// A lowered model: buffers, distinct nest kernels and the order in which nest instances run.
// The compiler produces it, placement decides over it, the runtime executes it. Every shape is static.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nearbank {

enum class ElementType : uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, I1 };

/// Bytes of one element in memory; I1 takes one byte, as in PyTorch.
uint64_t bytesOf(ElementType type);
/// "f32", "bf16", "i1", ...
const char *nameOf(ElementType type);

enum class BufferKind : uint8_t {
  Input,     ///< Argument that changes from call to call.
  Parameter, ///< Argument that the caller marks as a model parameter or buffer.
  Constant,  ///< Literal of the program; `constantData` holds its bytes.
  Temporary, ///< Allocated by the program, dead when it returns.
  Output     ///< Allocated by the caller, read after the program returns.
};

struct BufferInfo {
  std::string name; ///< "arg3", "const0", "tmp17", "out0".
  BufferKind kind = BufferKind::Temporary;
  uint64_t bytes = 0;
  ElementType elementType = ElementType::F32;
  std::optional<uint32_t> argumentIndex; ///< For Input and Parameter: position in the argument list.
  std::vector<std::byte> constantData;   ///< For Constant only.
  /// Input whose indices address other buffers: data class of the profile ("uniform", "arange", ...); empty for plain
  /// data.
  std::string indexClass;
};

/// One pointer that a nest receives. Byte ranges are conservative spans of what may be touched.
struct NestOperand {
  uint32_t buffer = 0;        ///< Index into Program::buffers.
  uint64_t byteOffset = 0;    ///< Offset of the pointer the kernel receives.
  uint64_t spanBegin = 0;     ///< First byte of the buffer that may be touched.
  uint64_t spanEnd = 0;       ///< One past the last byte that may be touched.
  uint64_t distinctBytes = 0; ///< Bytes that are really touched when every iteration runs.
  bool reads = false;
  bool writes = false;
};

/// Operation counts of one execution of a nest, over all its iterations, from its IR.
struct OperationCounts {
  double floatOps = 0;        ///< Floating-point add, sub, mul, compare, min, max, neg, select; an FMA counts two.
  double divisions = 0;       ///< Floating-point divisions and square roots.
  double transcendentals = 0; ///< exp, log, erf, tanh, sin, cos, pow, before polynomial expansion.
  double integerOps = 0;      ///< Integer and index arithmetic of the body (address arithmetic excluded).
  double conversions = 0;     ///< Casts between types.
  double loads = 0;           ///< Element loads of the body.
  double stores = 0;          ///< Element stores.
  /// Sum of all arithmetic, the "operations" of PL-1.
  double total() const { return floatOps + divisions + transcendentals + integerOps + conversions; }
};

/// What the IR tells about a nest.
struct NestFacts {
  std::string kind; ///< "contraction", "elementwise", "reduction", "copy", "transpose", "fill", "gather",
                    ///< "convolution", "pooling", "scan", "scatter", "scalar", "general".
  std::vector<int64_t> tripCounts;
  std::vector<std::string> iteratorTypes; ///< "parallel" or "reduction", one per trip count.
  int64_t iterations = 1;                 ///< Product of all trip counts.
  int64_t parallelExtent = 1;             ///< Product of the parallel trip counts.
  OperationCounts operations;
  double bytesRead = 0;                ///< Distinct bytes read (each operand counted once).
  double bytesWritten = 0;             ///< Distinct bytes written.
  std::vector<std::string> accessMaps; ///< Affine maps, one per operand, printed by MLIR.
  bool hasReduction = false;
  bool isDataDependent = false;               ///< Addresses depend on loaded values.
  ElementType computeType = ElementType::F32; ///< Type of the main arithmetic.
  /// By operand number: exclusive upper bound of integer operands that index other operands.
  std::map<uint32_t, int64_t> indexBounds;
  /// Whether it multiplies and adds up over a reduction: what codegen tiles, and op-type places.
  bool isContraction() const { return kind == "contraction" || kind == "convolution"; }
  /// Arithmetic per distinct byte, operations per byte.
  double intensity() const {
    double bytes = bytesRead + bytesWritten;
    return bytes > 0 ? operations.total() / bytes : 0;
  }
};

/// A distinct nest: what is profiled, compiled and simulated once.
struct NestKernel {
  std::string key;  ///< Structural key, 32 hex digits.
  std::string name; ///< Readable name, unique in the program: "matmul_96x1536x384_f32".
  NestFacts facts;
  std::string text; ///< Canonical IR that the key is the hash of.
};

/// One execution of a kernel in program order.
struct NestInstance {
  std::string id;      ///< "n0", "n1", ... in program order.
  uint32_t kernel = 0; ///< Index into Program::kernels.
  std::vector<NestOperand> operands;
  std::string source;     ///< "model.py:41", or empty when PyTorch gave none.
  std::string modulePath; ///< "encoder.layer.0.attention.self", or empty.
  std::string torchOp;    ///< "aten.mm", or empty.
  bool isHoisted = false; ///< Depends on parameters and constants only: runs once, outside the timed program.
};

/// Where a program result lies: a strided view of a buffer.
struct ProgramOutput {
  uint32_t buffer = 0;
  ElementType elementType = ElementType::F32;
  int64_t elementOffset = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides; ///< In elements.
};

struct Program {
  std::string name;
  std::vector<BufferInfo> buffers;
  std::vector<NestKernel> kernels;
  std::vector<NestInstance> nests;
  std::vector<ProgramOutput> outputs;
};

/// Status words that every kernel invocation may set; zero when all went well.
struct KernelStatus {
  int64_t code = 0;  ///< 0 none, 1 index out of range.
  int64_t value = 0; ///< The offending index.
};

/// Entry point of a kernel on every device: runs tasks [begin, end) of its task range.
using KernelFunction = void (*)(void **operands, int64_t begin, int64_t end, KernelStatus *status);

/// Compiled code of one kernel for the native host.
struct HostKernel {
  KernelFunction run = nullptr;   ///< Optimised code.
  KernelFunction trace = nullptr; ///< Same iterations; reports each access to nearbankTraceAccess. Null when absent.
  int64_t tasks = 0;              ///< Length of the task range of `run`.
  int64_t traceTasks = 0;         ///< Length of the task range of `trace`.
  bool usesBlas = false;
};

struct DpuKernel;

/// Compiled code of one kernel for near-memory cores or DPUs.
struct PimKernel {
  /// Static RV64 executable whose e_entry follows KernelFunction's signature (lp64d); for DPUs, a program of theirs.
  std::vector<std::byte> elf;
  std::shared_ptr<const DpuKernel> dpu; ///< For DPUs only: how the nest is shared out among them.
  int64_t tasks = 0;
  /// Trips of the outermost reduction loop of each task, the last one in part; 0 when they cannot be cut short. A third
  /// status word that is not zero is the number of trips to make instead: wrong results, for sampled simulation only.
  double reductionTrips = 0;
};

} // namespace nearbank
