# SPDX-License-Identifier: Apache-2.0
"""Sets the runs of a sweep side by side: the rows of runs.csv and of the overview."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from nearbank.render_units import ABSENT, format_quantity
from nearbank.report_groups import host_quantity, pim_quantity
from nearbank.speedup import spoken_speedup

_COUNTS = ("numNests", "distinctNests", "nestsOnPim", "nestsOnHost")
#: Quantity of the summary to the end of its column's name.
_QUANTITIES = {
    "modelledHostTime": "Ns",
    "modelledHostTimeOfHostNests": "Ns",
    "modelledHostTimeOfPimNests": "Ns",
    "pimTime": "Ns",
    "predictedPimTime": "Ns",
    "crossingTime": "Ns",
    "hostTime": "Ns",
    "hostTimeOfHostNests": "Ns",
    "hostTimeOfPimNests": "Ns",
    "linkBytes": "",
    "dramBytes": "",
    "modelledHostDramBytes": "",
    "modelledHostDramBytesOfHostNests": "",
    "hostDramBytes": "",
    "energy": "Pj",
    "modelledHostEnergy": "Pj",
}


def host_label(run: Mapping[str, Any]) -> str:
    """Name the host that a run is judged against.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.

    Returns
    -------
    str
        The modelled host, or ``"this host"`` where nothing was simulated on one.
    """
    host = run.get("host") or {}
    return host["machine"] if host.get("kind") == "simulated" else "this host"


def swept_keys(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the machine values that differ between runs.

    Parameters
    ----------
    runs : sequence of mapping
        Entries of ``runs``.

    Returns
    -------
    list of str
        Keys, in the order in which they come up.
    """
    return list(dict.fromkeys(key for run in runs for key in run.get("swept") or {}))


def run_rows(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the runs with their sums.

    Parameters
    ----------
    runs : sequence of mapping
        Entries of ``runs``.

    Returns
    -------
    list of dict
        One for each run, all with the same keys: spec, machine, one for each swept value, policy, host, speed-up with
        its interval, counts, times, bytes and energy; names end in the unit.
    """
    rows = []
    for run in runs:
        summary = run["summary"]
        row: dict[str, Any] = {"spec": run["spec"], "machine": run.get("machineName") or run["machine"]}
        row |= {key: (run.get("swept") or {}).get(key) for key in swept_keys(runs)}
        row |= {"policy": run["policy"], "host": host_label(run)}
        interval = summary.get("speedupInterval") or {}
        row["speedup"] = _value(summary.get("speedup"))
        row |= {"speedupLow": _value(interval.get("low")), "speedupHigh": _value(interval.get("high"))}
        row |= {name: summary.get(name) for name in _COUNTS}
        row |= {name + unit: _value(summary.get(name)) for name, unit in _QUANTITIES.items()}
        rows.append(row)
    return rows


def _value(quantity: Mapping[str, Any] | None) -> Any:
    return None if quantity is None else quantity.get("value")


def runs_csv(runs: Sequence[Mapping[str, Any]]) -> str:
    """Write the runs as CSV.

    Parameters
    ----------
    runs : sequence of mapping
        Entries of ``runs``.

    Returns
    -------
    str
        Header and one line for each run, as `run_rows` lists them.
    """
    text = io.StringIO()
    rows = run_rows(runs) or [{"spec": None}]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(run_rows(runs))
    return text.getvalue()


def overview_rows(runs: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Set the summaries of several runs side by side.

    Parameters
    ----------
    runs : sequence of mapping
        Entries of ``runs``.

    Returns
    -------
    list of list of str
        A header row, then one row for each run; times name their kinds.
    """
    keys = swept_keys(runs)
    heads = ["model", "machine", *keys, "policy", "on PIM", "speed-up", "against"]
    heads += ["host nests", "PIM nests", "crossings", "all on the host", "over the link", "in the stack", "energy"]
    rows = [heads]
    for run in runs:
        summary = run["summary"]
        swept = run.get("swept") or {}
        cells = [run["spec"], run.get("machineName") or run["machine"], *(swept.get(key, ABSENT) for key in keys)]
        cells += [run["policy"], f"{summary['nestsOnPim']} of {summary['numNests']}"]
        cells += [spoken_speedup(summary) if summary.get("speedup") else ABSENT, host_label(run)]
        times = (
            host_quantity(summary, "OfHostNests"),
            pim_quantity(summary),
            summary.get("crossingTime"),
            host_quantity(summary),
        )
        cells += [format_quantity(quantity, with_kind=True) for quantity in times]
        cells += [format_quantity(summary.get(name)) for name in ("linkBytes", "dramBytes", "energy")]
        rows.append(cells)
    return rows
