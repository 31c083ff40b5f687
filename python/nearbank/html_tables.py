# SPDX-License-Identifier: Apache-2.0
"""Prepares the tiles and tables of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearbank.render_units import format_bytes, format_quantity, format_time, value_of
from nearbank.report_groups import NestGroup, dram_intensity, group_nests, host_quantity, pim_quantity
from nearbank.report_runs import host_label
from nearbank.speedup import spoken_speedup


def tile(label: str, value: str, kind: str, note: str = "", side: str = "") -> dict[str, str]:
    """Make a figure for the head of the page.

    Parameters
    ----------
    label, value, kind, note, side : str
        Name, printed value, kind of the quantity, a second line, and ``"host"`` or ``"pim"`` for its colour.

    Returns
    -------
    dict of str to str
        The parts by name.
    """
    return {"label": label, "value": value, "kind": kind, "note": note, "side": side}


def _quantity_tile(summary: Mapping[str, Any], key: str, label: str, note: str = "", side: str = "") -> list[dict]:
    quantity = summary.get(key)
    return [tile(label, format_quantity(quantity), quantity["kind"], note, side)] if quantity else []


def _host_tile(run: Mapping[str, Any], suffix: str, label: str) -> list[dict]:
    quantity = host_quantity(run["summary"], suffix)
    if quantity is None:
        return []
    note = f"threads: {run.get('threads')}" if quantity["kind"] == "measured" else ""
    return [tile(f"{label} {host_label(run)}", format_quantity(quantity), quantity["kind"], note, "host")]


def tiles(run: Mapping[str, Any]) -> list[dict[str, str]]:
    """Choose the figures for the head of the page.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.

    Returns
    -------
    list of dict
        Tiles, each with its kind; absent quantities have none.
    """
    summary = run["summary"]
    found = []
    if summary.get("speedup"):
        note = f"against {host_label(run)}"
        found.append(tile("speed-up", spoken_speedup(summary), summary["speedup"]["kind"], note, "pim"))
    found += [
        tile(
            "nests on PIM",
            f"{summary['nestsOnPim']} of {summary['numNests']}",
            "counted",
            f"{summary['distinctNests']} distinct, {summary['nestsHoisted']} hoisted",
        )
    ]
    if summary["nestsOnPim"]:
        pim = pim_quantity(summary)
        if pim:
            found.append(tile("placed nests, on PIM", format_quantity(pim), pim["kind"], run["machine"], "pim"))
        found += _host_tile(run, "OfPimNests", "placed nests, on")
        found += _quantity_tile(summary, "crossingTime", "crossings", f"{len(run.get('crossings') or [])} of them")
    found += _host_tile(run, "", "all nests, on")
    found += _quantity_tile(summary, "eagerTime", "eager PyTorch", "the same model on this host", "host")
    bound = summary.get("errorBound")
    note = f"allowed: {format_quantity(bound)}" if bound else ""
    found += _quantity_tile(summary, "maxAbsError", "error against float64", note)
    return found


def _row(group: NestGroup, prefix: str, number: int) -> dict[str, Any]:
    first = group.nests[0]
    profile = first.get("profile") or {}
    return {
        "card": f"{prefix}-k{number}",
        "label": group.label,
        "count": len(group.nests),
        "kernel": first["kernel"],
        "source": group.source,
        "full_source": first.get("source") or "",
        "where": first["where"],
        "hoisted": bool(first.get("hoisted")),
        "host": group.host_time,
        "pim": group.pim_time,
        "mpki": profile.get("mpki"),
        "lfmr": profile.get("lfmr"),
        "intensity": dram_intensity(first),
        "reason": first["why"].get("reason", ""),
    }


def placement_rows(run: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Prepare the placement table, one row for each distinct kernel, side and reason.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.
    prefix : str
        Start of the anchors of this run.

    Returns
    -------
    list of dict
        Rows in program order; `card` is the anchor of the card that explains the row.
    """
    return [_row(group, prefix, number) for number, group in enumerate(group_nests(run["nests"]))]


_MEANINGS = {
    "flush": "host lines written back before PIM reads them",
    "fetch": "lines that PIM wrote, read by the host",
    "launch": "control passes from host to PIM",
    "return": "control passes from PIM to host",
    "scatter": "operands shared out among DPUs",
    "broadcast": "operands that every DPU gets whole",
    "gather": "results read from DPUs",
    "load": "programs loaded into DPUs",
    "arrange": "copies on the host into the order in which DPUs hold data",
}


def crossing_rows(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Sum the crossings of a run by what crosses.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.

    Returns
    -------
    list of dict
        One row for each kind of crossing: count (counted), bytes (counted) and time (modelled).
    """
    rows = []
    crossings = run.get("crossings") or []
    for kind in dict.fromkeys([*_MEANINGS, *(crossing["kind"] for crossing in crossings)]):
        of_kind = [crossing for crossing in crossings if crossing["kind"] == kind]
        if of_kind:
            rows.append(
                {
                    "kind": kind,
                    "meaning": _MEANINGS.get(kind, ""),
                    "count": len(of_kind),
                    "bytes": format_bytes(sum(crossing["bytes"] for crossing in of_kind)),
                    "time": format_time(sum(value_of(crossing["time"]) for crossing in of_kind)),
                }
            )
    return rows
