# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the PrIM benchmarks of a checkout under Nearbank and prints a table of what passed.

python bench/upmem_prim.py PATH/TO/prim-benchmarks --dpus 1,4 --tasklets 1,16
Missing inputs of BFS and SpMV are generated. The checkout is copied, not changed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Program -> (make variables, host program, arguments); sizes are small enough for a run of seconds.
PROGRAMS = {
    "VA": ("BL=10", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "GEMV": ("BL=10", "gemv_host", "-w 0 -e 1 -m 1024 -n 256"),
    "SpMV": ("", "host_code", "-v 1 -f data/generated.mtx"),
    "SEL": ("BL=10", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "UNI": ("BL=10", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "BS": ("BL=10", "bs_host", "-w 0 -e 1 -i 8192"),
    "TS": ("BL=10", "ts_host", "-w 0 -e 1 -n 8192"),
    "BFS": ("", "host_code", "-v 1 -f data/generated.txt"),
    "MLP": ("BL=10", "mlp_host", "-w 0 -e 1 -m 1024 -n 256"),
    "NW": ("BL=10 BL_IN=2", "nw_host", "-w 0 -e 1 -n 256"),
    "HST-S": ("BL=10", "host_code", "-w 0 -e 1 -b 256 -x 1 -i 65536"),
    "HST-L": ("BL=10", "host_code", "-w 0 -e 1 -b 256 -x 1 -i 65536"),
    "RED": ("BL=10", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "SCAN-SSA": ("BL=10", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "SCAN-RSS": ("BL=10", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "TRNS": ("", "host_code", "-w 0 -e 1 -p 8 -o 64 -x 1"),
}


def generate_inputs(root: Path) -> None:
    """Write a random graph for BFS and a random matrix for SpMV, both in PrIM's text format."""
    choice = random.Random(1)
    edges = sorted({(choice.randrange(2048), choice.randrange(2048)) for _ in range(16384)})
    (root / "BFS" / "data").mkdir(parents=True, exist_ok=True)
    text = [f"2048 2048 {len(edges)}", *(f"{a} {b}" for a, b in edges)]
    (root / "BFS" / "data" / "generated.txt").write_text("\n".join(text) + "\n")
    (root / "SpMV" / "data").mkdir(parents=True, exist_ok=True)
    text = [f"2048 2048 {len(edges)}", *(f"{a + 1} {b + 1}" for a, b in edges)]
    (root / "SpMV" / "data" / "generated.mtx").write_text("\n".join(text) + "\n")


def run(folder: Path, variables: str, host: str, arguments: str, dpus: int, tasklets: int, seconds: int):
    """Build and run one program; return (state, seconds, last line)."""
    define = [f"NR_DPUS={dpus}", f"NR_TASKLETS={tasklets}", *variables.split()]
    subprocess.run(["make", "clean"], cwd=folder, capture_output=True)
    built = subprocess.run(["make", *define], cwd=folder, capture_output=True, text=True)
    if not (folder / "bin" / host).exists():
        errors = [line for line in built.stderr.splitlines() if "error" in line] or ["no host program"]
        return "not built", 0.0, errors[0]
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [f"./bin/{host}", *arguments.split()], cwd=folder, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return "timeout", float(seconds), ""
    took = time.monotonic() - begin
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    bad = re.search(r"Outputs differ|Mismatch|ERROR|is different|error\[", text)
    if done.returncode == 0 and not bad:
        return "passed", took, ""
    lines = text.strip().splitlines()
    return "failed", took, next((line for line in lines if bad and bad[0] in line), lines[-1] if lines else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--dpus", default="1,4")
    parser.add_argument("--tasklets", default="1,16")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--timeout", type=int, default=120, help="seconds a run may take")
    options = parser.parse_args()
    if not shutil.which("dpu-upmem-dpurte-clang"):
        sys.exit('dpu-upmem-dpurte-clang is not on PATH: eval "$(nearbank upmem env)"')
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "prim"
        shutil.copytree(options.checkout, root, ignore=shutil.ignore_patterns(".git"))
        generate_inputs(root)
        print(f"{'program':9} {'dpus':>4} {'tasklets':>8} {'state':9} {'s':>6}")
        for name in options.programs.split(","):
            for dpus in map(int, options.dpus.split(",")):
                for tasklets in map(int, options.tasklets.split(",")):
                    state, took, why = run(root / name, *PROGRAMS[name], dpus, tasklets, options.timeout)
                    counts[state] = counts.get(state, 0) + 1
                    print(f"{name:9} {dpus:4} {tasklets:8} {state:9} {took:6.1f} {why}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    return 0 if set(counts) == {"passed"} else 1


if __name__ == "__main__":
    os.environ.setdefault("NEARBANK_TIMEOUT_CYCLES", "20000000000")
    sys.exit(main())
