# SPDX-License-Identifier: Apache-2.0
"""Runs a job with checkpoints: each is written whole or not at all, and only the same job goes on from it."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from nearbank.errors import NearbankError, make_error
from nearbank.report_files import unwritable
from nearbank.sgd_data import DataSet
from nearbank.sgd_options import JobOptions
from nearbank.sgd_ranks import Ranks
from nearbank.sgd_training import TrainedJob, run_epochs, start_job


def fingerprint(options: JobOptions, data: DataSet, seed: int, shuffle: bool) -> str:
    """Identify a job by what its result depends on.

    Parameters
    ----------
    options : JobOptions
        The job; the number of epochs and of threads does not count.
    data : DataSet
        Training data.
    seed, shuffle
        Order of the rows.

    Returns
    -------
    str
        A hash.
    """
    job = asdict(replace(options, max_iter=1, threads=0))
    digest = hashlib.sha256(json.dumps([job, seed, shuffle, data.num_rows, data.num_features], default=str).encode())
    for array in (data.labels, data.dense, data.offsets, data.indices, data.values):
        if array is not None:
            digest.update(np.ascontiguousarray(array).view(np.uint8))
    digest.update(json.dumps([data.generator, dict(data.shape)]).encode())
    return digest.hexdigest()


def write(file: Path, job: TrainedJob, mark: str, world: Ranks) -> None:
    """Write a checkpoint beside the last one, then put it in its place; all ranks call this.

    Parameters
    ----------
    file : Path
        The checkpoint: a zip archive of a description and the state of each rank.
    job : TrainedJob
        Its history and learning rate are kept.
    mark : str
        What `fingerprint` gave.
    world : Ranks
        The ranks of this run; rank 0 writes.

    Raises
    ------
    DeviceError
        NB0601 or NB0602; the last checkpoint is still there.
    """
    if world.rank != 0:
        world.send_pieces(job.trainer.save)
        return
    about = {"mark": mark, "rate": job.rate, "triedRates": job.tried_rates, "ranks": world.size}
    about |= {"history": job.history, "samples": job.samples}
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as stream:
            with zipfile.ZipFile(stream, "w") as archive:
                archive.writestr("about.json", json.dumps(about))
                for rank in range(world.size):
                    # Pieces: the state of ADMM may fill most of this host's memory.
                    with archive.open(f"state{rank}", "w", force_zip64=True) as member:
                        if rank == 0:
                            job.trainer.save(member.write)
                        else:
                            world.receive_pieces(rank, member.write)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, file)
    except OSError as cause:
        beside.unlink(missing_ok=True)
        raise unwritable(file.parent, cause) from cause


def _other_job(file: Path, actual: str) -> NearbankError:
    return make_error(
        "user",
        "NB0706",
        "the checkpoint is of another job",
        where=str(file),
        expected="the data, machine and options it was written with",
        actual=actual,
        fix="give the same options, or begin anew without --resume",
    )


def read(file: Path, mark: str, num_ranks: int) -> dict[str, Any]:
    """Read what a checkpoint says of its job.

    Parameters
    ----------
    file : Path
        The checkpoint.
    mark : str
        What `fingerprint` gives for the job that wants to go on.
    num_ranks : int
        Ranks of this run.

    Returns
    -------
    dict
        ``rate``, ``triedRates``, ``history`` and ``samples``.

    Raises
    ------
    UserError
        NB0706.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            about = json.loads(archive.read("about.json"))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as cause:
        raise _other_job(file, f"no checkpoint: {cause}") from cause
    if about["mark"] != mark:
        raise _other_job(file, "other data or options")
    if about["ranks"] != num_ranks:
        raise _other_job(file, f"{about['ranks']} ranks, not {num_ranks}")
    return about


def restore(file: Path, job: TrainedJob, rank: int) -> None:
    """Put a job where it was when a checkpoint was written.

    Parameters
    ----------
    file : Path
        A checkpoint that `read` has accepted.
    job : TrainedJob
        The same job, without rounds.
    rank : int
        Rank of this process.

    Raises
    ------
    UserError
        NB0706.
    """
    try:
        with zipfile.ZipFile(file) as archive, archive.open(f"state{rank}") as member:
            job.trainer.restore(member.read)
    except (OSError, KeyError, zipfile.BadZipFile) as cause:
        raise _other_job(file, f"a damaged checkpoint: {cause}") from cause


def run(
    request: Any,
    options: JobOptions,
    data: DataSet,
    test: DataSet | None,
    assignments: tuple,
    file: Path,
    world: Ranks,
    progress: Callable,
) -> TrainedJob:
    """Run a job of the command line, from its checkpoint when asked.

    Parameters
    ----------
    request : TrainRequest
        The command line.
    options : JobOptions
        The job.
    data, test : DataSet
        Scaled rows; `test` may be None.
    assignments : sequence of (str, str)
        Values of the machine to change.
    file : Path
        The checkpoint.
    world : Ranks
        The ranks of this run.
    progress : callable
        As ``progress(stage, done, total)``.

    Returns
    -------
    TrainedJob
        Trained.
    """
    mark = fingerprint(options, data, request.seed, request.shuffle)
    stored = read(file, mark, world.size) if request.resume else None
    job = start_job(
        data,
        options,
        request.seed,
        request.shuffle,
        assignments,
        world.rank,
        world.size,
        rate=stored["rate"] if stored else None,
        progress=progress,
        once=world.once,
    )
    if stored:
        restore(file, job, world.rank)
        job.history = stored["history"]
        job.tried_rates = stored["triedRates"]
        job.samples = stored["samples"]

    def keep(done: TrainedJob) -> None:
        if request.checkpoint_every and len(done.history) % request.checkpoint_every == 0:
            write(file, done, mark, world)

    # One rank's figures are enough.
    train_rows = data.rows(job.settings) if world.rank == 0 else None
    test_rows = None if test is None or world.rank != 0 else test.rows(job.settings)
    run_epochs(
        job,
        request.epochs,
        train_rows,
        test_rows,
        exchange=world.exchange if world.size > 1 else None,
        progress=progress,
        after_epoch=keep,
    )
    return job
