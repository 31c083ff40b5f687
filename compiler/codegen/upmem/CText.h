// SPDX-License-Identifier: Apache-2.0
// Writes scalar MLIR operations as C for DPUs, which have neither a floating-point unit nor a mathematical library.
#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <set>
#include <string>

namespace nearbank::codegen {

/// C type in which values of an MLIR type are computed: half precision is held in a float.
std::string computeTypeOf(mlir::Type type);
/// C type in which memory holds elements of an MLIR type; empty when DPU kernels do not know the type.
std::string memoryTypeOf(mlir::Type type);

/// Statements of one nest's body. Names are kept from one statement to the next.
class CStatements {
public:
  void name(mlir::Value value, std::string text) { names_[value] = std::move(text); }
  std::string nameOf(mlir::Value value) const { return names_.lookup(value); }

  /// Writes `op` as a statement that ends with a newline.
  /// @return false when there is no C for it; `reason` then says so
  bool add(mlir::Operation &op, const std::string &indent, std::string &text, std::string &reason);

  /// Definitions of the functions that the statements call.
  std::string functions() const;
  /// Of a memory element, and back.
  std::string loaded(mlir::Type type, const std::string &element);
  std::string stored(mlir::Type type, const std::string &value);

private:
  /// The right side of the statement, or nothing.
  std::string expressionOf(mlir::Operation &op);
  std::string call(const char *function, const std::string &arguments);

  llvm::DenseMap<mlir::Value, std::string> names_;
  std::set<std::string> functions_;
  int numValues_ = 0;
};

/// The function `fetch`, by which statements read MRAM.
std::string fetchText();
/// Sum of two expressions of an MLIR type; integers wrap.
std::string sumText(mlir::Type type, const std::string &a, const std::string &b);
/// A constant as C; empty when there is none.
std::string constantText(mlir::Attribute value);

} // namespace nearbank::codegen
