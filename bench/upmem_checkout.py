# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks over checkouts of UPMEM programs share: copies, builds, runs, and the table of outcomes."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from context import describe
from nearbank import upmem_home


def environment() -> dict[str, str]:
    """Return the environment of `nearbank upmem env`, with an end to endless loops."""
    home = upmem_home.folder()
    limit = os.environ.get("NEARBANK_TIMEOUT_CYCLES", "20000000000")
    path = f"{home}/bin:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "UPMEM_HOME": str(home), "NEARBANK_TIMEOUT_CYCLES": limit}


@dataclass
class Outcome:
    """How one program ended."""

    state: str  # "passed", "failed", "not allowed", "not built" or "timeout"; programs may add their own.
    why: str = ""
    text: str = ""  # What it printed.
    seconds: float = 0.0


def build(folder: Path, *variables: str) -> Outcome | None:
    """Run make afresh; return an outcome when it fails."""
    subprocess.run(["make", "clean"], cwd=folder, env=environment(), capture_output=True)
    done = subprocess.run(["make", *variables], cwd=folder, env=environment(), capture_output=True, text=True)
    # Some Makefiles build baselines that need more than is here, after what counts.
    if done.returncode and not list((folder / "bin").glob("*host*")) or "dpu-upmem-dpurte-clang" in done.stderr:
        return Outcome("not built", next((line for line in done.stderr.splitlines() if "error" in line), ""))
    return None


def run(folder: Path, command: list[str], seconds: int, **changes: str) -> Outcome:
    """Run a program: "passed" when it exits with 0 and prints no error."""
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env={**environment(), **changes}, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return Outcome("timeout", seconds=seconds)
    except FileNotFoundError:
        return Outcome("not built", f"no {command[0]}")
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    lines = text.strip().splitlines()
    bad = next((line for line in lines if re.search(r"Outputs differ|Mismatch|ERROR|is different|error\[", line)), "")
    if not bad and done.returncode:
        bad = lines[-1] if lines else f"exit code {done.returncode}"
    state = "failed" if bad else "passed"
    # Host programs refuse numbers of DPUs or tasklets; some allocate more WRAM a tasklet than there is for so many.
    if "Assertion `" in text:
        state, bad = "not allowed", text.split("Assertion `")[1].split("'")[0]
    elif full := re.search(r"WRAM heap is full", text):
        state, bad = "not allowed", full[0]
    return Outcome(state, bad[:150], text, time.monotonic() - begin)


@contextmanager
def copied(checkout: Path) -> Iterator[Path]:
    """Copy a checkout, which stays as it is."""
    with tempfile.TemporaryDirectory() as scratch:
        yield Path(shutil.copytree(checkout, Path(scratch) / "copy", ignore=shutil.ignore_patterns(".git")))


def options(description: str, dpus: str, tasklets: str) -> argparse.Namespace:
    """Parse the command line that all share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--dpus", default=dpus, help="numbers of DPUs, with commas")
    parser.add_argument("--tasklets", default=tasklets, help="numbers of tasklets, with commas")
    parser.add_argument("--programs", default="", help="only these, with commas")
    parser.add_argument("--timeout", type=int, default=120, help="seconds a run may take")
    return parser.parse_args()


def table(names: list[str], chosen: argparse.Namespace, outcome: Callable[[str, int, int], Outcome]) -> int:
    """Print a line for every program, number of DPUs and number of tasklets; return the exit code."""
    counts: Counter[str] = Counter()
    print(describe())
    width = max(map(len, names))
    print(f"{'program':{width}} dpus tasklets state          s")
    for name in names:
        if chosen.programs and name not in chosen.programs.split(","):
            continue
        for dpus in map(int, chosen.dpus.split(",")):
            for tasklets in map(int, chosen.tasklets.split(",")):
                found = outcome(name, dpus, tasklets)
                counts[found.state] += 1
                line = f"{name:{width}} {dpus:4} {tasklets:8} {found.state:9} {found.seconds:6.1f} {found.why}"
                print(line.rstrip(), flush=True)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    return 0 if set(counts) <= {"passed", "not allowed"} else 1
