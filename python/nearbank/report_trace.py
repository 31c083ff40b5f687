# SPDX-License-Identifier: Apache-2.0
"""Writes a run as a Chrome trace, which Perfetto opens: a host process, a PIM process, and the crossings between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearbank.render_units import value_of

_HOST, _PIM, _CROSSING = 1, 2, 3


def _process(first: int, number: int, name: str) -> list[dict[str, Any]]:
    return [
        {"ph": "M", "pid": first + number, "tid": 0, "name": "process_name", "args": {"name": name}},
        {
            "ph": "M",
            "pid": first + number,
            "tid": 0,
            "name": "process_sort_index",
            "args": {"sort_index": first + number},
        },
    ]


def _slice(pid: int, name: str, category: str, start_ns: float, quantity: Mapping[str, Any], args: dict) -> dict:
    duration = value_of(quantity)
    return {
        "ph": "X",
        "pid": pid,
        "tid": 1,
        "name": name,
        "cat": category,
        "ts": start_ns / 1000,
        "dur": duration / 1000,
        "args": {**args, "kind": quantity.get("kind")},
    }


def _run_events(run: Mapping[str, Any], first: int) -> list[dict[str, Any]]:
    title = f"{run['spec']} {run['policy']}"
    events = _process(first, _HOST, f"{title}: host (measured)")
    events += _process(first, _PIM, f"{title}: {run['machine']} (simulated)")
    events += _process(first, _CROSSING, f"{title}: crossings (modelled)")
    nests = {nest["id"]: nest for nest in run["nests"]}
    crossings: dict[str, list] = {}
    for crossing in run.get("crossings", []):
        crossings.setdefault(crossing["nest"], []).append(crossing)
    clock = 0.0
    for launch in run.get("launches", []):
        nest = nests.get(launch["nest"], {})
        for crossing in crossings.pop(launch["nest"], []):
            name = f"{crossing['kind']} {crossing.get('buffer') or ''}".strip()
            events.append(
                _slice(
                    first + _CROSSING,
                    name,
                    "crossing",
                    clock,
                    crossing["time"],
                    {"nest": launch["nest"], "bytes": crossing["bytes"]},
                )
            )
            clock += value_of(crossing["time"])
        is_pim = launch["site"] == "pim"
        details = {name: value for name, value in launch.items() if isinstance(value, int | float)}
        args = {"nest": launch["nest"], "source": nest.get("source", ""), **details}
        events.append(
            _slice(
                first + (_PIM if is_pim else _HOST),
                nest.get("kernel", launch["nest"]),
                launch["site"],
                clock,
                launch["time"],
                args,
            )
        )
        clock += value_of(launch["time"])
    for rest in crossings.values():
        for crossing in rest:
            events.append(
                _slice(
                    first + _CROSSING,
                    crossing["kind"],
                    "crossing",
                    clock,
                    crossing["time"],
                    {"nest": crossing["nest"], "bytes": crossing["bytes"]},
                )
            )
            clock += value_of(crossing["time"])
    return events


def trace_events(document: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the launches and crossings of all runs out in time.

    Parameters
    ----------
    document : mapping
        A run document.

    Returns
    -------
    dict
        A trace in Chrome's JSON format. The order is that of execution; durations keep their kinds (host measured, PIM
        simulated, crossings modelled), so distances between slices are an illustration, not a measurement.
    """
    events: list[dict[str, Any]] = []
    for number, run in enumerate(document.get("runs", [])):
        events += _run_events(run, number * 10)
    return {"displayTimeUnit": "ns", "otherData": {"schema": document.get("schema")}, "traceEvents": events}
