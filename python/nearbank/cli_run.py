# SPDX-License-Identifier: Apache-2.0
"""Carries out `nearbank plan`, `run` and `report`: calls the session, writes the folder, prints the result."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nearbank.cli_progress import Progress
from nearbank.errors import make_error
from nearbank.report import TABLE_LIMIT, Report, load_report
from nearbank.report_files import prepare_folder, unwritable


@dataclass(frozen=True)
class Request:
    """What the command line of `plan` or `run` asks for; the fields are its options."""

    verb: str
    spec: str
    machine: str = "nmc-64"
    policy: str = "two-stage"
    host: str | None = None
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
    jobs: int | None = None
    mpi: bool = False
    baseline: Path | None = None
    train: bool = False
    emit_upmem: Path | None = None
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


def default_folder(request: Request) -> Path:
    """Name the folder of a report.

    Parameters
    ----------
    request : Request
        The request.

    Returns
    -------
    Path
        ``nearbank-out/SPEC-MACHINE-POLICY``, relative to the current folder; several machines are joined by ``+``.
    """
    path, _, function = request.spec.rpartition(":")
    spec = f"{Path(path).stem}.{function}" if path else request.spec
    machines = [part.strip() for part in request.machine.split(",")]
    machine = "+".join(Path(part).stem if part.endswith((".yaml", ".yml")) else part for part in machines)
    parts = (spec, machine, request.policy.replace(",", "+"))
    name = "-".join(re.sub(r"[^A-Za-z0-9_.+-]+", "_", part) for part in parts)
    return Path("nearbank-out") / name


def _session_arguments(request: Request, assignments: list[tuple[str, str]], progress: Progress) -> dict:
    return {
        "machine": request.machine,
        "policy": request.policy,
        "host": request.host,
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
        "jobs": request.jobs or len(os.sched_getaffinity(0)),
        "train": request.train,
        "emit_upmem": request.emit_upmem,
        "progress": progress,
    }


def execute(request: Request, progress: Progress, executor=None, workers: int = 1) -> Report:
    """Plan or run once for each combination of machine, ``--set`` values and policy.

    Parameters
    ----------
    request : Request
        The request.
    progress : Progress
        Told about each stage.
    executor : concurrent.futures.Executor, optional
        Where to simulate, instead of processes of this machine.
    workers : int
        How many simulations the executor does at a time.

    Returns
    -------
    Report
        All runs in one document.
    """
    from nearbank import session

    call = session.plan if request.verb == "plan" else session.run
    options = _session_arguments(request, request.assignments, progress)
    if executor is not None:
        options |= {"executor": executor, "workers": workers}
    report = call(request.spec, **options)
    report.document["command"] = ["nearbank", *sys.argv[1:]]
    return report


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
        # A sweep's result is its table of runs.
        is_sweep = len(report.runs) > TABLE_LIMIT and not show_all
        sys.stdout.write(report.to_runs_csv() if is_sweep else report.to_csv())
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
    with contextlib.ExitStack() as stack:
        executor, workers = None, 1
        if request.mpi:
            from nearbank.mpi import rank_executor

            executor, workers = stack.enter_context(rank_executor())
            if executor is None:
                return
        _plan_or_run_here(request, executor, workers)


def _plan_or_run_here(request: Request, executor, workers: int) -> None:
    baseline = None
    if request.baseline:
        from nearbank.baseline import read_baseline

        baseline = read_baseline(request.baseline)
    folder = request.out or default_folder(request)
    existed = folder.exists()
    prepare_folder(folder)
    try:
        with Progress() as progress:
            report = execute(request, progress, executor, workers)
            if baseline is not None:
                report.compare(baseline, str(request.baseline))
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
