# SPDX-License-Identifier: Apache-2.0
"""The options of `nearbank train`; what they do is imported when the verb runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_EXAMPLE = "Example: nearbank train --data a9a --test a9a.t --model lr --algorithm admm --dpus 64"
_SHORT = "Train a linear model over simulated DPUs."


class Model(StrEnum):
    """Linear models."""

    lr = "lr"
    svm = "svm"


class Algorithm(StrEnum):
    """Distributed algorithms."""

    ga_sgd = "ga-sgd"
    ma_sgd = "ma-sgd"
    admm = "admm"


class Arithmetic(StrEnum):
    """Number types of the DPUs."""

    q31 = "q31"
    f32 = "f32"


class Compat(StrEnum):
    """Whose arithmetic."""

    default = "default"
    pim_opt = "pim-opt"


class Sync(StrEnum):
    """Who combines what DPUs computed."""

    server = "server"
    ring = "ring"
    gossip = "gossip"
    in_network = "in-network"
    shared_chip = "shared-chip"
    shared_rank = "shared-rank"


class Engine(StrEnum):
    """What computes, and where times come from."""

    twin = "twin"
    exact = "exact"
    fast = "fast"


class Times(StrEnum):
    """Where the twin's times of DPU work come from."""

    auto = "auto"
    sampled = "sampled"
    modelled = "modelled"


class OnBadLine(StrEnum):
    """What a malformed line does."""

    error = "error"
    skip = "skip"


class DataFormat(StrEnum):
    """File formats."""

    auto = "auto"
    libsvm = "libsvm"
    criteo = "criteo"
    npz = "npz"
    parquet = "parquet"


class Scale(StrEnum):
    """How dense features come into [-1, 1]."""

    standard = "standard"
    minmax = "minmax"
    none = "none"


class TrainFormat(StrEnum):
    """How the result is printed on stdout."""

    text = "text"
    json = "json"


def _train(
    data: Annotated[
        str, typer.Option(metavar="FILE", help="Training rows, or a generator: yfcc-like:ROWS, criteo-like:ROWS.")
    ],
    test: Annotated[str | None, typer.Option(metavar="FILE", help="Rows to test on.")] = None,
    model: Annotated[Model, typer.Option(help="Logistic regression or linear SVM.")] = Model.lr,
    algorithm: Annotated[
        Algorithm, typer.Option(help="Average gradients, average models, or agree by ADMM.")
    ] = Algorithm.ma_sgd,
    dpus: Annotated[str, typer.Option(metavar="N", help="DPUs; several with commas show the scaling.")] = "64",
    tasklets: Annotated[int, typer.Option(metavar="T", help="Threads of each DPU, 1 to 24.")] = 16,
    batch: Annotated[int, typer.Option(metavar="B", help="Rows of one step on one DPU; a power of two in q31.")] = 8,
    epochs: Annotated[int, typer.Option(metavar="E", help="Passes over the data.")] = 10,
    machine: Annotated[
        str, typer.Option(metavar="NAME", help="upmem-N, or upmem-N-link with links between DPUs.")
    ] = "upmem-2048",
    arithmetic: Annotated[Arithmetic, typer.Option(help="32-bit fixed point, or float32.")] = Arithmetic.q31,
    simulate: Annotated[
        Engine,
        typer.Option(help="twin computes natively with the same bits; exact and fast simulate the DPUs."),
    ] = Engine.twin,
    times: Annotated[
        Times,
        typer.Option(help="Twin: simulate some rounds of a DPU, or take closed forms; auto: simulate if possible."),
    ] = Times.auto,
    compat: Annotated[
        Compat, typer.Option(help="pim-opt reproduces PIM-Opt's arithmetic to the bit.")
    ] = Compat.default,
    sync: Annotated[Sync, typer.Option(help="Who combines models: the host, or the DPUs over links.")] = Sync.server,
    staleness: Annotated[int, typer.Option(metavar="N", help="Rounds a DPU's model may be behind.")] = 0,
    average_every: Annotated[
        int, typer.Option(metavar="N", help="Batches between averages of ma-sgd; 0: once an epoch.")
    ] = 1,
    eta0: Annotated[str, typer.Option(metavar="RATE|auto", help="Learning rate; auto tries some.")] = "auto",
    alpha: Annotated[float, typer.Option(metavar="A", help="Strength of the regulariser.")] = 1e-4,
    rho: Annotated[float, typer.Option(metavar="R", help="Penalty of ADMM.")] = 2.0**-10,
    max_weight: Annotated[
        float, typer.Option(metavar="W", help="Largest weight in q31, for features in [-1, 1].")
    ] = 64.0,
    class_weight: Annotated[
        str | None, typer.Option(metavar="balanced|C:W,C:W", help="Weights of the classes.")
    ] = None,
    scale: Annotated[Scale, typer.Option(help="How dense features come into [-1, 1].")] = Scale.standard,
    data_format: Annotated[DataFormat, typer.Option(help="Format of --data and --test.")] = DataFormat.auto,
    hash_bits: Annotated[int, typer.Option(min=8, max=28, metavar="K", help="Criteo: hash to 2^K features.")] = 20,
    on_bad_line: Annotated[OnBadLine, typer.Option(help="Stop at a malformed line, or skip it.")] = OnBadLine.error,
    threads: Annotated[int, typer.Option(min=0, metavar="N", help="Host threads; 0: all cores.")] = 0,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the shuffle and the rate search.")] = 0,
    shuffle: Annotated[bool, typer.Option(help="Permute rows before they are dealt to the DPUs.")] = True,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the machine. Repeatable.")
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(min=0, metavar="N", help="Epochs between checkpoints in the folder; 0: none.")
    ] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in the folder.")] = False,
    mpi: Annotated[
        bool | None,
        typer.Option("--mpi/--no-mpi", help="Share the DPUs among the ranks of an MPI job; by default under mpirun."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="DIR", help="Folder of the report; default nearbank-out/train-…"),
    ] = None,
    output_format: Annotated[TrainFormat, typer.Option("--format", help="What stdout carries.")] = TrainFormat.text,
) -> None:
    from nearbank import cli_train

    cli_train.train(
        cli_train.TrainRequest(
            data=data,
            test=test,
            model=model.value,
            algorithm=algorithm.value,
            dpus=dpus,
            tasklets=tasklets,
            batch=batch,
            epochs=epochs,
            machine=machine,
            arithmetic=arithmetic.value,
            simulate=simulate.value,
            times=times.value,
            compat=compat.value,
            sync=sync.value,
            staleness=staleness,
            average_every=average_every,
            eta0=eta0,
            alpha=alpha,
            rho=rho,
            max_weight=max_weight,
            class_weight=class_weight,
            scale=scale.value,
            data_format=data_format.value,
            hash_bits=hash_bits,
            on_bad_line=on_bad_line.value,
            threads=threads,
            seed=seed,
            shuffle=shuffle,
            assignments=tuple(assignments or ()),
            checkpoint_every=checkpoint_every,
            resume=resume,
            mpi=mpi,
            out=out,
            output_format=output_format.value,
        )
    )


def register(app: typer.Typer) -> None:
    """Add the verb to the command line.

    Parameters
    ----------
    app : typer.Typer
        The command line.
    """
    app.command("train", short_help=_SHORT, help=f"{_EXAMPLE}\n\n{_SHORT}")(_train)
