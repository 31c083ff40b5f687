# SPDX-License-Identifier: Apache-2.0
"""Carries out `nearbank plan`, `run` and `report`: calls the session, writes the folder, prints the result."""

from __future__ import annotations

import itertools
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nearbank.cli_progress import Progress
from nearbank.errors import make_error
from nearbank.report import Report, load_report
from nearbank.report_files import prepare_folder, unwritable


@dataclass(frozen=True)
class Request:
    """What the command line of `plan` or `run` asks for; the fields are its options."""

    verb: str
    spec: str
    machine: str = "nmc-64"
    policy: str = "two-stage"
    simulate: str = "exact"
    threads: int = 0
    batch: int | None = None
    dtype: str | None = None
    tokens: int | None = None
    decode: bool = False
    context: int | None = None
    layers: int | None = None
    weights: str | None = None
    pin: list[str] = field(default_factory=list)
    forbid: list[str] = field(default_factory=list)
    on_unsupported: str = "host"
    db: Path | None = None
    assignments: list[tuple[str, str]] = field(default_factory=list)
    train: bool = False
    out: Path | None = None
    output_format: str = "text"
    show_all: bool = False


def parse_assignments(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Split the values of ``--set``.

    Parameters
    ----------
    texts : sequence of str
        Each of the form ``key=value``.

    Returns
    -------
    list of (str, str)
        Keys and values, in order.

    Raises
    ------
    UsageError
        NB0004 when there is no ``=`` or nothing on one side of it.
    """
    pairs = []
    for text in texts:
        key, _, value = text.partition("=")
        if not key.strip() or not value.strip():
            raise make_error(
                "usage",
                "NB0004",
                "a word on the command line is not valid",
                where=f"--set {text}",
                expected="KEY=VALUE, for example vault.bandwidthGBs=5",
                actual=repr(text),
                fix="nearbank machines show nmc-64 lists the keys",
            )
        pairs.append((key.strip(), value.strip()))
    return pairs


def sweep(pairs: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Expand values with commas into all combinations.

    Parameters
    ----------
    pairs : sequence of (str, str)
        Keys and values as `parse_assignments` gives them.

    Returns
    -------
    list of list of (str, str)
        One list for each combination; the last key varies fastest.

    Examples
    --------
    >>> sweep([("core.count", "32,64"), ("link.latencyNs", "30")])
    [[('core.count', '32'), ('link.latencyNs', '30')], [('core.count', '64'), ('link.latencyNs', '30')]]
    """
    choices = [[(key, part.strip()) for part in value.split(",") if part.strip()] for key, value in pairs]
    return [list(combination) for combination in itertools.product(*choices)]


def default_folder(request: Request) -> Path:
    """Name the folder of a report.

    Parameters
    ----------
    request : Request
        The request.

    Returns
    -------
    Path
        ``nearbank-out/SPEC-MACHINE-POLICY``, relative to the current folder.
    """
    path, _, function = request.spec.rpartition(":")
    spec = f"{Path(path).stem}.{function}" if path else request.spec
    machine = Path(request.machine).stem if request.machine.endswith((".yaml", ".yml")) else request.machine
    name = "-".join(re.sub(r"[^A-Za-z0-9_.-]+", "_", part) for part in (spec, machine, request.policy))
    return Path("nearbank-out") / name


def _session_arguments(request: Request, assignments: list[tuple[str, str]], progress: Progress) -> dict:
    return {
        "machine": request.machine,
        "policy": request.policy,
        "simulate": request.simulate,
        "threads": request.threads,
        "batch": request.batch,
        "dtype": request.dtype,
        "tokens": request.tokens,
        "decode": request.decode,
        "context": request.context,
        "layers": request.layers,
        "weights": request.weights,
        "pin": request.pin,
        "forbid": request.forbid,
        "on_unsupported": request.on_unsupported,
        "db": str(request.db) if request.db else None,
        "set": assignments,
        "train": request.train,
        "progress": progress,
    }


def execute(request: Request, progress: Progress) -> Report:
    """Plan or run once for each combination of ``--set`` values.

    Parameters
    ----------
    request : Request
        The request.
    progress : Progress
        Told about each stage.

    Returns
    -------
    Report
        All runs in one document.
    """
    from nearbank import session

    call = session.plan if request.verb == "plan" else session.run
    combinations = sweep(request.assignments)
    merged: Report | None = None
    for assignments in combinations:
        report = call(request.spec, **_session_arguments(request, assignments, progress))
        if len(combinations) > 1:
            changed = ", ".join(f"{key}={value}" for key, value in assignments)
            for run in report.runs:
                run["machine"] = f"{run['machine']} ({changed})"
                run["summary"]["verdict"] = ""
        if merged is None:
            merged = report
        else:
            merged.runs.extend(report.runs)
    assert merged is not None
    merged.document["command"] = ["nearbank", *sys.argv[1:]]
    return Report(merged.document)


def print_report(report: Report, output_format: str, show_all: bool) -> None:
    """Print a report on stdout.

    Parameters
    ----------
    report : Report
        What to print.
    output_format : {"text", "json", "csv"}
        How.
    show_all : bool
        One table row for each nest.
    """
    if output_format == "json":
        sys.stdout.write(report.to_json() + "\n")
    elif output_format == "csv":
        sys.stdout.write(report.to_csv())
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        sys.stdout.write(report.to_text(show_all, width) + "\n")


def plan_or_run(request: Request) -> None:
    """Carry out a request: check the folder, plan or run, save, print.

    Parameters
    ----------
    request : Request
        The request.

    Raises
    ------
    NearbankError
        Whatever the session raises; NB0601 when the folder cannot be written.
    """
    folder = request.out or default_folder(request)
    existed = folder.exists()
    prepare_folder(folder)
    try:
        with Progress() as progress:
            report = execute(request, progress)
            progress("report", 0, 0)
            report.save(folder)
    except BaseException:
        if not existed:
            _remove_when_empty(folder)
        raise
    for message in dict.fromkeys(text for run in report.runs for text in run.get("messages") or []):
        print(f"note: {message}", file=sys.stderr)
    print_report(report, request.output_format, request.show_all)
    page = (folder / "report.html").resolve()
    if request.output_format == "text":
        sys.stdout.write(f"report: {page}\n")
    else:
        print(f"report: {page}", file=sys.stderr)


def _remove_when_empty(folder: Path) -> None:
    for candidate in (folder, folder.parent):
        try:
            candidate.rmdir()
        except OSError:
            return


def print_again(folder: Path, output_format: str, show_all: bool) -> None:
    """Print an earlier report and write its page anew.

    Parameters
    ----------
    folder : Path
        A folder that `Report.save` wrote.
    output_format : {"text", "json", "csv"}
        How to print.
    show_all : bool
        One table row for each nest.

    Raises
    ------
    UserError
        NB0605 or NB0606 when there is no report to read.
    DeviceError
        NB0601 when the page cannot be written.
    """
    report = load_report(folder)
    target = folder if folder.is_dir() else folder.parent
    try:
        (target / "report.html").write_text(report.to_html(), encoding="utf-8")
    except OSError as cause:
        raise unwritable(target, cause) from cause
    print_report(report, output_format, show_all)
    print(f"report: {(target / 'report.html').resolve()}", file=sys.stderr)
