# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the programs of a pim-ml checkout under Nearbank and prints a table of what passed.

python bench/upmem_pim_ml.py PATH/TO/pim-ml --dpus 1,4 --tasklets 8,12
The checkout is copied. Programs that read a SUSY file get a generated one: only the path of that file is changed.
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
from pathlib import Path

ROWS, COLUMNS = 1024, 18


def generate(folder: Path) -> bool:
    """Point the program's file names to generated rows; tell whether it reads a file at all."""
    source = folder / "host" / "app.c"
    text = source.read_text()
    reads = "SUSY" in folder.name
    choice = random.Random(3)
    for number, path in enumerate(sorted(set(re.findall(r'fopen\("([^"]+\.csv)"', text)))):
        file = folder / f"generated{number}.csv"
        whole = "int" in Path(path).name
        rows = []
        for _ in range(ROWS):
            values = [choice.uniform(-1, 1) for _ in range(COLUMNS)]
            label = choice.randrange(2)
            cells = [round(v * 100) if whole else round(v, 6) for v in values]
            first = [label, cells[0]] if "Logistic" in str(folder) else [cells[0], label]
            rows.append(",".join(map(str, [*first, *cells[1:]])))
        file.write_text("\n".join(rows) + "\n")
        text = text.replace(path, str(file))
    source.write_text(text)
    return reads


def outcome(folder: Path, reads: bool, dpus: int, tasklets: int, seconds: int) -> tuple[str, str]:
    """Build and run one program; return its state and the line that tells why."""
    subprocess.run(["make", "clean"], cwd=folder, capture_output=True)
    make = ["make", f"NR_DPUS={dpus}", f"NR_TASKLETS={tasklets}"]
    if reads and "Logistic" in str(folder):
        make.append("BL=0")  # Blocks of whole rows: with 18 bytes a row, others begin at unaligned addresses.
    built = subprocess.run(make, cwd=folder, capture_output=True, text=True)
    if built.returncode:
        return "not built", next((line for line in built.stderr.splitlines() if "error" in line), "")
    arguments = ["-i", "4", "-m", str(ROWS), "-n", str(COLUMNS if reads else 16)]
    if "'w'" in (folder / "support" / "params.h").read_text():
        arguments += ["-w", "0", "-e", "1"]
    try:
        done = subprocess.run(
            ["./bin/host_code", *arguments], cwd=folder, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return "timeout", ""
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    if "[OK]" in text:
        return "passed", ""
    fault = re.search(r"actual: .*", text)
    if "[ERROR]" in text and re.search(
        r"//\s*(GD_host|trainning_host|training_host|train_host)", (folder / "host" / "app.c").read_text()
    ):
        return "ran", "its reference computation is commented out"
    return "failed", fault[0] if fault else (text.strip().splitlines() or [""])[-1][:150]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--dpus", default="4")
    parser.add_argument("--tasklets", default="12")
    parser.add_argument("--timeout", type=int, default=120, help="seconds a run may take")
    options = parser.parse_args()
    if not shutil.which("dpu-upmem-dpurte-clang"):
        sys.exit('dpu-upmem-dpurte-clang is not on PATH: eval "$(nearbank upmem env)"')
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "pim-ml"
        shutil.copytree(options.checkout, root, ignore=shutil.ignore_patterns(".git"))
        for makefile in sorted(root.glob("*/*/*/Makefile")):
            folder = makefile.parent
            if not (folder / "dpu").exists():
                continue
            reads = generate(folder)
            for dpus in map(int, options.dpus.split(",")):
                for tasklets in map(int, options.tasklets.split(",")):
                    state, why = outcome(folder, reads, dpus, tasklets, options.timeout)
                    counts[state] = counts.get(state, 0) + 1
                    print(f"{str(folder.relative_to(root)):70} {dpus:3} {tasklets:3} {state:9} {why}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    return 0 if set(counts) == {"passed"} else 1


if __name__ == "__main__":
    os.environ.setdefault("NEARBANK_TIMEOUT_CYCLES", "20000000000")
    sys.exit(main())
