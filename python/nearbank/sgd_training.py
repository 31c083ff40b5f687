# SPDX-License-Identifier: Apache-2.0
"""Runs training jobs: learning-rate search, epochs with their figures and times, checkpoints."""

from __future__ import annotations

import json
import math
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearbank import sgd_kernels
from nearbank.dpu_machines import dpu_machine
from nearbank.errors import DeviceError, make_error
from nearbank.sgd_data import DataSet
from nearbank.sgd_options import JobOptions, class_weights, settings_of
from nearbank.sgd_search import search_rate
from nearbank.sgd_times import SimulatedWork, dma_bytes, mean_share, round_seconds, shape_of

#: A sampled round simulates no more entries of rows and model than this, or two steps.
SAMPLE_ENTRIES = 200_000
#: Rounds are run for this long between two looks at the clock, the progress bar and Ctrl-C.
SLICE_SECONDS = 0.3


def _nothing(*_: object) -> None:
    return None


@dataclass
class TrainedJob:
    """A job that has been trained, or is on its way."""

    options: JobOptions
    settings: Mapping[str, Any]
    trainer: Any
    machine: Any
    times: Mapping[str, Any]
    rate: float
    mean_share: float = 1.0  #: Rows of the mean DPU over those of the fullest.
    simulation: Any = None  #: Simulated DPUs, where times are not modelled throughout.
    is_sampling: bool = False  #: Whether this process samples rounds; with simulated DPUs, for the share of DMA only.
    samples: list[dict[str, Any]] = field(default_factory=list)
    tried_rates: list[dict[str, float]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def model(self) -> np.ndarray:
        """Coefficients and, last, the intercept, for the features as the DPUs see them."""
        return self.trainer.model()

    def traffic(self) -> Mapping[str, Any]:
        """Bytes moved so far, per round, and in closed form."""
        return json.loads(self.trainer.traffic())


def check_fit(options: JobOptions, machine: Any, data: DataSet, times: Mapping[str, Any]) -> None:
    """Refuse jobs that the machine cannot hold.

    Parameters
    ----------
    options : JobOptions
        The job.
    machine : nearbank._sgd.DpuMachine
        The machine.
    data : DataSet
        Training data.
    times : mapping
        What `nearbank._sgd.times` gave for it.

    Raises
    ------
    UserError
        NB0705, with the number of DPUs that would do.
    """
    title = "the job does not fit the machine"
    if options.n_dpus > machine.num_dpus:
        raise make_error(
            "user",
            "NB0705",
            title,
            where=f"machine {machine.name}",
            expected=f"at most {machine.num_dpus} DPUs",
            actual=f"{options.n_dpus} DPUs",
            fix=f"--dpus {machine.num_dpus}",
        )
    from nearbank import _sgd

    limit = _sgd.MRAM_BYTES
    if times["mramBytes"] <= limit:
        return

    settings = settings_of(options, 1.0)
    needed = dict(shape_of(data), rows=1)
    without_rows = json.loads(_sgd.times(json.dumps(dict(settings, dpus=1)), machine, json.dumps(needed)))["mramBytes"]
    actual = f"{times['mramBytes']} B: {times['rowsPerDpu']} rows of {data.max_row_entries()} entries and the model"
    expected = f"at most {limit} B of MRAM on each DPU"
    if without_rows > limit:
        fix = "the model alone is too large: hash to fewer features (--hash-bits), or use ga-sgd or ma-sgd"
    else:
        per_row = (times["mramBytes"] - without_rows) / max(1, times["rowsPerDpu"] - 1)
        dpus = math.ceil(data.num_rows / max(1, math.floor((limit - without_rows) / per_row)))
        fix = f"--dpus {dpus} or more" + ("" if dpus <= machine.num_dpus else f", on a machine of {dpus} DPUs")
    raise make_error("user", "NB0705", title, where=machine.name, expected=expected, actual=actual, fix=fix)


def _simulation(options: JobOptions, settings_text: str, rows: Any, machine: Any) -> Any:
    """Load the kernel when the engine or the times need it; ``times="auto"`` does without where it cannot be built."""
    if options.engine == "twin" and options.times == "modelled":
        return None
    try:
        return sgd_kernels.simulation(settings_text, rows, machine, options.engine)
    except DeviceError as error:
        has_no_compiler = error.report.code == "NB0710" or error.report.code == "NB0809"
        if options.engine == "twin" and options.times == "auto" and has_no_compiler:
            return None
        raise


def start_job(
    data: DataSet,
    options: JobOptions,
    seed: int = 0,
    shuffle: bool = False,
    assignments: tuple = (),
    rank: int = 0,
    num_ranks: int = 1,
    initial: np.ndarray | None = None,
    rate: float | None = None,
    progress: Callable = _nothing,
    once: Callable = lambda work: work(),
) -> TrainedJob:
    """Prepare a job: checks, learning rate, rows in the arithmetic of the DPUs.

    Parameters
    ----------
    data : DataSet
        Training data, scaled.
    options : JobOptions
        The job.
    seed : int, default 0
        Of the shuffle and of the rate search.
    shuffle : bool, default False
        Permute the rows once, before they are dealt to the DPUs.
    assignments : sequence of (str, str), default ()
        Values of the machine to change.
    rank, num_ranks : int
        Of an MPI job.
    initial : ndarray, optional
        Coefficients and intercept to start from.
    rate : float, optional
        Learning rate, when ``eta0="auto"`` has already been settled.
    progress : callable
        As ``progress(stage, done, total)``.
    once : callable
        Does what it is given on one of the ranks and gives the result to all.

    Returns
    -------
    TrainedJob
        Ready for `run_epochs`.

    Raises
    ------
    UserError
        NB0101, NB0208, NB0701, NB0702, NB0705.
    """
    from nearbank import _sgd

    options.check()
    machine = dpu_machine(options.machine, assignments)
    weights = (1.0, 1.0) if data.generator else class_weights(options, data.labels, data.classes)
    settings = settings_of(options, 1.0, weights, machine)
    times = json.loads(_sgd.times(json.dumps(settings), machine, json.dumps(shape_of(data))))
    check_fit(options, machine, data, times)
    if not times["hasLinks"]:
        raise make_error(
            "user",
            "NB0705",
            "the job does not fit the machine",
            where=f"machine {machine.name}",
            expected="a link between DPUs, which sync other than server needs",
            actual="none",
            fix=f"--machine upmem-{machine.num_dpus}-link, or --set link.chipGBs=0.7 and so on",
        )
    trials: list[dict[str, float]] = []
    if rate is None and options.eta0 == "auto":
        rate, trials = once(lambda: search_rate(data, options, weights, seed, progress))
    elif rate is None:
        rate = float(options.eta0)
    settings = settings_of(options, rate, weights, machine)
    order = np.random.default_rng(seed).permutation(data.num_rows) if shuffle and not data.generator else None
    rows = data.rows(settings, order)
    text = json.dumps(settings)
    simulation = _simulation(options, text, rows, machine)
    trainer = _sgd.Trainer.make(text, rows, rank, num_ranks, simulation if options.engine != "twin" else None)
    if initial is not None:
        trainer.set_model(np.ascontiguousarray(initial, np.float64))
    is_sampling = simulation is not None and rank == 0
    share = mean_share(data, times, options.n_dpus)
    return TrainedJob(
        options, settings, trainer, machine, times, rate, share, simulation, is_sampling, tried_rates=trials
    )


def _sample(job: TrainedJob, epoch: int) -> None:
    # Which rows are active changes fast at first, then slowly: epochs 1, 2, 4, 8 and so on.
    if job.is_sampling and (epoch + 1) & epoch == 0:
        sample = json.loads(job.trainer.sample_round(job.simulation, SAMPLE_ENTRIES))
        job.samples.append({"epoch": epoch + 1, **sample})


def run_rounds(
    job: TrainedJob, count: int, exchange: Callable | None = None, tick: Callable = _nothing
) -> SimulatedWork:
    """Run rounds.

    Parameters
    ----------
    job : TrainedJob
        The job.
    count : int
        Rounds.
    exchange : callable, optional
        Joins what the ranks give it, in rank order.
    tick : callable
        Called now and then; what it raises ends the run between two rounds.

    Returns
    -------
    SimulatedWork
        What the simulated DPUs of all ranks did; nothing with the twin.
    """
    work = SimulatedWork()
    slice_rounds, done = 1, 0
    while done < count:
        started = time.perf_counter()
        rounds = 1
        if exchange is not None:
            job.trainer.compute_round()
            job.trainer.finish_round(exchange(job.trainer.partial_sums()))
        else:
            rounds = min(slice_rounds, count - done) if job.options.engine == "twin" else 1
            job.trainer.run_rounds(rounds)
        if job.options.engine != "twin":
            each = struct.pack("<3q", *job.trainer.simulated_round)
            ranks = [*struct.iter_unpack("<3q", each if exchange is None else exchange(each))]
            slowest, everybody, dma = zip(*ranks, strict=True)
            work.add(max(slowest), sum(everybody), sum(dma))
        done += rounds
        if time.perf_counter() - started < SLICE_SECONDS / 2:
            slice_rounds *= 2
        tick()
    return work


def _dispersion(job: TrainedJob, exchange: Callable | None) -> float:
    """Root of the mean over all DPUs of ||w_i - m||^2 in the last round, m their mean."""
    squares, of_mean = job.trainer.dispersion()
    if exchange is not None:
        squares = sum(part for (part,) in struct.iter_unpack("<d", exchange(struct.pack("<d", squares))))
    return math.sqrt(max(0.0, squares / job.options.n_dpus - of_mean))


def run_epochs(
    job: TrainedJob,
    epochs: int,
    train_rows=None,
    test_rows=None,
    with_auc: bool = True,
    exchange: Callable | None = None,
    progress: Callable = _nothing,
    after_epoch: Callable = _nothing,
) -> None:
    """Train, and note loss, accuracy, area under the curve and time after each epoch.

    Parameters
    ----------
    job : TrainedJob
        The job; its history grows.
    epochs : int
        Epochs in all, those of the history included.
    train_rows, test_rows : nearbank._sgd.Rows, optional
        What to evaluate on; nothing by default.
    with_auc : bool, default True
        Compute the area under the ROC curve too.
    exchange : callable, optional
        As in `run_rounds`.
    progress : callable
        As ``progress(stage, done, total)``.
    after_epoch : callable
        Called with the job, for checkpoints.
    """
    from nearbank import _sgd

    text = json.dumps(job.settings)
    per_epoch = job.trainer.rounds_per_epoch
    total, began = epochs * per_epoch, time.perf_counter()
    first = job.trainer.num_rounds
    show_left = getattr(progress, "left", None)

    def tick() -> None:
        done = job.trainer.num_rounds
        if show_left and done > first:
            show_left((time.perf_counter() - began) / (done - first) * (total - done))
        progress("train, rounds", done, total)

    while len(job.history) < epochs:
        epoch = len(job.history)
        tick()
        _sample(job, epoch)
        work = run_rounds(job, per_epoch, exchange, tick)
        model = job.trainer.model()
        entry: dict[str, Any] = {"epoch": epoch + 1, "round": job.trainer.num_rounds}
        for prefix, rows in (("", train_rows), ("test", test_rows)):
            if rows is None:
                continue
            figures = json.loads(_sgd.evaluate(text, rows, model, with_auc))
            for name in ("loss", "accuracy", "auc"):
                if name in figures:
                    entry[prefix + (name.capitalize() if prefix else name)] = figures[name]
        entry["seconds"] = round_seconds(job, per_epoch, work)
        entry["mramWramBytes"] = dma_bytes(job, per_epoch, work)
        if job.options.algorithm != "ga-sgd":
            entry["dispersion"] = _dispersion(job, exchange)
        job.history.append(entry)
        after_epoch(job)
    progress("train, rounds", total, total)
