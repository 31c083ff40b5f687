# SPDX-License-Identifier: Apache-2.0
"""Fits the thresholds of the two-stage policy to run documents; prints the placement section of a machine file.

Input: run.json of plans that simulate every nest on both sides, for training and, held out, for the test:

    nearbank plan mlp --host host-16 --simulate sampled --out out/mlp
    nearbank plan minilm --host host-16 --simulate sampled --out out/minilm
    fit_thresholds.py out/mlp/run.json --test out/minilm/run.json

A document may hold several runs, one machine and policy each: those of the first policy of each model and machine
count. The values of PL-1 and PL-2 come from the profile on this host, the times of either side from the simulator.

Method: a rule places a nest when its PL-1.1 and PL-2 values (docs/model.md) pass all thresholds. Its cost is the summed
time of all nests on the side where the rule puts them; a nest on PIM also pays launch and return, as PL-1 is there to
judge. Candidates for a threshold lie between neighbouring observed values; coordinate descent from two starts minimises
the cost. Nests whose structural key is in the training set are left out of the test.
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
    key: str
    values: tuple[float, ...]  # In the order of NAMES.
    host_ns: float
    pim_ns: float  # With launch and return.


def read_nests(path: Path, launch_ns: float) -> list[Nest]:
    """Nests of a run document that have both times and could be placed; hoisted ones are in no timed program."""
    nests = []
    seen = set()
    for run in json.loads(path.read_text())["runs"]:
        if (run["spec"], run["machine"]) in seen:
            continue
        seen.add((run["spec"], run["machine"]))
        for nest in run["nests"]:
            if nest["hoisted"] or not nest["pimTime"] or not nest.get("modelledHostTime") or not nest["profile"]:
                continue
            if nest["facts"]["parallelExtent"] < 2:
                continue
            operations = nest["facts"]["operations"]
            profile = nest["profile"]
            work = operations["total"] + operations.get("loads", 0) + operations.get("stores", 0)
            dram_bytes = (profile["dramBytes"] or {}).get("value") or 0
            intensity = operations["total"] / dram_bytes if dram_bytes else (math.inf if operations["total"] else 0.0)
            values = (work, profile["mpki"]["value"], profile["lfmr"]["value"], intensity)
            host_ns, pim_ns = nest["modelledHostTime"]["value"], nest["pimTime"]["value"] + launch_ns
            nests.append(Nest(run["spec"], nest["key"], values, host_ns, pim_ns))
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


def report(name: str, nests: list[Nest], rule: dict[str, float]) -> str:
    """One line: how many nests a rule leaves on their slower side, and what the rules cost over the best sides."""
    best = sum(min(nest.pim_ns, nest.host_ns) for nest in nests)
    host = sum(nest.host_ns for nest in nests)
    faster = sum(nest.pim_ns < nest.host_ns for nest in nests)
    return (
        f"# {name}: {len(nests)} nests, {faster} faster on PIM; on the slower side: "
        f"fitted {misplaced(nests, rule)}, published {misplaced(nests, PUBLISHED)}; time over the best sides: "
        f"fitted {cost(nests, rule) / best:.3f}, published {cost(nests, PUBLISHED) / best:.3f}, all on the host "
        f"{host / best:.3f} (simulated)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", type=Path, help="run.json files to fit the thresholds to")
    parser.add_argument("--test", nargs="*", default=[], type=Path, help="run.json files to test them on")
    parser.add_argument(
        "--launch-ns", type=float, default=4000.0, help="launch and return (coherence.launchNs + returnNs)"
    )
    arguments = parser.parse_args()
    print(describe())
    nests = [nest for path in arguments.documents for nest in read_nests(path, arguments.launch_ns)]
    if not nests:
        raise SystemExit("no nest has simulated times of host and PIM: plan with --host host-16 --simulate sampled")
    rule = {name: rounded(value) for name, value in fit(nests).items()}
    models = sorted({nest.model for nest in nests})
    print(report("training", nests, rule))
    known = {nest.key for nest in nests}
    held_out = [nest for path in arguments.test for nest in read_nests(path, arguments.launch_ns)]
    held_out = [nest for nest in held_out if nest.key not in known]
    if held_out:
        print(report("test", held_out, rule))
    print("placement:")
    for name, unit in zip(NAMES, UNITS, strict=True):
        source = f"bench/fit_thresholds.py on {len(nests)} nests of {len(models)} models and operators"
        print(f'  {name}: {{value: {rule[name]:g}, unit: "{unit}", source: "{source}"}}')


if __name__ == "__main__":
    main()
