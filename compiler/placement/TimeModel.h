// SPDX-License-Identifier: Apache-2.0
// What the closed forms of PL-3 and PL-9 share.
#pragma once

namespace nearbank::placement {

/// Instructions of one transcendental after expansion to a polynomial: range reduction, about ten FMAs, reconstruction.
inline constexpr double transcendentalInstructions = 24;

} // namespace nearbank::placement
