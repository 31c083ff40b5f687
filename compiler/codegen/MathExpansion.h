// SPDX-License-Identifier: Apache-2.0
// Expands math functions into the same arithmetic on every side.
#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>

namespace nearbank::codegen {

/// Replaces f32 exp, log, erf, tanh, sin, cos, pow and their kin by polynomials, so that host and PIM compute
/// the same values and loops around them vectorise. Double precision is left to the C library.
/// @param expandsRounding also expands floor-like functions, for targets without instructions for them
/// @param usesMaximumIntrinsic turns NaN-propagating maxima and minima into LLVM's own
/// @param avoidsSelects takes the forms of BranchFreeMath.h where there is one
std::unique_ptr<mlir::Pass> createMathExpansionPass(bool expandsRounding, bool usesMaximumIntrinsic,
                                                    bool avoidsSelects);

} // namespace nearbank::codegen
