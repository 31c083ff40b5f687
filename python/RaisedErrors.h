// SPDX-License-Identifier: Apache-2.0
// How errors of the C++ libraries become exceptions of the Python package, in both extension modules.
#pragma once

#include "runtime/Error.h"

#include <nanobind/nanobind.h>

#include <exception>

namespace nearbank {

/// Raises the Python error that mirrors a C++ one; for nanobind::register_exception_translator().
inline void raiseError(const std::exception_ptr &thrown, void *) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error &error) {
    const ErrorReport &report = error.report();
    nanobind::dict fields;
    fields["kind"] = error.kind();
    fields["code"] = report.code;
    fields["title"] = report.title;
    fields["where"] = report.where;
    fields["expected"] = report.expected;
    fields["actual"] = report.actual;
    fields["fix"] = report.fix;
    nanobind::object raised = nanobind::module_::import_("nearbank.errors").attr("from_core")(fields);
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
  }
}

} // namespace nearbank
