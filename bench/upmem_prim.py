# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the PrIM benchmarks of a checkout under Nearbank and prints a table of what passed.

python bench/upmem_prim.py PATH/TO/prim-benchmarks --dpus 1,4,64 --tasklets 1,8,11,16,24
Missing inputs of BFS and SpMV are generated. The checkout is copied, not changed.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import upmem_checkout
from upmem_checkout import Outcome

#: Program -> (make variables, host program, arguments); sizes are small enough for a run of seconds. 1 KB blocks of 24
#: tasklets are more than WRAM holds; TS searches nothing in slices of one query (256).
PROGRAMS = {
    "VA": ("BL={block}", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "GEMV": ("BL={block}", "gemv_host", "-w 0 -e 1 -m 1024 -n 256"),
    "SpMV": ("", "host_code", "-v 1 -f data/generated.mtx"),
    "SEL": ("BL={block}", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "UNI": ("BL={block}", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "BS": ("BL={block}", "bs_host", "-w 0 -e 1 -i 8192"),
    "TS": ("BL={block}", "ts_host", "-w 0 -e 1 -n {slices}"),
    "BFS": ("", "host_code", "-v 1 -f data/generated.txt"),
    "MLP": ("BL={block}", "mlp_host", "-w 0 -e 1 -m 1024 -n 256"),
    "NW": ("BL={block} BL_IN=2", "nw_host", "-w 0 -e 1 -n 256"),
    "HST-S": ("BL={block}", "host_code", "-w 0 -e 1 -b 256 -x 1 -i 65536"),
    "HST-L": ("BL={block}", "host_code", "-w 0 -e 1 -b 256 -x 1 -i 65536"),
    "RED": ("BL={block}", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "SCAN-SSA": ("BL={block}", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "SCAN-RSS": ("BL={block}", "host_code", "-w 0 -e 1 -i 65536 -x 1"),
    "TRNS": ("", "host_code", "-w 0 -e 1 -p 8 -o 32 -x 1"),
    "Microbenchmarks/Arithmetic-Throughput": ("BL={block} OP=ADD TYPE=INT32", "host_code", "-w 0 -e 1 -i 65536"),
    "Microbenchmarks/CPU-DPU": ("BL={block} TRANSFER=PUSH", "host_code", "-w 0 -e 1 -i 65536"),
    "Microbenchmarks/MRAM-Latency": ("BL={block} OP=READ MEM=MRAM", "host_code", "-w 0 -e 1 -i 135168"),
    "Microbenchmarks/Operational-Intensity": ("BL={block} OP=ADD TYPE=INT32", "host_code", "-w 0 -e 1 -i 65536 -p 1"),
    "Microbenchmarks/Random-GUPS": ("BL={block}", "host_code", "-w 0 -e 1 -i 4096"),
    "Microbenchmarks/STREAM": ("BL={block} OP=copy MEM=WRAM", "host_code", "-w 0 -e 1 -i 65536"),
    "Microbenchmarks/STRIDED": ("BL={block} OP=FINEFINE", "host_code", "-w 0 -e 1 -i 135168 -s 1"),
    "Microbenchmarks/WRAM": ("BL={block} OP=streaming MEM=WRAM TYPE=INT64", "host_code", "-w 0 -e 1 -i 65536"),
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


def build(root: Path, name: str, dpus: int, tasklets: int) -> tuple[Outcome | None, list[str]]:
    """Build one program; return what failed and the command that runs it."""
    values = {"block": 10 if tasklets <= 16 else 8, "slices": dpus * tasklets * 512}
    variables, host, arguments = (text.format(**values) for text in PROGRAMS[name])
    failure = upmem_checkout.build(root / name, f"NR_DPUS={dpus}", f"NR_TASKLETS={tasklets}", *variables.split())
    return failure, [f"./bin/{host}", *arguments.split()]


def main() -> int:
    chosen = upmem_checkout.options(__doc__.splitlines()[0], "1,4", "1,16")
    with upmem_checkout.copied(chosen.checkout) as root:
        generate_inputs(root)

        def outcome(name: str, dpus: int, tasklets: int) -> Outcome:
            failure, command = build(root, name, dpus, tasklets)
            return failure or upmem_checkout.run(root / name, command, chosen.timeout)

        return upmem_checkout.table(list(PROGRAMS), chosen, outcome)


if __name__ == "__main__":
    sys.exit(main())
