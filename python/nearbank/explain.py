# SPDX-License-Identifier: Apache-2.0
"""Explains one decision with its numbers, or one error code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearbank import error_catalog
from nearbank.errors import unknown_name
from nearbank.render_units import ABSENT, format_count, format_quantity, format_value
from nearbank.report import load_report
from nearbank.report_runs import host_label


def explain(subject: str, nest: str | None = None) -> str:
    """Explain an error code, or a nest of a report.

    Parameters
    ----------
    subject : str
        Error code such as ``"NB0101"``, or the folder of a report.
    nest : str, optional
        Id of a nest of that report; without it the decisions are listed.

    Returns
    -------
    str
        Text without a newline at the end.

    Raises
    ------
    UserError
        NB0005 for an unknown code, NB0605 or NB0606 when there is no report to read, NB0607 for an unknown nest.
    """
    if nest is None and error_catalog.is_code(subject):
        return error_catalog.entry(subject)
    report = load_report(subject)
    if nest is None:
        return "\n\n".join(_overview(run) for run in report.runs)
    found = [(run, candidate) for run in report.runs for candidate in run["nests"] if candidate["id"] == nest]
    if not found:
        ids = [candidate["id"] for run in report.runs for candidate in run["nests"]]
        raise unknown_name(
            "user",
            "NB0607",
            "no nest of this id in the report",
            nest,
            dict.fromkeys(ids),
            subject,
            f"nearbank explain {subject} lists the nests",
        )
    return "\n\n".join(nest_text(run, candidate) for run, candidate in found)


def _overview(run: Mapping[str, Any]) -> str:
    lines = [f"{run['spec']} on {run['machine']}, policy {run['policy']}", run["summary"]["verdict"], ""]
    for nest in run["nests"]:
        why = nest["why"]
        lines.append(
            f"{nest['id']:<6} {nest['where']:<5} {why.get('status', ''):<13} {nest['kernel']}: {why.get('reason', '')}"
        )
    return "\n".join(lines)


def equation_lines(equation: Mapping[str, Any]) -> list[str]:
    """Print an equation with its inputs, its threshold and its margin.

    Parameters
    ----------
    equation : mapping
        An entry of ``why.equations``.

    Returns
    -------
    list of str
        The first line holds the equation and whether it holds; one line for each input follows.
    """
    passed = equation.get("passed")
    outcome = "" if passed is None else (": holds" if passed else ": does not hold")
    lines = [f"{equation['id']}  {equation.get('text', '')}{outcome}"]
    for entry in equation.get("inputs", []):
        value = entry.get("value")
        shown = format_value(value, entry.get("unit", "")) if isinstance(value, int | float) else str(value or ABSENT)
        lines.append(f"      {entry['name']} = {shown}  [{entry.get('provenance', ABSENT)}]")
    if equation.get("threshold") is not None and equation.get("value") is not None:
        line = f"      value {format_count(equation['value'])}, threshold {format_count(equation['threshold'])}"
        if equation.get("margin") is not None:
            margin = equation["margin"]
            line += f", margin {'-' if margin < 0 else '+'}{format_count(abs(margin))}"
        lines.append(line)
    return lines


def _fact_lines(nest: Mapping[str, Any]) -> list[str]:
    facts = nest["facts"]
    trips = " x ".join(str(trip) for trip in facts.get("tripCounts", [])) or "scalar"
    operations = facts.get("operations") or {}
    parts = [f"{name} {format_count(value)}" for name, value in operations.items() if value and name != "total"]
    read, written = (format_value(facts.get(name, 0), "B") for name in ("bytesRead", "bytesWritten"))
    extent = format_count(facts.get("parallelExtent", 0))
    return [
        f"  kind:        {nest['kind']}, {facts.get('computeType', '')}",
        f"  trip counts: {trips} ({', '.join(facts.get('iteratorTypes', []))})",
        f"  iterations:  {format_count(facts.get('iterations', 0))}, {extent} of them parallel (MLIR, counted)",
        f"  operations:  {format_count(operations.get('total', 0))} (MLIR, counted)"
        + (f": {', '.join(parts)}" if parts else ""),
        f"  bytes:       {read} read, {written} written (MLIR, counted)",
    ]


def _profile_lines(nest: Mapping[str, Any]) -> list[str]:
    profile = nest.get("profile")
    if not profile:
        return ["  profile:     none"]
    figures = [
        ("one thread", "oneThreadTime"),
        ("all threads", "allThreadsTime"),
        ("MPKI", "mpki"),
        ("LFMR", "lfmr"),
        ("DRAM bytes", "dramBytes"),
        ("intensity", "dramIntensity"),
    ]
    lines = [f"  {name + ':':<12} {format_quantity(profile.get(key), with_kind=True)}" for name, key in figures]
    return [*lines, f"  {'source:':<12} {profile.get('source', ABSENT)}"]


def nest_text(run: Mapping[str, Any], nest: Mapping[str, Any]) -> str:
    """Explain the decision about one nest.

    Parameters
    ----------
    run : mapping
        The entry of ``runs`` that the nest belongs to.
    nest : mapping
        The nest.

    Returns
    -------
    str
        Facts, profile, times, equations and what would flip the decision.
    """
    why = nest["why"]
    origin = "  ".join(nest[name] for name in ("source", "torchOp", "modulePath") if nest.get(name)) or ABSENT
    place = "PIM" if nest["where"] == "pim" else "the host"
    lines = [
        f"{nest['id']}  {nest['kernel']}  ({run['spec']} on {run['machine']}, policy {run['policy']})",
        f"  source:      {origin}",
        f"  key:         {nest['key']}",
        f"  decision:    {why['status']}: runs on {place}"
        + (" once, outside the timed program" if nest.get("hoisted") else ""),
        f"  reason:      {why.get('reason') or ABSENT}",
        "",
        "facts",
        *_fact_lines(nest),
        "",
        "host profile",
        *_profile_lines(nest),
        "",
        "times",
        f"  host:        {format_quantity(nest.get('hostTime'), with_kind=True)}, threads: {run.get('threads')}",
        *(
            [f"  {host_label(run)}:     {format_quantity(nest['modelledHostTime'], with_kind=True)}"]
            if nest.get("modelledHostTime")
            else []
        ),
        f"  PIM:         {format_quantity(nest.get('pimTime'), with_kind=True)}",
        f"  PIM by PL-3: {format_quantity(nest.get('predictedPimTime'), with_kind=True)}",
    ]
    equations = why.get("equations") or []
    lines += ["", "equations (docs/model.md)"]
    lines += [f"  {line}" for equation in equations for line in equation_lines(equation)] or [
        "  none decided this nest"
    ]
    lines += ["", f"would flip it: {why.get('flip') or 'nothing short of another policy, --pin or --forbid'}"]
    if why.get("suggestion"):
        lines.append(f"suggestion:    {why['suggestion']}")
    return "\n".join(lines)
