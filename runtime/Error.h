// SPDX-License-Identifier: Apache-2.0
// The one error hierarchy of Nearbank: user, device and internal errors, all of one printed shape.
#pragma once

#include <stdexcept>
#include <string>

namespace nearbank {

/// Holds the parts of an error message; docs/errors.md lists the codes.
struct ErrorReport {
  std::string code;     ///< Stable code, e.g. "NB0203".
  std::string title;    ///< Static text of the first line, without values.
  std::string where;    ///< Source line, file:line:column, or nest.
  std::string expected; ///< The true bound or the valid values.
  std::string actual;   ///< What was found instead.
  std::string fix;      ///< What the user can do.

  /// Renders the message as docs/errors.md shows it, first line standing alone.
  std::string text() const;
};

/// Base of every exception that Nearbank throws at an API edge.
class Error : public std::runtime_error {
public:
  Error(ErrorReport report, const char *kind);
  const ErrorReport &report() const { return report_; }
  /// "user", "device" or "internal".
  const char *kind() const { return kind_; }

private:
  ErrorReport report_;
  const char *kind_;
};

/// The input is wrong; the user can mend it. Exit code 1.
class UserError : public Error {
public:
  explicit UserError(ErrorReport report) : Error(std::move(report), "user") {}
};

/// The environment or a device failed: read-only folder, full disk, trap in device code. Exit code 3.
class DeviceError : public Error {
public:
  explicit DeviceError(ErrorReport report) : Error(std::move(report), "device") {}
};

/// Nearbank itself is wrong. Exit code 4.
class InternalError : public Error {
public:
  explicit InternalError(ErrorReport report) : Error(std::move(report), "internal") {}
};

} // namespace nearbank
