// SPDX-License-Identifier: Apache-2.0
// Exponential, error function and hyperbolic tangent of f32 without selects, which an in-order core without conditional
// moves turns into branches.
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace nearbank::codegen {

/// Adds patterns for math.exp (1.01 ulp), math.erf and math.tanh (6 ulp; 3.6e-7 absolute) of f32. NaN gives NaN,
/// infinities give the limits, math.exp overflows to infinity and underflows through denormals to zero.
void populateBranchFreeMath(mlir::RewritePatternSet &patterns);

} // namespace nearbank::codegen
