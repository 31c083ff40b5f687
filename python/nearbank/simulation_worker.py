# SPDX-License-Identifier: Apache-2.0
"""Simulates tasks that another process hands over: through a pipe, or as a function of an MPI rank."""

from __future__ import annotations

import ctypes
import json
import signal
import struct
import sys
import time
from typing import Any

_LENGTH = struct.Struct("<Q")


def simulate(task: bytes, options: str) -> dict[str, Any]:
    """Simulate one task.

    Parameters
    ----------
    task : bytes
        As the core's ``Program.prepare`` gives it.
    options : str
        JSON with ``machine``, ``set`` and ``threads``.

    Returns
    -------
    dict
        ``timing`` (text for the core's ``Program.add_simulation``) and ``seconds`` that it took, or ``error`` (parts
        for `nearbank.errors.from_core`).
    """
    import nearbank._core
    from nearbank.errors import NearbankError, parts_of

    started = time.monotonic()
    try:
        timing = nearbank._core.simulate(task, options)
    except NearbankError as error:
        return {"error": parts_of(error)}
    return {"timing": timing, "seconds": time.monotonic() - started}


def write_frame(stream, data: bytes) -> None:
    """Write the length of `data`, then `data`.

    Parameters
    ----------
    stream : binary file
        Where to.
    data : bytes
        The contents.
    """
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read_frame(stream) -> bytes | None:
    """Read what `write_frame` wrote.

    Parameters
    ----------
    stream : binary file
        Where from.

    Returns
    -------
    bytes or None
        None where the stream ends.
    """
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def _die_with_parent() -> None:
    pr_set_pdeathsig = 1  # <sys/prctl.h>
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)


def main() -> None:
    """Simulate what standard input holds until it ends; answers go to standard output."""
    # The parent decides what an interrupt means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while (options := read_frame(source)) is not None and (task := read_frame(source)) is not None:
        write_frame(target, json.dumps(simulate(task, options.decode())).encode())


if __name__ == "__main__":
    main()
