# SPDX-License-Identifier: Apache-2.0
"""Holds the modelled host against the machine that it describes: simulated over measured time, nest by nest.

Input: run documents of plans whose modelled host is a description of this very machine:

    nearbank plan minilm --host machines/this-host.yaml --simulate sampled --policy cpu-only --out out/minilm
    host_model_check.py out/*/run.json

Each distinct nest counts once. The measured time is that of all threads (HP-1 of docs/model.md), so the file must have
as many cores as the measurement had threads. This is the one place where a simulated time is divided by a measured one:
the quotient is the model's error, not a speed-up.
"""

import argparse
import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path

from context import describe


@dataclass(frozen=True)
class Sample:
    """One distinct nest on both clocks."""

    kernel: str
    iterations: int
    measured_ns: float
    modelled_ns: float

    @property
    def ratio(self) -> float:
        """Modelled over measured time."""
        return self.modelled_ns / self.measured_ns


def read_samples(paths: list[Path]) -> list[Sample]:
    """Distinct nests that have both times, in order of appearance."""
    samples = {}
    for path in paths:
        for run in json.loads(path.read_text())["runs"]:
            for nest in run["nests"]:
                modelled, measured = nest.get("modelledHostTime"), nest.get("hostTime")
                if modelled and measured and measured["value"] > 0:
                    sample = Sample(nest["kernel"], nest["facts"]["iterations"], measured["value"], modelled["value"])
                    samples.setdefault(nest["key"], sample)
    return list(samples.values())


def ranks(values: list[float]) -> list[float]:
    """Ranks from 1, ties sharing their mean."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for position in range(start, end):
            result[order[position]] = (start + 1 + end) / 2
        start = end
    return result


def spearman(a: list[float], b: list[float]) -> float:
    """Rank correlation."""
    return statistics.correlation(ranks(a), ranks(b))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", type=Path, help="run.json files")
    options = parser.parse_args()
    print(describe())
    samples = read_samples(options.documents)
    if len(samples) < 2:
        raise SystemExit("fewer than two nests with both times: plan with --host FILE and --simulate sampled")
    print(f"{'kernel':48} {'iterations':>12} {'measured us':>12} {'modelled us':>12} {'ratio':>7}")
    for sample in sorted(samples, key=lambda sample: sample.ratio):
        print(
            f"{sample.kernel:48} {sample.iterations:12d} {sample.measured_ns / 1e3:12.2f} "
            f"{sample.modelled_ns / 1e3:12.2f} {sample.ratio:7.2f}"
        )
    ratios = [sample.ratio for sample in samples]
    within = sum(0.5 <= ratio <= 2 for ratio in ratios) / len(ratios)
    decades = math.log10(max(s.measured_ns for s in samples) / min(s.measured_ns for s in samples))
    correlation = spearman(
        [sample.measured_ns / sample.iterations for sample in samples],
        [sample.modelled_ns / sample.iterations for sample in samples],
    )
    print(
        f"{len(samples)} nests over {decades:.1f} decades of time: geometric mean of modelled/measured "
        f"{statistics.geometric_mean(ratios):.2f} (goal 0.8 to 1.25), within 2x {within:.0%} (goal 90 %), "
        f"Spearman of ns per iteration {correlation:.2f} (goal 0.8)"
    )


if __name__ == "__main__":
    main()
