// SPDX-License-Identifier: Apache-2.0

#include "compiler/placement/Selectors.h"

#include "runtime/Error.h"
#include "runtime/NearestName.h"

#include <fmt/format.h>

#include <algorithm>

namespace nearbank::placement {
namespace {

/// Whether `path` is `prefix` or lies below it: "encoder.layer.1" does not select "encoder.layer.10".
bool isBelow(const std::string &path, const std::string &prefix) {
  return !prefix.empty() && path.compare(0, prefix.size(), prefix) == 0 &&
         (path.size() == prefix.size() || path[prefix.size()] == '.');
}

/// A source "a/b/model.py:41" is also selected by "model.py:41" and, whatever its column, by "model.py:41".
bool isSource(const std::string &source, const std::string &selector) {
  if (source == selector || source.compare(0, selector.size() + 1, selector + ":") == 0)
    return selector.find(':') != std::string::npos;
  size_t slash = source.rfind('/');
  return slash != std::string::npos && selector.find('/') == std::string::npos &&
         isSource(source.substr(slash + 1), selector);
}

bool matches(const Program &program, const NestInstance &nest, const std::string &selector) {
  return nest.id == selector || program.kernels[nest.kernel].name == selector || isSource(nest.source, selector) ||
         isBelow(nest.modulePath, selector);
}

[[noreturn]] void failUnmatched(const Program &program, const char *option, const std::string &selector) {
  std::vector<std::string> names;
  auto add = [&](const std::string &name) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  for (const NestInstance &nest : program.nests) {
    add(nest.id);
    add(program.kernels[nest.kernel].name);
    add(nest.source.substr(nest.source.rfind('/') + 1));
    add(nest.modulePath);
  }
  std::string nearest = nearestName(selector, names);
  throw UserError({"NB0405", "selector matches no loop nest", fmt::format("--{} {}", option, selector),
                   fmt::format("a nest id (n0 to n{}), a kernel name, a source line or a module path of this program",
                               program.nests.empty() ? 0 : program.nests.size() - 1),
                   "'" + selector + "'",
                   nearest.empty() ? "leave the option out" : fmt::format("did you mean '{}'?", nearest)});
}

} // namespace

std::vector<NestWish> resolveSelectors(const Program &program, const std::vector<std::string> &pins,
                                       const std::vector<std::string> &forbids) {
  std::vector<NestWish> wishes(program.nests.size());
  for (Wish wish : {Wish::Pin, Wish::Forbid})
    for (const std::string &selector : wish == Wish::Pin ? pins : forbids) {
      bool isMatched = false;
      for (size_t i = 0; i < program.nests.size(); ++i) {
        if (!matches(program, program.nests[i], selector))
          continue;
        isMatched = true;
        if (wishes[i].wish != Wish::None && wishes[i].wish != wish)
          throw UserError({"NB0406", "loop nest is both pinned and forbidden",
                           fmt::format("{} ({})", program.nests[i].id, program.kernels[program.nests[i].kernel].name),
                           "one of --pin and --forbid for a nest",
                           fmt::format("--pin {} and --forbid {}", wishes[i].selector, selector),
                           "narrow one of the two selectors, for example to a nest id"});
        wishes[i] = {wish, selector};
      }
      if (!isMatched)
        failUnmatched(program, wish == Wish::Pin ? "pin" : "forbid", selector);
    }
  return wishes;
}

} // namespace nearbank::placement
