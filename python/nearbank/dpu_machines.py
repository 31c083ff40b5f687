# SPDX-License-Identifier: Apache-2.0
"""Machines with DPUs, as training jobs see them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from nearbank import machine_files
from nearbank.errors import make_error


def dpu_machine(name: str, assignments: Sequence[tuple[str, str]] = ()):
    """Look a machine up.

    Parameters
    ----------
    name : str
        ``upmem-N`` for N DPUs, ``upmem-N-link`` for the same with modelled links between DPUs, or a machine file of
        kind upmem.
    assignments : sequence of (str, str), default ()
        Values to change, for example ``("link.chipGBs", "1.4")``.

    Returns
    -------
    nearbank._sgd.DpuMachine
        The machine.

    Raises
    ------
    UserError
        NB0101 for an unknown machine, NB0103 for an unknown value, NB0102 to NB0107 for a bad machine file.
    """
    from nearbank import _sgd

    if name.endswith((".yaml", ".yml")):
        return _sgd.DpuMachine.read(name, 0, list(assignments))
    match = re.fullmatch(r"upmem-(\d+)(-link)?", name)
    if not match or not 1 <= int(match[1]) <= 1 << 20:
        raise make_error(
            "user",
            "NB0101",
            "unknown machine",
            where=f"--machine {name}",
            expected="upmem-N for N DPUs, for example upmem-2048, upmem-N-link, or a machine file",
            actual=repr(name),
            fix="--machine upmem-2048",
        )
    file = Path(machine_files.folder()) / "upmem" / f"upmem-v1a{match[2] or ''}.yaml"
    return _sgd.DpuMachine.read(str(file), int(match[1]), list(assignments))
