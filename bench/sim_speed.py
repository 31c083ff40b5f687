# SPDX-License-Identifier: Apache-2.0
"""Measures how fast the simulator executes guest instructions: MiniLM's nests, pim-only, caches and DRAM on."""

import argparse
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

from compiled import compile_model
from context import describe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--machine", default="nmc-64")
    parser.add_argument("--threads", type=int, default=1, help="simulating threads; the result is per thread")
    parser.add_argument("--repeats", type=int, default=3, help="executions of the model; the median launch counts")
    options = parser.parse_args()
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        captured, graph = compile_model(
            options.model,
            machine=options.machine,
            policy="pim-only",
            simulate="exact",
            threads=options.threads,
            db=str(Path(folder) / "profiles.sqlite"),
        )
        launches = []
        for _ in range(options.repeats):
            graph.run(captured.arguments)
            launches += graph.record["launches"]
    kernels = {nest["id"]: nest["kernel"] for nest in graph.plan_document["nests"]}
    speeds = defaultdict(list)
    for launch in launches:
        wall_seconds = launch["wallTime"]["value"] * 1e-9
        speeds[kernels[launch["nest"]]].append((launch["instructions"], launch["instructions"] / wall_seconds))
    threads = options.threads
    print(f"{'kernel':48} {'instructions':>14} {'M instructions/s per thread':>28}")
    means = []
    for kernel, samples in sorted(speeds.items()):
        speed = statistics.median(rate for _, rate in samples) / threads / 1e6
        means.append(speed)
        print(f"{kernel:48} {samples[0][0]:14d} {speed:28.1f}")
    print(
        f"geometric mean: {statistics.geometric_mean(means):.1f} M guest instructions/s per host core "
        f"over {len(means)} distinct nests"
    )


if __name__ == "__main__":
    main()
