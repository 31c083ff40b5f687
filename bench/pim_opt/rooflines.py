# SPDX-License-Identifier: Apache-2.0
"""Bounds what the paper's CPUs and GPU need for an epoch, from the peaks in their machine files; all modelled."""

from __future__ import annotations

from pathlib import Path

import yaml
from nearbank.machine_files import folder

MACHINES = ("epyc-7742x2", "a100-80g")
#: Rows that do not fit a GPU's memory cross PCIe 4.0 x16 in every epoch: 16 lanes x 16 GT/s, 128b/130b (PCIe 4.0).
PCIE_GBS = 31.5


def roofline(machine: str, rows: int, entries: int, steps: int) -> float:
    """Bound an epoch from below: each row is read once, each step is launched.

    Parameters
    ----------
    machine : str
        One of `MACHINES`.
    rows, entries : int
        Rows, and features or indices of each, of 4 B.
    steps : int
        Steps of the epoch.

    Returns
    -------
    float
        Seconds; modelled. Rows lie in the machine's memory where they fit.
    """
    values = yaml.safe_load((Path(folder()) / f"{machine}.yaml").read_text())["roofline"]
    num_bytes = rows * entries * 4
    fits = num_bytes <= values["capacityMiB"]["value"] * 2**20
    read = num_bytes / (1e9 * (values["bandwidthGBs"]["value"] if fits else PCIE_GBS))
    compute = 4 * rows * entries / (values["peakF32GFlops"]["value"] * 1e9)
    return max(read, compute) + steps * values["launchNs"]["value"] * 1e-9
