# SPDX-License-Identifier: Apache-2.0
"""Spreads simulations over the ranks of an MPI job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor

from nearbank.errors import make_error


@contextlib.contextmanager
def rank_executor() -> Iterator[tuple[Executor | None, int]]:
    """Offer the ranks of this MPI job as an executor; all ranks call this.

    Yields
    ------
    (concurrent.futures.Executor or None, int)
        On rank 0 an executor (mpi4py's MPIPoolExecutor) and how many tasks it does at a time. On the others None, after
        they have served until rank 0 was done: they have nothing more to do.

    Raises
    ------
    DeviceError
        NB0604 when mpi4py is not installed, NB0608 when MPI cannot be started.
    """
    try:
        import mpi4py
    except ImportError as cause:
        raise make_error(
            "device",
            "NB0604",
            "a Python package is missing",
            where="--mpi",
            expected="mpi4py, and an MPI library",
            fix="apt-get install openmpi-bin, then pip install mpi4py",
        ) from cause
    # A rank talks to the others from two threads: that of the pool and that of the program.
    mpi4py.rc.thread_level = "multiple"
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor
    except (ImportError, RuntimeError) as cause:
        raise make_error(
            "device",
            "NB0608",
            "MPI cannot be started",
            where="--mpi",
            expected="an MPI library that mpi4py finds",
            actual=str(cause),
            fix="apt-get install openmpi-bin",
        ) from cause
    world = MPI.COMM_WORLD
    with MPICommExecutor(world, root=0) as executor:
        yield executor, max(1, world.size - 1)
