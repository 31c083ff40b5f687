// SPDX-License-Identifier: Apache-2.0
// Passes that turn linalg on tensors into a program of outlined loop nests.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace nearbank::loopnest {

/// Names of the attributes that the stages exchange.
inline constexpr llvm::StringLiteral kernelAttr = "nearbank.kernel";
inline constexpr llvm::StringLiteral keyAttr = "nearbank.key";
inline constexpr llvm::StringLiteral idAttr = "nearbank.id";
inline constexpr llvm::StringLiteral initAttr = "nearbank.init";
inline constexpr llvm::StringLiteral factsAttr = "nearbank.facts";
/// Marks kernel arguments that share a buffer with another argument of the same kernel.
inline constexpr llvm::StringLiteral aliasAttr = "nearbank.aliases";

#define GEN_PASS_DECL
#include "compiler/loopnest/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/loopnest/Passes.h.inc"

/// Appends the passes from linalg on tensors to fused nests on buffers, in order.
void buildBufferPipeline(mlir::OpPassManager &manager);
/// Appends every pass from linalg on tensors to outlined nests, in order.
void buildNestPipeline(mlir::OpPassManager &manager);
/// Registers the pipelines as `nearbank-buffers` and `nearbank-nests` for nearbank-opt.
void registerNestPipeline();

} // namespace nearbank::loopnest
