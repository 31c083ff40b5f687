# SPDX-License-Identifier: Apache-2.0
"""The ranks of an MPI job that share the DPUs of a training job."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from nearbank.errors import mpi_unavailable

#: Where launchers put the number of processes: Open MPI; MPICH and its kin.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


@dataclass(frozen=True)
class Ranks:
    """This process among those of its job."""

    rank: int = 0
    size: int = 1
    communicator: Any = None

    def exchange(self, partial: bytes) -> bytes:
        """Join the partial sums of all ranks, in rank order; every rank gets them."""
        return b"".join(self.communicator.allgather(partial))

    def once(self, work: Callable[[], Any]) -> Any:
        """Let rank 0 do some work and give every rank its result."""
        if self.size == 1:
            return work()
        return self.communicator.bcast(work() if self.rank == 0 else None, root=0)

    def send_pieces(self, produce: Callable[[Callable[[bytes], Any]], None]) -> None:
        """Send rank 0 what `produce` hands to its argument piece by piece."""
        produce(lambda piece: self.communicator.send(piece, dest=0))
        self.communicator.send(None, dest=0)

    def receive_pieces(self, rank: int, consume: Callable[[bytes], Any]) -> None:
        """On rank 0, hand on the pieces that a rank sends."""
        while (piece := self.communicator.recv(source=rank)) is not None:
            consume(piece)


@contextlib.contextmanager
def ranks(is_mpi: bool | None) -> Iterator[Ranks]:
    """Give this process's place in the job.

    Parameters
    ----------
    is_mpi : bool or None
        Whether MPI is to be used; None: if a launcher started several processes.

    Yields
    ------
    Ranks
        One rank of one without MPI. A rank that fails ends all of them: the others would wait for ever.

    Raises
    ------
    DeviceError
        NB0604 when mpi4py is not installed, NB0608 when MPI cannot be started.
    """
    if is_mpi is None:
        is_mpi = any(os.environ.get(name, "1") != "1" for name in _SIZES)
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
