# SPDX-License-Identifier: Apache-2.0
"""Makes the table of Torch-PIM by our own means: speed-up over cpu-only on one modelled host, policy by policy.

Rows are tensor operators, MLP, attention, training steps, GPT-J-6B and LLaMA-7B (prefill of 128 tokens; decode of one
token after 128); columns are machines of 32, 64 and 128 PIM cores and the policies. All times are simulated (sampled)
or modelled (crossings); only min-cut's decisions come from predicted ones. Each row is one `nearbank plan`:

    nearbank plan SPEC --machine nmc-32,nmc-64,nmc-128 --policy POLICIES --host host-16 --simulate sampled

--host and --machine judge the same rows against other machine files, such as PIMProf's:

    torch_pim_table.py --host pimprof-host --machine pimprof-pim-32,pimprof-pim-64,pimprof-pim-128

Documents are kept under --out and taken again when they are there; --again makes them anew. Beside the text, the folder
gets table.md, table.html, table.csv and cells.csv, which has times, DRAM and link bytes and energy of every cell.
"""

import argparse
import csv
import html
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from context import describe
from nearbank.specs import OPERATOR_NAMES

POLICIES = ("two-stage", "op-type", "min-cut", "oracle", "pim-only")

#: Largest speed-up over CPU-only that the abstract of Torch-PIM states for 32 to 128 PIM cores.
PAPER = {"tensor operators": 8.6, "MLP": 2.9, "attention": 4.4, "GPT-J-6B": 5.1, "LLaMA-7B": 3.6}


@dataclass(frozen=True)
class Row:
    """One model or operator of the table."""

    group: str
    name: str
    arguments: tuple[str, ...]


def rows() -> list[Row]:
    """All rows in order of the table."""
    large = (("GPT-J-6B", "gptj-6b"), ("LLaMA-7B", "llama-7b"))
    return [
        *(Row("tensor operators", name.removeprefix("op:"), (name,)) for name in OPERATOR_NAMES),
        Row("MLP", "mlp", ("mlp",)),
        Row("attention", "attention", ("attention",)),
        Row("training", "mlp-train", ("mlp-train",)),
        Row("training", "block-train", ("block-train",)),
        *(Row(group, f"{spec} prefill 128", (spec, "--tokens", "128")) for group, spec in large),
        *(Row(group, f"{spec} decode at 128", (spec, "--decode", "--context", "128")) for group, spec in large),
    ]


@dataclass
class Cell:
    """A row under one machine and policy."""

    row: Row
    machine: str
    policy: str
    summary: dict
    nests: list[dict] = field(repr=False)

    def value(self, name: str) -> float | None:
        """A quantity of the summary, if it is there."""
        quantity = self.summary.get(name)
        return None if quantity is None else quantity["value"]

    @property
    def speedup(self) -> float | None:
        """Simulated cpu-only time over the time of the placement, crossings included."""
        return self.value("speedup")

    @property
    def placed_ns(self) -> float:
        """Time of the placement."""
        return sum(self.value(name) for name in ("modelledHostTimeOfHostNests", "pimTime", "crossingTime"))

    @property
    def dram_bytes(self) -> float:
        """Bytes between memory and both sides' caches."""
        return (self.value("dramBytes") or 0) + (self.value("modelledHostDramBytesOfHostNests") or 0)

    @property
    def pim_nests(self) -> int:
        """Number of timed nests on PIM."""
        return sum(nest["where"] == "pim" for nest in self.nests if not nest["hoisted"])


def plan(row: Row, options: argparse.Namespace, extra: list[str]) -> dict | None:
    """Return the run document of a row; plans it unless it is there. None when planning fails."""
    folder = options.out / row.name.replace(" ", "-")
    document = folder / "run.json"
    if options.again or not document.exists():
        command = [sys.executable, "-m", "nearbank", "plan", *row.arguments, "--machine", options.machine]
        command += ["--policy", ",".join(POLICIES), "--host", options.host, "--simulate", "sampled"]
        command += ["--out", str(folder), *extra]
        started = time.monotonic()
        run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ)
        print(f"# {row.name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        if run.returncode != 0:
            print(f"# {' '.join(command[2:])} failed: {run.stderr.strip()[-500:]}", file=sys.stderr)
            return None
    return json.loads(document.read_text())


def cells_of(row: Row, document: dict) -> list[Cell]:
    """One cell for each machine and policy of a document."""
    cells = []
    for run in document["runs"]:
        machine = run.get("machineName") or run["machine"]
        cells.append(Cell(row, machine, run["policy"], run["summary"], run["nests"]))
    return cells


def agreement(cell: Cell, oracle: Cell) -> tuple[int, int]:
    """Number of timed nests on the oracle's side, and of all timed nests."""
    pairs = [(a, b) for a, b in zip(cell.nests, oracle.nests, strict=True) if not a["hoisted"]]
    return sum(a["where"] == b["where"] for a, b in pairs), len(pairs)


def amount(value: float | None, units: tuple[str, ...], step: float = 1000.0) -> str:
    """A number with a prefix that keeps it short; "-" for none."""
    if value is None:
        return "-"
    for unit in units[:-1]:
        if abs(value) < step:
            return f"{value:.3g} {unit}"
        value /= step
    return f"{value:.3g} {units[-1]}"


BYTES = ("B", "KB", "MB", "GB", "TB")
ENERGY = ("pJ", "nJ", "uJ", "mJ", "J")


def table(cells: list[Cell], machines: list[str]) -> tuple[list[str], list[list[str]]]:
    """Header and lines: one line for each row and machine."""
    header = ["group", "row", "machine", *POLICIES, "min-cut regret", "two-stage agrees", "two-stage regret"]
    header += ["DRAM two-stage", "link two-stage", "energy cpu-only", "energy two-stage"]
    lines = []
    by_key = {(cell.row.name, cell.machine, cell.policy): cell for cell in cells}
    for row in dict.fromkeys(cell.row for cell in cells):
        for machine in machines:
            found = {policy: by_key.get((row.name, machine, policy)) for policy in POLICIES}
            if not all(found.values()):
                continue
            two_stage, oracle = found["two-stage"], found["oracle"]
            line = [row.group, row.name, machine]
            line += ["-" if cell.speedup is None else f"{cell.speedup:.2f}" for cell in found.values()]
            same, total = agreement(two_stage, oracle)
            line += [f"{found['min-cut'].placed_ns / oracle.placed_ns - 1:.1%}", f"{same}/{total}"]
            line += [f"{two_stage.placed_ns / oracle.placed_ns - 1:.1%}"]
            line += [amount(two_stage.dram_bytes, BYTES), amount(two_stage.value("linkBytes"), BYTES)]
            line += [amount(two_stage.value(name), ENERGY) for name in ("modelledHostEnergy", "energy")]
            lines.append(line)
    return header, lines


def every_cell(cells: list[Cell]) -> tuple[list[str], list[list[object]]]:
    """Header and lines of cells.csv: one line for each row, machine and policy, in ns, bytes and pJ."""
    times = ("modelledHostTime", "modelledHostTimeOfHostNests", "pimTime", "crossingTime")
    energies = ("modelledHostEnergy", "energy")
    header = ["group", "row", "machine", "policy", "speedup", "pimNests", *times, "dramBytes", "linkBytes", *energies]
    return header, [
        [c.row.group, c.row.name, c.machine, c.policy, c.speedup, c.pim_nests, *map(c.value, times)]
        + [c.dram_bytes, c.value("linkBytes"), *map(c.value, energies)]
        for c in cells
    ]


def headlines(cells: list[Cell]) -> list[str]:
    """Best speed-up of each group beside the paper's, and the regrets over the whole table."""
    lines = []
    for group, claimed in PAPER.items():
        line = f"{group}: Torch-PIM states up to {claimed}x"
        for policy in ("two-stage", "oracle"):
            members = [c for c in cells if c.row.group == group and c.policy == policy and c.speedup is not None]
            if members:
                best = max(members, key=lambda cell: cell.speedup)
                line += f"; {policy} here up to {best.speedup:.2f}x ({best.row.name}, {best.machine})"
        lines.append(line)
    by_key = {(cell.row.name, cell.machine, cell.policy): cell for cell in cells}
    regrets, worse = [], []
    for (name, machine, policy), cell in by_key.items():
        if policy != "min-cut":
            continue
        oracle, two_stage = by_key[name, machine, "oracle"], by_key[name, machine, "two-stage"]
        regrets.append(cell.placed_ns / oracle.placed_ns)
        worse.append((cell.placed_ns / two_stage.placed_ns, name, machine))
    if regrets:
        ratio, name, machine = max(worse)
        lines.append(
            f"min-cut, decided on predicted and scored on simulated times: regret against oracle "
            f"{statistics.geometric_mean(regrets) - 1:.1%} as geometric mean over {len(regrets)} cells (goal 10 %), "
            f"worst {max(regrets) - 1:.1%}; against two-stage at worst {ratio - 1:+.1%} ({name}, {machine}; goal +2 %)"
        )
    return lines


def markdown(header: list[str], lines: list[list[str]]) -> str:
    """The table as Markdown."""
    head = f"| {' | '.join(header)} |\n|{'---|' * len(header)}\n"
    return head + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page(title: str, notes: list[str], header: list[str], lines: list[list[str]]) -> str:
    """The table as one HTML page without references to the network."""
    cells = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>\n" for line in lines)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        "<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}"
        "td,th{border:1px solid #ccc;padding:2px 6px;text-align:right}"
        "td:nth-child(-n+3){text-align:left}th{position:sticky;top:0;background:#eee}</style>"
        f"<h1>{html.escape(title)}</h1>{''.join(f'<p>{html.escape(note)}</p>' for note in notes)}"
        f"<table><thead><tr>{''.join(f'<th>{html.escape(name)}</th>' for name in header)}</tr></thead>\n"
        f"<tbody>\n{cells}</tbody></table></html>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="rows to make; all by default")
    parser.add_argument("--out", type=Path, default=Path("nearbank-out/torch-pim-table"))
    parser.add_argument("--host", default="host-16", help="modelled host; host-16 by default")
    parser.add_argument("--machine", default="nmc-32,nmc-64,nmc-128", help="PIM machines, separated by commas")
    parser.add_argument("--again", action="store_true", help="plan rows anew that are there")
    parser.add_argument("--only-present", action="store_true", help="make the table of the documents that are there")
    options, extra = parser.parse_known_args()
    chosen = [row for row in rows() if not options.names or row.name in options.names]
    options.out.mkdir(parents=True, exist_ok=True)
    cells = []
    for row in chosen:
        if options.only_present and not (options.out / row.name.replace(" ", "-") / "run.json").exists():
            continue
        document = plan(row, options, extra)
        if document is not None:
            cells += cells_of(row, document)
    header, lines = table(cells, options.machine.split(","))
    title = f"Speed-up over cpu-only on {options.host}, simulated"
    notes = [describe().removeprefix("# "), *headlines(cells)]
    print("\n".join(f"# {note}" for note in notes))
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    for line in [header, *lines]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    (options.out / "table.md").write_text(
        f"# {title}\n\n" + "\n".join(f"- {n}" for n in notes) + "\n\n" + markdown(header, lines)
    )
    (options.out / "table.html").write_text(page(title, notes, header, lines))
    with (options.out / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *lines])
    header, lines = every_cell(cells)
    with (options.out / "cells.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *lines])


if __name__ == "__main__":
    main()
