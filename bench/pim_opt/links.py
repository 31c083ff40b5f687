# SPDX-License-Identifier: Apache-2.0
"""What if DPUs could talk? Synchronises one round of MA-SGD on 2,048 DPUs in every way; all modelled.

python bench/pim_opt/links.py [--set link.rankGBs=1 …]
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from nearbank import _sgd
from nearbank.cli_run import parse_assignments
from nearbank.dpu_machines import dpu_machine
from nearbank.sgd_options import settings_of
from nearbank.sgd_times import overlapped
from study import PUBLISHED, SHAPES, Cell

WAYS = {
    "host (UPMEM as it is)": {},
    "host, asynchronous (staleness 1)": {"staleness": 1},
    "DPUs of a chip share memory": {"sync": "shared-chip"},
    "DPUs of a rank share memory": {"sync": "shared-rank"},
    "ring all-reduce": {"sync": "ring"},
    "gossip with two neighbours": {"sync": "gossip"},
    "switches add up": {"sync": "in-network"},
}
SYNCHRONISING = ("toDpu", "fromDpu", "aggregation", "link")


def round_of(dataset: str, way: dict, assignments: tuple = ()) -> dict[str, float]:
    """Model one round.

    Parameters
    ----------
    dataset : str
        ``"yfcc"`` or ``"criteo"``; weak scaling.
    way : dict
        Options of the job, ``sync`` or ``staleness``.
    assignments : sequence of (str, str), default ()
        Values of the machine to change.

    Returns
    -------
    dict
        ``synchronising`` and ``working`` in seconds, ``host`` and ``link`` in bytes.
    """
    cell = Cell(dataset, "ma-sgd", "lr", 2048, "weak", PUBLISHED[dataset, "ma-sgd", "lr"][3][0])
    options = replace(cell.options(2048), machine="upmem-2048-link", **way)
    machine = dpu_machine(options.machine, assignments)
    settings = json.dumps(settings_of(options, options.eta0, machine=machine))
    times = json.loads(_sgd.times(settings, machine, json.dumps(dict(SHAPES[dataset], rows=cell.rows))))
    seconds = {"waiting": 0.0, **times["round"]}
    if options.staleness:
        seconds = overlapped(seconds, times["ownTransfers"])
    return {
        "synchronising": sum(seconds[kind] for kind in SYNCHRONISING),
        "working": seconds["dpuCompute"] + seconds["mramWram"],
        "host": times["bytesPerRound"],
        "link": times["linkBytesPerRound"],
    }


def table(assignments: tuple = ()) -> str:
    """Describe all ways.

    Parameters
    ----------
    assignments : sequence of (str, str), default ()
        Values of the machine to change.

    Returns
    -------
    str
        Markdown.
    """
    columns = [f"{dataset}: ms a round | through the host, MB | over links, MB" for dataset in SHAPES]
    lines = [f"| | {' | '.join(columns)} |", "|---|" + "---|" * 3 * len(SHAPES)]
    for name, way in WAYS.items():
        row = f"| {name} |"
        for dataset in SHAPES:
            found = round_of(dataset, way, assignments)
            row += f" {1e3 * found['synchronising']:.4g} |"
            row += "".join(f" {found[part] / 1e6:,.1f} |" if found[part] else " |" for part in ("host", "link"))
        lines.append(row)
    work = ", ".join(f"{dataset} {1e3 * round_of(dataset, {}, assignments)['working']:.4g} ms" for dataset in SHAPES)
    return "\n".join([*lines, "", f"The DPUs' own work of a round: {work}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", dest="assignments", metavar="KEY=VALUE", action="append", default=[])
    print(table(tuple(parse_assignments(parser.parse_args().assignments))))


if __name__ == "__main__":
    main()
