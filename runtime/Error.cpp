// SPDX-License-Identifier: Apache-2.0
// Renders error reports in the one shape that C++, Python and the CLI share.
#include "runtime/Error.h"

#include <fmt/format.h>

namespace nearbank {

namespace {

void appendField(std::string &text, const char *label, const std::string &value) {
  if (!value.empty())
    text += fmt::format("\n  {:<9} {}", label, value);
}

} // namespace

std::string ErrorReport::text() const {
  std::string text = fmt::format("error[{}]: {}", code, title);
  appendField(text, "where:", where);
  appendField(text, "expected:", expected);
  appendField(text, "actual:", actual);
  appendField(text, "fix:", fix);
  appendField(text, "more:", "nearbank explain " + code);
  return text;
}

Error::Error(ErrorReport report, const char *kind)
    : std::runtime_error(report.text()), report_(std::move(report)), kind_(kind) {}

} // namespace nearbank
