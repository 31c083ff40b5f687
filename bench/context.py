# SPDX-License-Identifier: Apache-2.0
"""What every benchmark prints first: machine, commit and load, without which its figures say nothing."""

import os
import platform
import subprocess
from pathlib import Path


def describe() -> str:
    """Say where and on what the figures that follow were measured."""
    root = Path(__file__).resolve().parents[1]
    git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=root, capture_output=True, text=True)
    models = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    warning = (
        "\n# warning: other programs use this machine; the figures below are not results" if load > cores / 2 else ""
    )
    return (
        f"# commit {git.stdout.strip() or 'unknown'}, {models[0] if models else platform.machine()}, "
        f"{cores} cores, load {load:.1f}, Python {platform.python_version()}{warning}"
    )
