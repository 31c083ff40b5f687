// SPDX-License-Identifier: Apache-2.0
// Reads --pin and --forbid selectors.
#pragma once

#include "compiler/placement/Placement.h"

namespace nearbank::placement {

enum class Wish : uint8_t { None, Pin, Forbid };

/// The user's wish for each nest and the selector that expressed it.
struct NestWish {
  Wish wish = Wish::None;
  std::string selector;
};

/// @throws UserError NB0405 selector that matches nothing, NB0406 nest pinned and forbidden
std::vector<NestWish> resolveSelectors(const Program &program, const std::vector<std::string> &pins,
                                       const std::vector<std::string> &forbids);

} // namespace nearbank::placement
