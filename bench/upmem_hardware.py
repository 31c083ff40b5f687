# SPDX-License-Identifier: Apache-2.0
"""Compares simulated kernel times of PrIM with times measured on UPMEM hardware.

python bench/upmem_hardware.py PATH/TO/prim-benchmarks PATH/TO/upmem-hardware-kernel-ms.tsv [--sensitivity]
The table has one row a benchmark, number of DPUs and size, measured with 16 tasklets and BL=10. --sensitivity changes
each constant of the machine by a fifth, one at a time, on one row a benchmark and number of DPUs.
"""

from __future__ import annotations

import argparse
import csv
import re
import statistics
import sys
import tempfile
from pathlib import Path

import upmem_checkout
import yaml
from context import describe
from nearbank import upmem_home

HOSTS = {"GEMV": "gemv_host", "BS": "bs_host"}
#: What a kernel time depends on.
CONSTANTS = [
    "dpu.clockMHz",
    "dpu.dispatchCycles",
    "dma.readCycles",
    "dma.writeCycles",
    "dma.cyclesPerByte",
    "dma.occupancyCycles",
    "dma.bytesPerWramCycle",
    "slots.multiplyCall",
    "host.launchUs",
]


def arguments(benchmark: str, size: int) -> str:
    """The program's options for one row."""
    if benchmark == "GEMV":
        return f"-w 0 -e 1 -m {size} -n 64"
    if benchmark == "BS":
        return f"-w 0 -e 1 -i {size // 8}"
    if benchmark == "TRNS":
        # One DPU takes four times as long as four with the same size, so its matrix is theirs.
        return f"-w 0 -e 1 -x 1 -p 64 -n 8 -m 4 -o {size}"
    return f"-w 0 -e 1 -x 1 -i {size}"


class Programs:
    """Builds a program for one row and runs it."""

    def __init__(self, root: Path):
        self._root = root
        self._built = None

    def times(self, row: dict[str, str], **changes: str) -> dict[str, float]:
        """Return the times in ms that the program prints; empty when it failed."""
        name, dpus, size = row["benchmark"], int(row["num_dpus"]), int(row["data_prep_param"])
        folder = self._root / name
        wanted = (name, dpus, size if name == "BS" else 0)
        if self._built != wanted:
            if name == "BS":
                # The measured transfers are those of a sorted array of `size` numbers, not of PrIM's two million.
                header = folder / "support" / "common.h"
                header.write_text(re.sub(r"(#define INPUT_SIZE) .*", rf"\1 {size}", header.read_text()))
            upmem_checkout.build(folder, f"NR_DPUS={dpus}", "NR_TASKLETS=16", "BL=10")
            self._built = wanted
        host = HOSTS.get(name, "host_code")
        done = upmem_checkout.run(folder, [f"./bin/{host}", *arguments(name, size).split()], 600, **changes)
        if done.state != "passed":
            print(f"{name:6} {dpus:3} {size:9} {done.state}: {done.why}")
            return {}
        found = re.findall(r"(CPU-DPU|DPU Kernel|DPU-CPU|Step 2|Step 3) Time \(ms\): ([0-9.]+)", done.text)
        return {key: float(value) for key, value in found}


def error_of(row: dict[str, str], times: dict[str, float]) -> float:
    return kernel_ms(times) / float(row["hw_kernel_ms"]) - 1


def kernel_ms(times: dict[str, float]) -> float:
    return sum(times.get(key, 0) for key in ("DPU Kernel", "Step 2", "Step 3"))


def compare(programs: Programs, rows: list[dict[str, str]]) -> None:
    """Print every row, means by benchmark and over all."""
    errors: dict[str, list[float]] = {}
    theirs: list[float] = []
    for row in rows:
        times = programs.times(row)
        if not times:
            continue
        error = error_of(row, times)
        errors.setdefault(row["benchmark"], []).append(error)
        theirs.append(float(row["upimulator_kernel_ms"]) / float(row["hw_kernel_ms"]) - 1)
        print(
            f"{row['benchmark']:6} {row['num_dpus']:>3} {row['data_prep_param']:>9} "
            f"hardware {float(row['hw_kernel_ms']):9.3f} ms  simulated {kernel_ms(times):9.3f} ms  {error:+7.1%}"
            f"   CPU-DPU {float(row['hw_cpu_to_dpu_ms']):8.2f} / {times.get('CPU-DPU', 0):8.2f} ms"
            f"   DPU-CPU {float(row['hw_dpu_to_cpu_ms']):8.2f} / {times.get('DPU-CPU', 0):8.2f} ms",
            flush=True,
        )
    every = [error for group in errors.values() for error in group]
    for name, group in errors.items():
        print(f"{name:6} mean {statistics.mean(group):+7.1%}  mean absolute {statistics.mean(map(abs, group)):6.1%}")
    print(f"mean absolute error {statistics.mean(map(abs, every)):.1%} over {len(every)} rows, ", end="")
    print(f"{sum(abs(error) > 0.35 for error in every)} rows above 35 %; ", end="")
    print(f"of the times published beside them {statistics.mean(map(abs, theirs)):.1%}")


def middle_rows(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Of every benchmark and number of DPUs above 4, the row in the middle."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        if int(row["num_dpus"]) > 4:
            groups.setdefault((row["benchmark"], row["num_dpus"]), []).append(row)
    return [group[len(group) // 2] for group in groups.values()]


def sensitivity(programs: Programs, rows: list[dict[str, str]], scratch: Path) -> None:
    """Print how the mean absolute error moves with each constant."""
    machine = yaml.safe_load((upmem_home.folder() / "share/upmem/machines/upmem-v1a.yaml").read_text())
    variants = {"as it is": {}}
    for constant in CONSTANTS:
        section, key = constant.split(".")
        for factor in (0.8, 1.2):
            value = machine[section][key]["value"]
            machine[section][key]["value"] = value * factor
            file = scratch / f"{constant}-{factor}.yaml"
            file.write_text(yaml.safe_dump(machine, sort_keys=False))
            machine[section][key]["value"] = value
            variants[f"{constant} x {factor}"] = {"NEARBANK_MACHINE": str(file)}
    errors: dict[str, list[float]] = {name: [] for name in variants}
    for row in rows:  # A program is built once for all variants.
        for name, changes in variants.items():
            errors[name].append(error_of(row, programs.times(row, **changes)))
    print(f"mean absolute and mean error over {len(rows)} rows")
    for name, group in errors.items():
        print(f"{name:28} {statistics.mean(map(abs, group)):6.1%} {statistics.mean(group):+7.1%}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--only", default="", help="benchmarks, with commas")
    parser.add_argument("--sensitivity", action="store_true", help="change each constant by a fifth")
    options = parser.parse_args()
    print(describe())
    with options.table.open() as file:
        rows = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
    rows = [row for row in rows if not options.only or row["benchmark"] in options.only.split(",")]
    with upmem_checkout.copied(options.checkout) as root, tempfile.TemporaryDirectory() as scratch:
        if options.sensitivity:
            sensitivity(Programs(root), middle_rows(rows), Path(scratch))
        else:
            compare(Programs(root), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
