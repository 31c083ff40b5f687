# SPDX-License-Identifier: Apache-2.0
"""The errors of Nearbank: user, usage, device and internal, all printed in one shape."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

_FIELDS = ("where", "expected", "actual", "fix")


@dataclass(frozen=True)
class ErrorReport:
    """Holds the parts of an error message; docs/errors.md lists the codes.

    Parameters
    ----------
    code : str
        Stable code, for example ``"NB0101"``.
    title : str
        Static text of the first line, without values.
    where, expected, actual, fix : str
        Place, true bound, what was found instead, and what the user can do. Empty parts are not printed.
    """

    code: str
    title: str
    where: str = ""
    expected: str = ""
    actual: str = ""
    fix: str = ""

    def text(self) -> str:
        """Render the message; its first line stands alone.

        Returns
        -------
        str
            The message of one line for each part that is not empty, without a newline at the end.
        """
        lines = [f"error[{self.code}]: {self.title}"]
        for field in _FIELDS:
            value = getattr(self, field)
            if value:
                label = f"{field}:"
                indented = value.replace("\n", "\n" + " " * 12)
                lines.append(f"  {label:<9} {indented}")
        lines.append(f"  {'more:':<9} nearbank explain {self.code}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, str]:
        """Return the parts as a dictionary, for JSON.

        Returns
        -------
        dict of str to str
            One entry for each part, empty ones included.
        """
        return asdict(self)


class NearbankError(Exception):
    """Base of every exception that Nearbank raises on purpose.

    Parameters
    ----------
    report : ErrorReport
        The parts of the message.
    """

    kind = "user"
    exit_code = 1

    def __init__(self, report: ErrorReport) -> None:
        super().__init__(report.text())
        self.report = report

    def __reduce__(self):
        return (type(self), (self.report,))

    def __str__(self) -> str:
        return self.report.text()


class UserError(NearbankError):
    """The input is wrong and the user can mend it. Exit code 1."""


class IndexRangeError(UserError, IndexError):
    """An index tensor addresses outside its table, where eager PyTorch raises IndexError too. Exit code 1."""


class UsageError(UserError):
    """The command line is wrong: unknown option, missing argument, value outside the choices. Exit code 2."""

    kind = "usage"
    exit_code = 2


class DeviceError(NearbankError):
    """The environment or a device failed: read-only folder, full disk, trap in device code. Exit code 3."""

    kind = "device"
    exit_code = 3


class InternalError(NearbankError):
    """Nearbank itself is wrong. Exit code 4."""

    kind = "internal"
    exit_code = 4


_KINDS = {"user": UserError, "usage": UsageError, "device": DeviceError, "internal": InternalError}
_INDEX_RANGE = "NB0301"


def make_error(kind: str, code: str, title: str, **parts: str) -> NearbankError:
    """Build the exception of a kind.

    Parameters
    ----------
    kind : {"user", "usage", "device", "internal"}
        Who can mend it; an unknown kind counts as internal.
    code, title : str
        As in `ErrorReport`.
    **parts : str
        ``where``, ``expected``, ``actual``, ``fix``.

    Returns
    -------
    NearbankError
        Not raised yet.

    Examples
    --------
    >>> error = make_error("user", "NB0101", "unknown machine", actual="'nmc-6'", fix="did you mean 'nmc-64'?")
    >>> print(error)
    error[NB0101]: unknown machine
      actual:   'nmc-6'
      fix:      did you mean 'nmc-64'?
      more:     nearbank explain NB0101
    >>> error.exit_code
    1
    """
    error = _KINDS.get(kind, InternalError)
    if error is UserError and code == _INDEX_RANGE:
        error = IndexRangeError
    return error(ErrorReport(code, title, **parts))


def missing_package(package: str, purpose: str = "", where: str = "", also: str = "") -> NearbankError:
    """Build the error for a Python package that is not installed (NB0604).

    Parameters
    ----------
    package : str
        Its name at PyPI.
    purpose : str, default ""
        What it is needed for, as words that follow the name.
    where : str, default ""
        Who asked for it.
    also : str, default ""
        Command that must run before ``pip install``.

    Returns
    -------
    NearbankError
        Not raised yet.

    Examples
    --------
    >>> print(missing_package("pyarrow", ", to read Parquet"))
    error[NB0604]: a Python package is missing
      expected: pyarrow, to read Parquet
      fix:      pip install pyarrow
      more:     nearbank explain NB0604
    """
    fix = f"{also}, then pip install {package}" if also else f"pip install {package}"
    return make_error(
        "device", "NB0604", "a Python package is missing", where=where, expected=package + purpose, fix=fix
    )


def mpi_unavailable(cause: Exception) -> NearbankError:
    """Build the error for an MPI that is not installed (NB0604) or cannot be started (NB0608).

    Parameters
    ----------
    cause : Exception
        What importing mpi4py raised.

    Returns
    -------
    NearbankError
        Not raised yet.
    """
    libraries = "apt-get install libopenmpi-dev openmpi-bin"
    if isinstance(cause, ModuleNotFoundError):
        return missing_package("mpi4py", ", and an MPI library", "--mpi", also=libraries)
    return make_error(
        "device",
        "NB0608",
        "MPI cannot be started",
        where="--mpi",
        expected="an MPI library that mpi4py was built for",
        actual=str(cause),
        fix=f"{libraries}, then reinstall mpi4py",
    )


def from_core(parts: Mapping[str, str]) -> NearbankError:
    """Map an error of the C++ core to its Python class.

    Parameters
    ----------
    parts : mapping
        ``kind``, ``code``, ``title`` and any of ``where``, ``expected``, ``actual``, ``fix``.

    Returns
    -------
    NearbankError
        `UserError`, `IndexRangeError`, `DeviceError` or `InternalError`, for the caller to raise.
    """
    texts = {field: str(parts[field]) for field in _FIELDS if parts.get(field)}
    return make_error(
        str(parts.get("kind", "internal")),
        str(parts.get("code", "NB0900")),
        str(parts.get("title", "the compiler reported an error without a text")),
        **texts,
    )


def parts_of(error: NearbankError) -> dict[str, str]:
    """Take an error apart, so that `from_core` makes it again in another process.

    Parameters
    ----------
    error : NearbankError
        The error.

    Returns
    -------
    dict of str to str
        ``kind``, ``code``, ``title``, ``where``, ``expected``, ``actual``, ``fix``.
    """
    report = error.report
    kinds = {UserError: "user", DeviceError: "device", UsageError: "usage"}
    kind = next((word for of_kind, word in kinds.items() if isinstance(error, of_kind)), "internal")
    return {"kind": kind, "code": report.code, "title": report.title, **{f: getattr(report, f) or "" for f in _FIELDS}}


def nearest(name: str, valid: Iterable[str]) -> str:
    """Find the valid name closest to a misspelt one.

    Parameters
    ----------
    name : str
        What the user wrote.
    valid : iterable of str
        The names that would have been right.

    Returns
    -------
    str
        The closest valid name, or an empty string when none is close.

    Examples
    --------
    >>> nearest("two-stge", ["cpu-only", "two-stage"])
    'two-stage'
    >>> nearest("zzz", ["cpu-only", "two-stage"])
    ''
    """
    names = list(valid)
    lowered = {candidate.lower(): candidate for candidate in reversed(names)}
    found = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.5)
    return lowered[found[0]] if found else ""


def unknown_name(
    kind: str, code: str, title: str, name: str, valid: Iterable[str], where: str = "", remedy: str = ""
) -> NearbankError:
    """Build the error for a name that is not among the valid ones, with the closest offered.

    Parameters
    ----------
    kind, code, title : str
        As in `make_error`.
    name : str
        What the user wrote.
    valid : iterable of str
        The valid names, listed in the message (at most twelve).
    where : str, default ""
        Where the name stands.
    remedy : str, default ""
        What to do when no valid name is close.

    Returns
    -------
    NearbankError
        Not raised yet.
    """
    names = list(valid)
    shown = ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
    close = nearest(name, names)
    fix = f"did you mean {close!r}?" if close else remedy
    expected = f"one of: {shown}" if names else ""
    return make_error(kind, code, title, where=where, expected=expected, actual=repr(name), fix=fix)
