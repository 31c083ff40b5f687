# SPDX-License-Identifier: Apache-2.0
"""Turns whatever ended a command into text on stderr and an exit code, and writes the repro folder of a bug."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from nearbank.errors import InternalError, NearbankError, UsageError, make_error, nearest

_INTERRUPTED = 130
_BROKEN_PIPE = 141


def _options_of(command) -> list[str]:
    return [name for parameter in command.params for name in parameter.opts if name.startswith("-")]


def usage_error(error: BaseException, words: Sequence[str]) -> UsageError:
    """Put a usage error of the option parser into the one shape.

    Parameters
    ----------
    error : BaseException
        What the parser raised.
    words : sequence of str
        The command line.

    Returns
    -------
    UsageError
        NB0001 unknown option, NB0002 unknown command, NB0003 missing argument, NB0004 value that is not valid.
    """
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "nearbank"
    where = shlex.join(["nearbank", *words])
    help_line = f"{path} --help"
    option = getattr(error, "option_name", None)
    message = error.format_message().strip().replace("Value error, ", "")  # type: ignore[attr-defined]
    name = type(error).__name__
    if name == "NoSuchOption" and option:
        valid = _options_of(context.command) if context is not None else []
        close = nearest(option, valid)
        fix = f"did you mean {close}?" if close else help_line
        return make_error(
            "usage", "NB0001", "unknown option", where=where, expected=", ".join(valid), actual=option, fix=fix
        )
    unknown = re.match(r"No such command '?([^' ]*)'?", message)
    if unknown:
        valid = list(getattr(context.command, "commands", {})) if context is not None else []
        close = nearest(unknown[1], valid)
        fix = f"did you mean {close!r}?" if close else help_line
        return make_error(
            "usage", "NB0002", "unknown command", where=where, expected=", ".join(valid), actual=unknown[1], fix=fix
        )
    if name == "MissingParameter" or message.startswith("Missing"):
        return make_error(
            "usage", "NB0003", "a word is missing on the command line", where=where, actual=message, fix=help_line
        )
    return make_error(
        "usage", "NB0004", "a word on the command line is not valid", where=where, actual=message, fix=help_line
    )


def _is_usage_error(error: BaseException) -> bool:
    return getattr(error, "exit_code", None) == 2 and hasattr(error, "format_message")


def write_repro(error: BaseException, words: Sequence[str]) -> Path | None:
    """Write what is needed to see an internal error again.

    Parameters
    ----------
    error : BaseException
        The failure; an attribute ``repro_files`` (name to text) is written too.
    words : sequence of str
        The command line.

    Returns
    -------
    Path or None
        The folder under NEARBANK_HOME (or under the current folder when that cannot be written), None when neither can.
    """
    home = Path(os.environ.get("NEARBANK_HOME") or Path.home() / ".cache" / "nearbank")
    stamp = f"repro-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    command = shlex.join(["nearbank", *words])
    files = {
        "command.txt": command + "\n",
        "rerun.sh": f"#!/bin/sh\ncd {shlex.quote(os.getcwd())} && exec {command}\n",
        "traceback.txt": "".join(traceback.format_exception(error)),
        "versions.json": json.dumps(_versions(), indent=2) + "\n",
    }
    for name, text in getattr(error, "repro_files", {}).items():
        files[Path(name).name] = str(text)
    for parent in (home / "repro", Path.cwd()):
        try:
            folder = parent / stamp
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
            return folder
        except OSError:
            continue
    return None


def _versions() -> dict[str, str]:
    from importlib import metadata

    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for package in ("nearbank", "torch", "torch-mlir", "transformers", "numpy", "typer"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def _internal(error: BaseException, words: Sequence[str]) -> InternalError:
    folder = write_repro(error, words)
    rerun = f"sh {shlex.quote(str(folder / 'rerun.sh'))}" if folder else shlex.join(["nearbank", *words])
    if isinstance(error, NearbankError):
        report = error.report
        parts = {"where": report.where, "expected": report.expected, "actual": report.actual, "fix": report.fix}
        note = f"this is a bug in Nearbank; see it again with: {rerun}"
        parts["fix"] = f"{report.fix}; {note}" if report.fix else note
        return make_error("internal", report.code, report.title, **parts)  # type: ignore[return-value]
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return make_error(  # type: ignore[return-value]
        "internal",
        "NB0900",
        "unexpected failure inside Nearbank",
        where=where,
        actual=f"{type(error).__name__}: {error}".rstrip(": "),
        fix=f"this is a bug in Nearbank; see it again with: {rerun}",
    )


def report_failure(error: BaseException, words: Sequence[str]) -> int:
    """Print what ended a command and choose the exit code.

    Parameters
    ----------
    error : BaseException
        What the command raised.
    words : sequence of str
        The command line.

    Returns
    -------
    int
        1 user, 2 usage, 3 device or environment, 4 internal, 130 interrupted.
    """
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        print("interrupted; nothing more was written", file=sys.stderr)
        return _INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # Whoever read stdout has left; a second failure while Python flushes it at exit would only add noise.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    if _is_usage_error(error) and not isinstance(error, NearbankError):
        error = usage_error(error, words)
    if isinstance(error, MemoryError):
        error = make_error("device", "NB0603", "host memory ran out", fix="use a smaller batch or a smaller model")
    if not isinstance(error, NearbankError) or isinstance(error, InternalError):
        error = _internal(error, words)
    print(error, file=sys.stderr)
    return error.exit_code
