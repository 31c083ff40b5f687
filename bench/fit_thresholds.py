# SPDX-License-Identifier: Apache-2.0
"""Fits the thresholds of the two-stage policy to run documents; prints the placement section of a machine file.

Input: run.json of pim-only runs with exact simulation, which time every nest on both sides:

    nearbank plan mlp --policy pim-only --simulate exact --out out/mlp

Method: a rule places a nest when its PL-1.1 and PL-2 values (docs/model.md) pass all thresholds. Its cost is the summed
time of all nests on the side where the rule puts them; a nest on PIM also pays launch and return, as PL-1 is there to
judge. Candidates for a threshold lie between neighbouring observed values; coordinate descent from two starts minimises
the cost. Each model is then left out in turn, and the rule fitted to the others counted against its faster sides.

The cost adds measured host times to simulated PIM times to choose between rules. It is no result and is not printed.
"""

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path

from context import describe

NAMES = ("workOperations", "mpki", "lfmr", "intensity")
UNITS = ("operations", "misses/kilo-instruction", "share", "operations/B")
OPEN = {"workOperations": 0.0, "mpki": 0.0, "lfmr": 0.0, "intensity": math.inf}
PUBLISHED = {"workOperations": 0.0, "mpki": 5.0, "lfmr": 0.56, "intensity": 8.5}


@dataclass(frozen=True)
class Nest:
    """One timed nest: what the rule looks at, and its time on either side in ns."""

    model: str
    values: tuple[float, ...]  # In the order of NAMES.
    host_ns: float
    pim_ns: float  # With launch and return.


def read_nests(path: Path, launch_ns: float) -> list[Nest]:
    """Nests of a run document that have both times and could be placed; hoisted ones are in no timed program."""
    nests = []
    for run in json.loads(path.read_text())["runs"]:
        for nest in run["nests"]:
            if nest["hoisted"] or not nest["pimTime"] or not nest["hostTime"] or not nest["profile"]:
                continue
            if nest["facts"]["parallelExtent"] < 2:
                continue
            operations = nest["facts"]["operations"]
            profile = nest["profile"]
            work = operations["total"] + operations.get("loads", 0) + operations.get("stores", 0)
            dram_bytes = (profile["dramBytes"] or {}).get("value") or 0
            intensity = operations["total"] / dram_bytes if dram_bytes else (math.inf if operations["total"] else 0.0)
            values = (work, profile["mpki"]["value"], profile["lfmr"]["value"], intensity)
            nests.append(Nest(run["spec"], values, nest["hostTime"]["value"], nest["pimTime"]["value"] + launch_ns))
    return nests


def is_placed(nest: Nest, rule: dict[str, float]) -> bool:
    """Whether PL-1.1 and PL-2 of docs/model.md pass."""
    work, mpki, lfmr, intensity = nest.values
    return (
        work >= rule["workOperations"]
        and mpki >= rule["mpki"]
        and lfmr >= rule["lfmr"]
        and intensity <= rule["intensity"]
    )


def cost(nests: list[Nest], rule: dict[str, float]) -> float:
    """Summed time when each nest runs where the rule puts it."""
    return sum(nest.pim_ns if is_placed(nest, rule) else nest.host_ns for nest in nests)


def candidates(nests: list[Nest], index: int) -> list[float]:
    """Borders between neighbouring observed values (geometric means), and the open border."""
    seen = sorted({nest.values[index] for nest in nests if 0 < nest.values[index] < math.inf})
    borders = [math.sqrt(low * high) for low, high in zip(seen, seen[1:], strict=False)]
    borders += [value * factor for value, factor in ((seen[0], 0.5), (seen[-1], 2.0))] if seen else []
    return sorted({OPEN[NAMES[index]], *borders})


def fit(nests: list[Nest]) -> dict[str, float]:
    """The rule of least cost that coordinate descent reaches from an open and from the published rule."""
    choices = [candidates(nests, index) for index in range(len(NAMES))]
    best: dict[str, float] = {}
    for start in (OPEN, PUBLISHED):
        rule = dict(start)
        reached = cost(nests, rule)
        while True:
            before = reached
            for name, values in zip(NAMES, choices, strict=True):
                for value in values:
                    changed = cost(nests, {**rule, name: value})
                    if changed < reached:
                        reached, rule = changed, {**rule, name: value}
            if reached >= before:
                break
        if not best or reached < cost(nests, best):
            best = rule
    return best


def rounded(value: float, digits: int = 3) -> float:
    """Significant digits that a machine file shows; an open intensity becomes a large number."""
    if math.isinf(value):
        return 1e9
    return value if value == 0 else round(value, digits - 1 - math.floor(math.log10(abs(value))))


def misplaced(nests: list[Nest], rule: dict[str, float]) -> int:
    """Number of nests that the rule puts on their slower side."""
    return sum(is_placed(nest, rule) != (nest.pim_ns < nest.host_ns) for nest in nests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", type=Path, help="run.json files of pim-only runs, simulate exact")
    parser.add_argument(
        "--launch-ns", type=float, default=4000.0, help="launch and return (coherence.launchNs + returnNs)"
    )
    arguments = parser.parse_args()
    print(describe())
    nests = [nest for path in arguments.documents for nest in read_nests(path, arguments.launch_ns)]
    if not nests:
        raise SystemExit("no nest has both a host time and a simulated PIM time: run pim-only with --simulate exact")
    rule = {name: rounded(value) for name, value in fit(nests).items()}
    models = sorted({nest.model for nest in nests})

    faster = sum(nest.pim_ns < nest.host_ns for nest in nests)
    print(f"# {len(nests)} nests of {', '.join(models)}; {faster} faster on PIM, launch and return included")
    print(f"# on the slower side: fitted {misplaced(nests, rule)}, published {misplaced(nests, PUBLISHED)}")
    for left_out in models if len(models) > 1 else []:
        inside = [nest for nest in nests if nest.model != left_out]
        outside = [nest for nest in nests if nest.model == left_out]
        print(
            f"# fitted without {left_out}: {misplaced(outside, fit(inside))} of its {len(outside)} on the slower side"
        )
    print("placement:")
    for name, unit in zip(NAMES, UNITS, strict=True):
        source = f"bench/fit_thresholds.py on {len(nests)} nests of {', '.join(models)}"
        print(f'  {name}: {{value: {rule[name]:g}, unit: "{unit}", source: "{source}"}}')


if __name__ == "__main__":
    main()
