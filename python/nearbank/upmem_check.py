# SPDX-License-Identifier: Apache-2.0
"""Runs a host program whose DPU programs are watched for what hardware would not forgive."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nearbank.errors import make_error


def run(command: Sequence[str]) -> tuple[str, int]:
    """Run a program; the host library prints each finding to stderr as it comes.

    Parameters
    ----------
    command : sequence of str
        The host program and its arguments.

    Returns
    -------
    verdict : str
        One line for stdout.
    code : int
        The program's exit code; 1 when it is 0 and there are findings.

    Raises
    ------
    UserError
        NB0811 when the program cannot be started.
    """
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "check.json"
        try:
            code = subprocess.run(list(command), env={**os.environ, "NEARBANK_UPMEM_CHECK": str(counts)}).returncode
        except OSError as problem:
            raise make_error(
                "user", "NB0811", "the program cannot be started", where=command[0], actual=problem.strerror or ""
            ) from problem
        if not counts.exists():
            return "check: the program launched no DPU", code
        found = json.loads(counts.read_text(encoding="utf-8"))
    launches = f"{found['launches']} launch{'es' if found['launches'] != 1 else ''}"
    total = found["findings"] + found["faults"]
    if not total:
        return f"check: nothing found in {launches}", code
    faults = f" and {found['faults']} DPU faults" if found["faults"] else ""
    return f"check: {found['findings']} findings{faults} in {launches}", code or 1
