# SPDX-License-Identifier: Apache-2.0
"""Measures `nearbank run minilm` with an empty profile database and again: wall time and peak memory."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from context import describe


def run(command: list[str], home: str) -> tuple[float, float]:
    """Return wall time in s and peak resident memory in GiB, of the largest process."""
    started = time.monotonic()
    process = subprocess.Popen(
        command, env={**os.environ, "NEARBANK_HOME": home}, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)} failed with status {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - started, usage.ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", nargs="?", default="minilm")
    parser.add_argument("--warm", type=int, default=2, help="warm runs")
    options = parser.parse_args()
    print(describe())
    command = [str(Path(sys.executable).parent / "nearbank"), "run", options.spec, "--machine", "nmc-64"]
    with tempfile.TemporaryDirectory() as home:
        for kind in ["cold", *["warm"] * options.warm]:
            seconds, memory = run([*command, "--out", str(Path(home) / "out")], home)
            print(f"{kind}: {seconds:6.1f} s wall, {memory:5.2f} GiB peak", flush=True)


if __name__ == "__main__":
    main()
