# SPDX-License-Identifier: Apache-2.0
"""Prepares the cards of the page: one for each distinct kernel and decision, with the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearbank.render_units import ABSENT, format_count, format_quantity, format_value
from nearbank.report_groups import NestGroup, group_nests

#: Above this many cards they start closed.
OPEN_CARDS = 40


def _input(entry: Mapping[str, Any]) -> dict[str, str]:
    value = entry.get("value")
    text = format_value(value, entry.get("unit", "")) if isinstance(value, int | float) else str(value or ABSENT)
    return {"name": entry.get("name", ""), "text": text, "provenance": entry.get("provenance", "")}


def _equation(equation: Mapping[str, Any]) -> dict[str, Any]:
    def number(name: str) -> str:
        value = equation.get(name)
        return ABSENT if value is None else format_count(value)

    return {
        "id": equation["id"],
        "text": equation.get("text", ""),
        "inputs": [_input(entry) for entry in equation.get("inputs") or []],
        "value": number("value"),
        "threshold": number("threshold"),
        "margin": number("margin"),
        "passed": equation.get("passed"),
    }


def _facts(nest: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    facts, profile = nest["facts"], nest.get("profile") or {}
    trips = " × ".join(str(trip) for trip in facts.get("tripCounts") or []) or "scalar"
    total = (facts.get("operations") or {}).get("total", 0)
    rows = [
        ("kind", f"{nest['kind']}, {facts.get('computeType') or '-'}", ""),
        ("trip counts", trips, "counted"),
        ("parallel iterations", format_count(facts.get("parallelExtent", 0)), "counted"),
        ("operations", format_count(total), "counted"),
        ("bytes read", format_value(facts.get("bytesRead", 0), "B"), "counted"),
        ("bytes written", format_value(facts.get("bytesWritten", 0), "B"), "counted"),
    ]
    named = [
        ("host time, one thread", profile.get("oneThreadTime")),
        ("host time, all threads", profile.get("allThreadsTime") or nest.get("hostTime")),
        ("modelled host time", nest.get("modelledHostTime")),
        ("PIM time", nest.get("pimTime")),
        ("PIM time by PL-3", nest.get("predictedPimTime")),
        ("MPKI", profile.get("mpki")),
        ("LFMR", profile.get("lfmr")),
        ("DRAM bytes", profile.get("dramBytes")),
        ("operations per DRAM byte", profile.get("dramIntensity")),
    ]
    return rows + [(name, format_quantity(value), value["kind"]) for name, value in named if value]


def _origin(group: NestGroup) -> str:
    first = group.nests[0]
    parts = [first[name] for name in ("source", "modulePath", "torchOp") if first.get(name)]
    others = len(group.nests) - 1
    return " · ".join(parts or ["no source line"]) + (f" · and {others} more" if others else "")


def _card(group: NestGroup, anchor: str) -> dict[str, Any]:
    first = group.nests[0]
    why = first["why"]
    return {
        "anchor": anchor,
        "kernel": first["kernel"],
        "key": first["key"],
        "where": first["where"],
        "hoisted": bool(first.get("hoisted")),
        "status": why.get("status", ""),
        "reason": why.get("reason", ""),
        "flip": why.get("flip", ""),
        "suggestion": why.get("suggestion", ""),
        "equations": [_equation(equation) for equation in why.get("equations") or []],
        "facts": _facts(first),
        "cache_source": (first.get("profile") or {}).get("source", ""),
        "source": _origin(group),
        "maps": first["facts"].get("accessMaps") or [],
        "nests": group.nests,
    }


def cards(run: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Prepare the cards of a run.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.
    prefix : str
        Start of the anchors of this run.

    Returns
    -------
    list of dict
        In the order of the rows of the placement table; each lists the nests it stands for.
    """
    found = [_card(group, f"{prefix}-k{number}") for number, group in enumerate(group_nests(run["nests"]))]
    for card in found:
        card["open"] = len(found) <= OPEN_CARDS
    return found
