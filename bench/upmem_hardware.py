# SPDX-License-Identifier: Apache-2.0
"""Compares simulated kernel times of PrIM with times measured on UPMEM hardware.

python bench/upmem_hardware.py PATH/TO/prim-benchmarks PATH/TO/upmem-hardware-kernel-ms.tsv
The table has one row a benchmark, number of DPUs and size, measured with 16 tasklets and BL=10.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HOSTS = {"GEMV": "gemv_host", "BS": "bs_host"}


def arguments(benchmark: str, size: int) -> str:
    """The program's options for one row."""
    if benchmark == "GEMV":
        return f"-w 0 -e 1 -m {size} -n 64"
    if benchmark == "BS":
        return f"-w 0 -e 1 -i {size // 8}"
    if benchmark == "TRNS":
        return f"-w 0 -e 1 -x 1 -p 64 -n 8 -m 4 -o {size}"
    return f"-w 0 -e 1 -x 1 -i {size}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--only", default="", help="benchmarks, with commas")
    options = parser.parse_args()
    with options.table.open() as file:
        rows = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
    errors: dict[str, list[float]] = {}
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        built = None
        for row in rows:
            name, dpus, size = row["benchmark"], int(row["num_dpus"]), int(row["data_prep_param"])
            if options.only and name not in options.only.split(","):
                continue
            folder = Path(scratch) / name
            if not folder.exists():
                shutil.copytree(options.checkout / name, folder)
            if name == "BS":
                # The measured transfers are those of a sorted array of `size` numbers, not of PrIM's two million.
                header = folder / "support" / "common.h"
                header.write_text(re.sub(r"(#define INPUT_SIZE) .*", rf"\1 {size}", header.read_text()))
            if built != (name, dpus, size if name == "BS" else 0):
                subprocess.run(["make", "clean"], cwd=folder, capture_output=True)
                subprocess.run(["make", f"NR_DPUS={dpus}", "NR_TASKLETS=16", "BL=10"], cwd=folder, capture_output=True)
                built = (name, dpus, size if name == "BS" else 0)
            host = HOSTS.get(name, "host_code")
            done = subprocess.run(
                [f"./bin/{host}", *arguments(name, size).split()], cwd=folder, capture_output=True, text=True
            )
            times = dict(re.findall(r"(CPU-DPU|DPU Kernel|DPU-CPU|Step 2|Step 3) Time \(ms\): ([0-9.]+)", done.stdout))
            kernel = sum(float(times.get(key, 0)) for key in ("DPU Kernel", "Step 2", "Step 3"))
            if done.returncode != 0 or kernel == 0:
                print(f"{name:6} {dpus:3} {size:9} failed: {(done.stderr or done.stdout).strip()[-100:]}")
                continue
            hardware = float(row["hw_kernel_ms"])
            error = kernel / hardware - 1
            errors.setdefault(name, []).append(error)
            theirs.append(float(row["upimulator_kernel_ms"]) / hardware - 1)
            print(
                f"{name:6} {dpus:3} {size:9} hardware {hardware:9.3f} ms  simulated {kernel:9.3f} ms  {error:+7.1%}"
                f"   CPU-DPU {float(row['hw_cpu_to_dpu_ms']):8.2f} / {float(times.get('CPU-DPU', 0)):8.2f} ms"
                f"   DPU-CPU {float(row['hw_dpu_to_cpu_ms']):8.2f} / {float(times.get('DPU-CPU', 0)):8.2f} ms",
                flush=True,
            )
    every = [error for group in errors.values() for error in group]
    for name, group in errors.items():
        print(f"{name:6} mean {statistics.mean(group):+7.1%}  mean absolute {statistics.mean(map(abs, group)):6.1%}")
    print(f"mean absolute error {statistics.mean(map(abs, every)):.1%} over {len(every)} rows; ", end="")
    print(f"of the times published beside them {statistics.mean(map(abs, theirs)):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
