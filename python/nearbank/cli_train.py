# SPDX-License-Identifier: Apache-2.0
"""Carries out `nearbank train`: reads, trains, writes the folder, prints the result."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nearbank.cli_progress import Progress
from nearbank.cli_run import parse_assignments
from nearbank.errors import make_error
from nearbank.report_files import prepare_folder
from nearbank.sgd_data import DataSet, read_data
from nearbank.sgd_options import JobOptions
from nearbank.sgd_scaling import make_scaling


@dataclass(frozen=True)
class TrainRequest:
    """What the command line of `train` asks for; the fields are its options."""

    data: str
    test: str | None = None
    model: str = "lr"
    algorithm: str = "ma-sgd"
    dpus: str = "64"
    tasklets: int = 16
    batch: int = 8
    epochs: int = 10
    machine: str = "upmem-2048"
    arithmetic: str = "q31"
    simulate: str = "twin"
    times: str = "auto"
    compat: str = "default"
    sync: str = "server"
    staleness: int = 0
    average_every: int = 1
    eta0: str = "auto"
    alpha: float = 1e-4
    rho: float = 2.0**-10
    max_weight: float = 64.0
    class_weight: str | None = None
    scale: str = "standard"
    data_format: str = "auto"
    hash_bits: int = 20
    on_bad_line: str = "error"
    threads: int = 0
    seed: int = 0
    shuffle: bool = True
    assignments: tuple[str, ...] = ()
    checkpoint_every: int = 1
    resume: bool = False
    mpi: bool | None = None
    out: Path | None = None
    output_format: str = "text"


def _usage(option: str, expected: str, actual: str):
    return make_error(
        "usage",
        "NB0004",
        "a word on the command line is not valid",
        where=option,
        expected=expected,
        actual=repr(actual),
        fix="nearbank train --help",
    )


def _dpu_counts(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError as cause:
        raise _usage("--dpus", "a number, or several with commas", text) from cause


def _class_weight(text: str | None, classes: tuple) -> Any:
    if text is None or text == "balanced":
        return text
    weights = {}
    for word in text.split(","):
        label, _, weight = word.partition(":")
        try:
            matching = [c for c in classes if str(c) == label or float(c) == float(label)]
            weights[matching[0]] = float(weight)
        except (ValueError, IndexError) as cause:
            raise _usage("--class-weight", f"balanced, or {classes[0]}:W,{classes[1]}:W", text) from cause
    return weights


def job_options(request: TrainRequest, dpus: int, classes: tuple) -> JobOptions:
    """Translate a command line into the options of a job.

    Parameters
    ----------
    request : TrainRequest
        The command line.
    dpus : int
        DPUs of this run.
    classes : tuple
        The two classes.

    Returns
    -------
    JobOptions
        Not checked yet.

    Raises
    ------
    UsageError
        NB0004.
    """
    eta0: Any = request.eta0
    if eta0 != "auto":
        try:
            eta0 = float(eta0)
        except ValueError as cause:
            raise _usage("--eta0", "auto or a number", request.eta0) from cause
    return JobOptions(
        algorithm=request.algorithm,
        model=request.model,
        arithmetic=request.arithmetic,
        compat=request.compat,
        sync=request.sync,
        machine=request.machine,
        n_dpus=dpus,
        n_tasklets=request.tasklets,
        batch_size=request.batch,
        max_iter=request.epochs,
        eta0=eta0,
        alpha=request.alpha,
        rho=request.rho,
        max_weight=request.max_weight,
        average_every=request.average_every,
        staleness=request.staleness,
        class_weight=_class_weight(request.class_weight, classes),
        threads=request.threads,
        engine=request.simulate,
        times=request.times,
    )


def default_folder(request: TrainRequest) -> Path:
    """Name the folder of a report.

    Parameters
    ----------
    request : TrainRequest
        The command line.

    Returns
    -------
    Path
        ``nearbank-out/train-DATA-MODEL-ALGORITHM-DPUS``.
    """
    parts = ("train", Path(request.data).name, request.model, request.algorithm, request.dpus)
    return Path("nearbank-out") / "-".join(re.sub(r"[^A-Za-z0-9_.+-]+", "_", part) for part in parts)


def _read(request: TrainRequest, progress: Callable) -> tuple[DataSet, DataSet | None, Any]:
    progress("read")
    data = read_data(request.data, request.data_format, request.on_bad_line, request.hash_bits)
    test = None
    if request.test is not None:
        classes = None if data.generator else data.classes
        test = read_data(
            request.test, request.data_format, request.on_bad_line, request.hash_bits, data.num_features, classes
        )
        if test.num_features > data.num_features:
            # Features that training never saw have no weight, but rows of both sets share one width.
            data = replace(data, num_features=test.num_features)
    scaling = make_scaling(data, None if request.scale == "none" else request.scale, request.compat == "pim-opt")
    return scaling.apply(data), None if test is None else scaling.apply(test), scaling


def train(request: TrainRequest) -> None:
    """Train, write the folder, print the result.

    Parameters
    ----------
    request : TrainRequest
        The command line.

    Raises
    ------
    NearbankError
        What is wrong with the data, the job or the folder.
    """
    from nearbank import sgd_checkpoint, sgd_document, sgd_ranks

    pairs = tuple(parse_assignments(request.assignments))
    counts = _dpu_counts(request.dpus)
    with sgd_ranks.ranks(request.mpi) as world:
        folder = request.out or default_folder(request)
        if world.rank == 0:
            prepare_folder(folder)
        quiet = contextlib.nullcontext(lambda *_: None)
        with Progress() if world.rank == 0 else quiet as progress:
            data, test, scaling = _read(request, progress)
            runs = []
            for dpus in counts:
                options = job_options(request, dpus, data.classes)
                file = folder / (f"checkpoint-{dpus}.npz" if len(counts) > 1 else "checkpoint.npz")
                job = sgd_checkpoint.run(request, options, data, test, pairs, file, world, progress)
                runs.append(sgd_document.run_entry(request.simulate, job, data, test, scaling))
        if world.rank != 0:
            return
        document = sgd_document.document(runs, ["nearbank", *sys.argv[1:]], _plain(request))
        sgd_document.write_folder(folder, document)
        if request.output_format == "json":
            print(json.dumps(document, indent=2))
        else:
            print(sgd_document.text(document))
            print(f"report: {folder / 'report.html'}", file=sys.stderr)


def _plain(request: TrainRequest) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(request).items()}
