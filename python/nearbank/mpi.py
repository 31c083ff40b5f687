# SPDX-License-Identifier: Apache-2.0
"""Spreads simulations over the ranks of an MPI job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor

from nearbank.errors import mpi_unavailable


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

        # A rank talks to the others from two threads: that of the pool and that of the program.
        mpi4py.rc.thread_level = "multiple"
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor
    except (ImportError, RuntimeError) as cause:
        raise mpi_unavailable(cause) from cause
    world = MPI.COMM_WORLD
    with MPICommExecutor(world, root=0) as executor:
        yield executor, max(1, world.size - 1)
