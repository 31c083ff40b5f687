# SPDX-License-Identifier: Apache-2.0
"""Compares the engines exact and fast on the PrIM benchmarks of a checkout: cycles of each launch, then speed.

python bench/upmem_speed.py PATH/TO/prim-benchmarks --dpus 1 --tasklets 1,8,11,16,24
Speed is in millions of DPU instructions for a second of processor time (measured), on one host thread; translation is
in the first figure of fast, not in the second, for which native code comes from NEARBANK_HOME.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import upmem_checkout
import upmem_prim
from upmem_checkout import Outcome

#: What docs/model.md promises of the cycles of a launch.
LARGEST_ERROR = 0.02
#: Program -> arguments with which `fast` runs for a tenth of a second or more.
LARGE = {
    "VA": "-w 0 -e 1 -i 8388608 -x 1",
    "GEMV": "-w 0 -e 1 -m 8192 -n 1024",
    "HST-S": "-w 0 -e 1 -b 256 -x 1 -i 8388608",
    "BS": "-w 0 -e 1 -i 131072",
}


def run(folder: Path, command: list[str], engine: str, seconds: int, home: str) -> tuple[Outcome, dict]:
    """Run a program in one engine; return how it ended, and its statistics."""
    statistics = folder / f"{engine}.json"
    statistics.unlink(missing_ok=True)
    found = upmem_checkout.run(
        folder,
        command,
        seconds,
        NEARBANK_UPMEM=engine,
        NEARBANK_STATS=str(statistics),
        NEARBANK_THREADS="1",
        NEARBANK_HOME=home,
    )
    return found, json.loads(statistics.read_text()) if statistics.exists() else {}


def launches(statistics: dict) -> list[dict]:
    return [event for event in statistics["events"] if event["what"] == "launch"]


def compare(folder: Path, command: list[str], seconds: int, home: str) -> Outcome:
    """Run a program in both engines; "off" when the cycles of a launch differ by more than LARGEST_ERROR."""
    exact, exact_statistics = run(folder, command, "exact", seconds, home)
    if exact.state != "passed":
        return exact
    fast, fast_statistics = run(folder, command, "fast", seconds, home)
    if fast.state != "passed":
        return Outcome(fast.state, f"fast: {fast.why}")
    pairs = list(zip(launches(exact_statistics), launches(fast_statistics), strict=True))
    errors = [ours["maxCycles"] / theirs["maxCycles"] - 1 for theirs, ours in pairs]
    worst = max(errors, key=abs, default=0.0)
    cycles = sum(theirs["maxCycles"] for theirs, _ in pairs)
    state = "passed" if abs(worst) <= LARGEST_ERROR else "off"
    return Outcome(state, f"{len(pairs)} launches, {cycles} cycles, worst {worst:+.3%}", "", exact.seconds)


def speed(statistics: dict) -> float:
    return sum(event["instructions"] for event in launches(statistics)) / 1e6 / statistics["launchCpuSeconds"]


def show_speed(root: Path, seconds: int) -> None:
    print("program    exact  fast, translating    fast  fast / exact   (million DPU instructions a second, measured)")
    for name, arguments in LARGE.items():
        _, command = upmem_prim.build(root, name, 1, 16)
        command = [command[0], *arguments.split()]
        with tempfile.TemporaryDirectory() as home:
            exact, first, second = (
                speed(run(root / name, command, engine, seconds, home)[1]) for engine in ("exact", "fast", "fast")
            )
        print(f"{name:8} {exact:7.1f} {first:18.0f} {second:7.0f} {second / exact:13.1f}", flush=True)


def main() -> int:
    chosen = upmem_checkout.options(__doc__.splitlines()[0], "1", "1,16")
    with upmem_checkout.copied(chosen.checkout) as root, tempfile.TemporaryDirectory() as home:
        upmem_prim.generate_inputs(root)

        def outcome(name: str, dpus: int, tasklets: int) -> Outcome:
            failure, command = upmem_prim.build(root, name, dpus, tasklets)
            return failure or compare(root / name, command, chosen.timeout, home)

        code = upmem_checkout.table(list(upmem_prim.PROGRAMS), chosen, outcome)
        show_speed(root, chosen.timeout)
        return code


if __name__ == "__main__":
    sys.exit(main())
