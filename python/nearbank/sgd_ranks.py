# SPDX-License-Identifier: Apache-2.0
"""The ranks of an MPI job that share the DPUs of a training job."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nearbank.errors import mpi_unavailable


@dataclass(frozen=True)
class Ranks:
    """This process among those of its job."""

    rank: int = 0
    size: int = 1
    communicator: Any = None

    def exchange(self, partial: bytes) -> bytes:
        """Join the partial sums of all ranks, in rank order; every rank gets them."""
        return b"".join(self.communicator.allgather(partial))

    def gather(self, state: bytes) -> list[bytes] | None:
        """Collect the states of all ranks on rank 0."""
        return [state] if self.size == 1 else self.communicator.gather(state, root=0)


@contextlib.contextmanager
def ranks(is_mpi: bool) -> Iterator[Ranks]:
    """Give this process's place in the job.

    Parameters
    ----------
    is_mpi : bool
        Whether MPI is to be used.

    Yields
    ------
    Ranks
        One rank of one without MPI. A rank that fails ends all of them: the others would wait for ever.

    Raises
    ------
    DeviceError
        NB0604 when mpi4py is not installed, NB0608 when MPI cannot be started.
    """
    if not is_mpi:
        yield Ranks()
        return
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as cause:
        raise mpi_unavailable(cause) from cause
    world = MPI.COMM_WORLD
    try:
        yield Ranks(world.rank, world.size, world)
    except BaseException as error:
        if world.size == 1:
            raise
        from nearbank import cli_failure

        code = cli_failure.report_failure(error, sys.argv[1:])
        sys.stdout.flush()
        sys.stderr.flush()
        world.Abort(code)
