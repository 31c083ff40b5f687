# SPDX-License-Identifier: Apache-2.0
"""Machines with DPUs, as training jobs see them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nearbank.errors import make_error

#: Values of UPMEM's v1A with their sources; docs/model.md, TM-1 to TM-6.
UPMEM_V1A = {
    "clockMHz": 350.0,
    "mramBytes": 64 << 20,
    "pipelineDepth": 11,
    "dmaReadCycles": 77.0,
    "dmaWriteCycles": 61.0,
    "dmaCyclesPerByte": 0.5,
    "launchSeconds": 150e-6,
    "hostBandwidthGBs": 19.2,
    "linkGBs": 0.0,
    "linkLatencySeconds": 0.0,
}
#: What-if: one byte a cycle between neighbours, and 100 ns a hop. No such hardware exists.
WHAT_IF_LINK = {"linkGBs": 0.35, "linkLatencySeconds": 100e-9}


def dpu_machine(name: str, assignments: Sequence[tuple[str, str]] = ()) -> Mapping[str, Any]:
    """Look a machine up.

    Parameters
    ----------
    name : str
        ``upmem-N`` for N DPUs, or ``upmem-N-link`` for the same with a modelled link between DPUs.
    assignments : sequence of (str, str), default ()
        Values to change, for example ``("linkGBs", "0.7")``.

    Returns
    -------
    mapping
        Values as `nearbank._sgd` takes them, and ``name``.

    Raises
    ------
    UserError
        NB0101 for an unknown machine, NB0103 for an unknown value.
    """
    match = re.fullmatch(r"upmem-(\d+)(-link)?", name)
    if not match or not 1 <= int(match[1]) <= 1 << 20:
        raise make_error(
            "user",
            "NB0101",
            "unknown machine",
            where=f"--machine {name}",
            expected="upmem-N for N DPUs, for example upmem-2048, or upmem-N-link",
            actual=repr(name),
            fix="--machine upmem-2048",
        )
    machine = {"name": name, "numDpus": int(match[1]), **UPMEM_V1A, **(WHAT_IF_LINK if match[2] else {})}
    for key, value in assignments:
        if key not in UPMEM_V1A:
            raise make_error(
                "user",
                "NB0103",
                "unknown key in a machine description",
                where=f"--set {key}={value}",
                expected="one of " + ", ".join(UPMEM_V1A),
                actual=key,
            )
        machine[key] = type(UPMEM_V1A[key])(float(value))
    return machine
