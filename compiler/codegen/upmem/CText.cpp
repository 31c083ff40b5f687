// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/upmem/CText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <cmath>
#include <fmt/format.h>
#include <map>

using namespace mlir;

namespace nearbank::codegen {
namespace {

bool isBfloat(Type type) { return type.isBF16(); }

/// What statements may call. Square roots are rounded correctly, as the host's are.
const std::map<std::string, const char *> functionTexts = {
    {"bits_of", R"(static uint32_t bits_of(float value) {
  union {
    float number;
    uint32_t bits;
  } both = {value};
  return both.bits;
}
)"},
    {"float_of", R"(static float float_of(uint32_t bits) {
  union {
    uint32_t bits;
    float number;
  } both = {bits};
  return both.number;
}
)"},
    {"bfloat_bits", R"(// Rounds to the nearest bfloat16, ties to even.
static uint16_t bfloat_bits(float value) {
  uint32_t bits = bits_of(value);
  if (value != value)
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
)"},
    {"round_bfloat", R"(static float round_bfloat(float value) { return float_of((uint32_t)bfloat_bits(value) << 16); }
)"},
    {"truncated", R"(static float truncated(float x) {
  return x > -8388608.0f && x < 8388608.0f ? (float)(int32_t)x : x;
}
)"},
    {"rounded_down", R"(static float rounded_down(float x) {
  float whole = truncated(x);
  return whole > x ? whole - 1.0f : whole;
}
)"},
    {"square_root", R"(// One bit of the root after the other, the last one rounded.
static float square_root(float x) {
  uint32_t bits = bits_of(x), root = 0, sum = 0;
  int exponent = (int)(bits >> 23);
  if (x != x || x == 0.0f || bits == 0x7f800000u)
    return x;
  if (exponent > 255)
    return float_of(0x7fc00000u);
  uint32_t rest = bits & 0x7fffff;
  if (exponent)
    rest |= 0x800000;
  else
    for (exponent = 1; !(rest & 0x800000); exponent--)
      rest <<= 1;
  exponent -= 127;
  rest <<= 1 + (exponent & 1);
  for (uint32_t bit = 0x1000000; bit; bit >>= 1, rest <<= 1)
    if (sum + bit <= rest) {
      rest -= sum + bit;
      sum += 2 * bit;
      root += bit;
    }
  root += rest ? root & 1 : 0;
  return float_of((root >> 1) + 0x3f000000u + ((uint32_t)(exponent >> 1) << 23));
}
)"},
};
/// Functions that a function calls.
const std::map<std::string, std::vector<std::string>> calledBy = {
    {"bfloat_bits", {"bits_of"}},
    {"round_bfloat", {"bfloat_bits", "bits_of", "float_of"}},
    {"rounded_down", {"truncated"}},
    {"square_root", {"bits_of", "float_of"}}};
/// In which they are written.
constexpr const char *functionOrder[] = {"bits_of",   "float_of",     "bfloat_bits", "round_bfloat",
                                         "truncated", "rounded_down", "square_root"};

std::string comparison(arith::CmpFPredicate predicate, const std::string &a, const std::string &b) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return "0";
  case P::AlwaysTrue:
    return "1";
  case P::OEQ:
    return fmt::format("{} == {}", a, b);
  case P::OGT:
    return fmt::format("{} > {}", a, b);
  case P::OGE:
    return fmt::format("{} >= {}", a, b);
  case P::OLT:
    return fmt::format("{} < {}", a, b);
  case P::OLE:
    return fmt::format("{} <= {}", a, b);
  case P::ONE:
    return fmt::format("{0} < {1} || {0} > {1}", a, b);
  case P::ORD:
    return fmt::format("{0} == {0} && {1} == {1}", a, b);
  case P::UEQ:
    return fmt::format("!({0} < {1} || {0} > {1})", a, b);
  case P::UGT:
    return fmt::format("!({} <= {})", a, b);
  case P::UGE:
    return fmt::format("!({} < {})", a, b);
  case P::ULT:
    return fmt::format("!({} >= {})", a, b);
  case P::ULE:
    return fmt::format("!({} > {})", a, b);
  case P::UNE:
    return fmt::format("{} != {}", a, b);
  case P::UNO:
    return fmt::format("{0} != {0} || {1} != {1}", a, b);
  }
  return "";
}

std::string unsignedTypeOf(Type type) {
  std::string name = computeTypeOf(type);
  return name.rfind("int", 0) == 0 ? fmt::format("u{}", name) : name;
}

/// Overflow wraps in MLIR, so that C computes without sign.
std::string wrapping(Type type, const std::string &a, const char *sign, const std::string &b) {
  std::string wide = unsignedTypeOf(type);
  std::string text = fmt::format("({})(({})({}) {} ({})({}))", computeTypeOf(type), wide, a, sign, wide, b);
  return type.isInteger(1) ? fmt::format("({} & 1)", text) : text;
}

std::string integerComparison(arith::CmpIOp op, const std::string &a, const std::string &b) {
  using P = arith::CmpIPredicate;
  std::string wide = unsignedTypeOf(op.getLhs().getType());
  auto plain = [&](const char *sign) { return fmt::format("{} {} {}", a, sign, b); };
  auto raw = [&](const char *sign) { return fmt::format("({0}){1} {2} ({0}){3}", wide, a, sign, b); };
  switch (op.getPredicate()) {
  case P::eq:
    return plain("==");
  case P::ne:
    return plain("!=");
  case P::slt:
    return plain("<");
  case P::sle:
    return plain("<=");
  case P::sgt:
    return plain(">");
  case P::sge:
    return plain(">=");
  case P::ult:
    return raw("<");
  case P::ule:
    return raw("<=");
  case P::ugt:
    return raw(">");
  case P::uge:
    return raw(">=");
  }
  return "";
}

} // namespace

std::string computeTypeOf(Type type) {
  if (type.isF32() || isBfloat(type))
    return "float";
  if (type.isF64())
    return "double";
  if (type.isIndex() || type.isInteger(32))
    return "int32_t";
  if (type.isInteger(64))
    return "int64_t";
  if (type.isInteger(16))
    return "int16_t";
  if (type.isInteger(8))
    return "int8_t";
  if (type.isInteger(1))
    return "uint8_t";
  return "";
}

std::string memoryTypeOf(Type type) { return isBfloat(type) ? "uint16_t" : computeTypeOf(type); }

std::string fetchText() {
  return R"(// Brings bytes from anywhere in MRAM, of which DMA moves whole double words.
static inline void *fetch(uint32_t from, void *to, uint32_t bytes) {
  uint32_t skip = from & 7;
  mram_read((__mram_ptr void *)(from - skip), to, (skip + bytes + 7) & ~7u);
  return (uint8_t *)to + skip;
}

)";
}

std::string sumText(Type type, const std::string &a, const std::string &b) {
  return isa<FloatType>(type) ? fmt::format("{} + {}", a, b) : wrapping(type, a, "+", b);
}

std::string constantText(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value)) {
    double wide = number.getValueAsDouble();
    std::string suffix = number.getType().isF64() ? "" : "f";
    if (std::isnan(wide))
      return fmt::format("__builtin_nan{}(\"\")", suffix);
    if (std::isinf(wide))
      return fmt::format("{}__builtin_inf{}()", wide < 0 ? "-" : "", suffix);
    // Nine digits name a float, seventeen a double.
    std::string text = number.getType().isF64() ? fmt::format("{:.17g}", wide) : fmt::format("{:.9g}", wide);
    if (text.find_first_of(".e") == std::string::npos)
      text += ".0";
    return text + suffix;
  }
  if (auto number = dyn_cast<IntegerAttr>(value)) {
    if (number.getType().isInteger(1))
      return number.getValue().isZero() ? "0" : "1";
    int64_t wide = number.getValue().getSExtValue();
    if (wide == INT64_MIN)
      return "(-INT64_C(9223372036854775807) - 1)";
    if (wide == INT32_MIN)
      return "(-2147483647 - 1)";
    return wide > INT32_MAX || wide < INT32_MIN ? fmt::format("INT64_C({})", wide) : fmt::format("{}", wide);
  }
  return "";
}

std::string CStatements::call(const char *function, const std::string &arguments) {
  functions_.insert(function);
  if (auto called = calledBy.find(function); called != calledBy.end())
    functions_.insert(called->second.begin(), called->second.end());
  return fmt::format("{}({})", function, arguments);
}

std::string CStatements::functions() const {
  std::string text;
  for (const char *function : functionOrder)
    if (functions_.count(function))
      text += functionTexts.at(function) + std::string("\n");
  return text;
}

std::string CStatements::loaded(Type type, const std::string &element) {
  return isBfloat(type) ? call("float_of", "(uint32_t)" + element + " << 16") : element;
}

std::string CStatements::stored(Type type, const std::string &value) {
  return isBfloat(type) ? call("bfloat_bits", value) : value;
}

std::string CStatements::expressionOf(Operation &op) {
  auto arg = [&](unsigned i) { return nameOf(op.getOperand(i)); };
  Type type = op.getResult(0).getType();
  std::string result = computeTypeOf(type);
  auto binary = [&](const char *sign) { return fmt::format("{} {} {}", arg(0), sign, arg(1)); };
  auto chosen = [&](const char *sign, bool looksAtFirst) {
    unsigned other = looksAtFirst ? 0 : 1;
    return fmt::format("{0} {1} {2} || {3} != {3} ? {0} : {2}", arg(0), sign, arg(1), arg(other));
  };
  auto raw = [&](unsigned i) { return fmt::format("({}){}", unsignedTypeOf(op.getOperand(i).getType()), arg(i)); };
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return constantText(constant.getValue());
  if (isa<arith::AddFOp>(op))
    return binary("+");
  if (isa<arith::SubFOp>(op))
    return binary("-");
  if (isa<arith::MulFOp>(op))
    return binary("*");
  if (isa<arith::DivFOp>(op))
    return binary("/");
  if (isa<arith::NegFOp>(op))
    return fmt::format("-{}", arg(0));
  if (isa<math::FmaOp>(op)) // Rounded twice: a DPU has no fused multiply-add.
    return fmt::format("{} * {} + {}", arg(0), arg(1), arg(2));
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return comparison(compare.getPredicate(), arg(0), arg(1));
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return integerComparison(compare, arg(0), arg(1));
  if (isa<arith::SelectOp>(op))
    return fmt::format("{} ? {} : {}", arg(0), arg(1), arg(2));
  if (isa<arith::MaximumFOp>(op))
    return chosen(">", true);
  if (isa<arith::MinimumFOp>(op))
    return chosen("<", true);
  if (isa<arith::MaxNumFOp>(op))
    return chosen(">", false);
  if (isa<arith::MinNumFOp>(op))
    return chosen("<", false);
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return fmt::format("({}){}", result, arg(0));
  if (isa<arith::SIToFPOp>(op) && !op.getOperand(0).getType().isInteger(1))
    return fmt::format("({}){}", result, arg(0));
  if (isa<arith::UIToFPOp>(op))
    return fmt::format("({}){}", result, raw(0));
  if (isa<arith::FPToSIOp>(op) && !type.isInteger(1))
    return fmt::format("({}){}", result, arg(0));
  if (isa<arith::FPToUIOp>(op) && !type.isInteger(1))
    return fmt::format("({})({}){}", result, unsignedTypeOf(type), arg(0));
  if (isa<arith::ExtSIOp>(op) && op.getOperand(0).getType().isInteger(1))
    return fmt::format("({})-{}", result, arg(0));
  if (isa<arith::ExtSIOp, arith::IndexCastOp>(op))
    return fmt::format("({}){}", result, arg(0));
  if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op))
    return fmt::format("({}){}", result, raw(0));
  if (isa<arith::TruncIOp>(op))
    return type.isInteger(1) ? fmt::format("(uint8_t)({} & 1)", arg(0)) : fmt::format("({}){}", result, arg(0));
  if (isa<arith::BitcastOp>(op)) {
    Type from = op.getOperand(0).getType();
    if (from.isF32() && type.isInteger(32))
      return "(int32_t)" + call("bits_of", arg(0));
    if (from.isInteger(32) && type.isF32())
      return call("float_of", "(uint32_t)" + arg(0));
    return "";
  }
  if (isa<arith::AddIOp>(op))
    return wrapping(type, arg(0), "+", arg(1));
  if (isa<arith::SubIOp>(op))
    return wrapping(type, arg(0), "-", arg(1));
  if (isa<arith::MulIOp>(op))
    return type.getIntOrFloatBitWidth() < 32 ? fmt::format("({})({} * {})", result, arg(0), arg(1))
                                             : wrapping(type, arg(0), "*", arg(1));
  if (isa<arith::AndIOp>(op))
    return binary("&");
  if (isa<arith::OrIOp>(op))
    return binary("|");
  if (isa<arith::XOrIOp>(op))
    return binary("^");
  if (isa<arith::ShLIOp>(op))
    return fmt::format("({})({} << {})", result, raw(0), arg(1));
  if (isa<arith::ShRSIOp>(op))
    return binary(">>");
  if (isa<arith::ShRUIOp>(op))
    return fmt::format("({})({} >> {})", result, raw(0), arg(1));
  if (isa<arith::MaxSIOp>(op))
    return fmt::format("{0} > {1} ? {0} : {1}", arg(0), arg(1));
  if (isa<arith::MinSIOp>(op))
    return fmt::format("{0} < {1} ? {0} : {1}", arg(0), arg(1));
  if (isa<arith::MaxUIOp>(op))
    return fmt::format("{2} > {3} ? {0} : {1}", arg(0), arg(1), raw(0), raw(1));
  if (isa<arith::MinUIOp>(op))
    return fmt::format("{2} < {3} ? {0} : {1}", arg(0), arg(1), raw(0), raw(1));
  if (isa<arith::DivSIOp>(op))
    return binary("/");
  if (isa<arith::RemSIOp>(op))
    return binary("%");
  if (isa<arith::DivUIOp>(op))
    return fmt::format("({})({} / {})", result, raw(0), raw(1));
  if (isa<arith::RemUIOp>(op))
    return fmt::format("({})({} % {})", result, raw(0), raw(1));
  if (isa<math::AbsIOp>(op))
    return fmt::format("{0} < 0 ? -{0} : {0}", arg(0));
  if (isa<math::AbsFOp>(op))
    return fmt::format("__builtin_fabs{}({})", type.isF64() ? "" : "f", arg(0));
  if (isa<math::CopySignOp>(op))
    return fmt::format("__builtin_copysign{}({}, {})", type.isF64() ? "" : "f", arg(0), arg(1));
  if (type.isF32() && isa<math::SqrtOp>(op))
    return call("square_root", arg(0));
  if (type.isF32() && isa<math::FloorOp>(op))
    return call("rounded_down", arg(0));
  if (type.isF32() && isa<math::TruncOp>(op))
    return call("truncated", arg(0));
  if (type.isF32() && isa<math::IsNaNOp>(op))
    return fmt::format("{0} != {0}", arg(0));
  return "";
}

bool CStatements::add(Operation &op, const std::string &indent, std::string &text, std::string &reason) {
  std::string expression;
  std::string type = op.getNumResults() == 1 ? computeTypeOf(op.getResult(0).getType()) : "";
  if (!type.empty())
    expression = expressionOf(op);
  if (expression.empty()) {
    std::string types;
    llvm::raw_string_ostream stream(types);
    llvm::interleaveComma(op.getOperandTypes(), stream);
    reason = fmt::format("no C for {} on {}", op.getName().getStringRef().str(), types);
    return false;
  }
  // Every operation on bfloat16 rounds, as on the other sides.
  if (isBfloat(op.getResult(0).getType()) && !isa<arith::SelectOp, arith::NegFOp>(op))
    expression = call("round_bfloat", expression);
  std::string value = fmt::format("v{}", numValues_++);
  text += fmt::format("{}const {} {} = {};\n", indent, type, value, expression);
  name(op.getResult(0), value);
  return true;
}

} // namespace nearbank::codegen
