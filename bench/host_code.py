# SPDX-License-Identifier: Apache-2.0
"""Compares generated host code with eager PyTorch: cpu-only time / eager time for every built-in model.

Both are measured, in turns within one run, with the same number of threads; only their ratio is a result.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch
from compiled import compile_model, timed_launches
from context import describe
from nearbank.specs import BUILT_IN_NAMES


def measure(spec: str, repeats: int, threads: int, database: str) -> tuple[list[float], list[float], list[float]]:
    """Return host nest time, wall time of the whole execution and eager time, in ns, of each repeat."""
    captured, graph = compile_model(spec, policy="cpu-only", simulate="none", threads=threads, db=database)
    torch.set_num_threads(graph.settings.host_threads)
    model = captured.reference(None)
    nests, walls, eager = [], [], []
    for repeat in range(repeats + 1):
        started = time.perf_counter_ns()
        graph.run(captured.arguments)
        wall = time.perf_counter_ns() - started
        eager_time = model.time_ns()
        if repeat > 0:  # The first pass warms caches and memory up.
            nests.append(sum(launch["time"]["value"] for launch in timed_launches(graph)))
            walls.append(wall)
            eager.append(eager_time)
    return nests, walls, eager


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("specs", nargs="*", default=list(BUILT_IN_NAMES))
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=0, help="0 means all cores")
    options = parser.parse_args()
    print(describe())
    print(f"{'model':12} {'cpu-only ms':>12} {'eager ms':>10} {'ratio':>7} {'spread of ratio':>17} {'wall/eager':>11}")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for spec in options.specs:
            nests, walls, eager = measure(spec, options.repeats, options.threads, str(Path(folder) / "profiles.sqlite"))
            pairs = sorted(nest / base for nest, base in zip(nests, eager, strict=True))
            ratio = statistics.median(nests) / statistics.median(eager)
            ratios.append(ratio)
            low, high = pairs[len(pairs) // 4], pairs[len(pairs) * 3 // 4]
            print(
                f"{spec:12} {statistics.median(nests) / 1e6:12.3f} {statistics.median(eager) / 1e6:10.3f} {ratio:7.2f} "
                f"{low:8.2f}–{high:<8.2f} {statistics.median(walls) / statistics.median(eager):11.2f}",
                flush=True,
            )
    print(f"geometric mean of cpu-only / eager: {statistics.geometric_mean(ratios):.3f} over {len(ratios)} models")


if __name__ == "__main__":
    main()
