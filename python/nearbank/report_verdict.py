# SPDX-License-Identifier: Apache-2.0
"""Writes the one-line verdict of a run; it never divides times of different kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearbank.render_units import format_quantity, value_of
from nearbank.report_groups import host_quantity
from nearbank.report_runs import host_label
from nearbank.speedup import spoken_speedup


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _host(run: Mapping[str, Any]) -> str:
    threads = run.get("threads") or (run.get("baseline") or {}).get("threads")
    return f"this host with {_plural(threads, 'thread')}" if threads else "this host"


def _nothing_placed(run: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    nests = _plural(summary["numNests"], "nest")
    text = f"{run['policy']} keeps all {nests} of {run['spec']} on the host"
    host_time = host_quantity(summary)
    if value_of(host_time) > 0:
        where = _host(run) if host_time["kind"] == "measured" else host_label(run)
        text += f": {format_quantity(host_time)} on {where} ({host_time['kind']})"
    if run["policy"] != "cpu-only":
        text += "; pim-only shows what PIM would take"
    return text + "."


def _speedup_verdict(run: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    host = host_label(run)
    low, high = (value_of(summary["speedupInterval"][end]) for end in ("low", "high"))
    claim = "PIM helps" if low > 1 else "PIM does not help:" if high < 1 else "PIM makes no sure difference:"
    text = (
        f"{claim} {spoken_speedup(summary)} against {host}: {run['policy']} places {summary['nestsOnPim']} of "
        f"{_plural(summary['numNests'], 'nest')} on {run['machine']}; "
        f"{format_quantity(summary['modelledHostTimeOfHostNests'])} on the host, {format_quantity(summary['pimTime'])} "
        f"on PIM (simulated) and {format_quantity(summary['crossingTime'])} of crossings (modelled) instead of "
        f"{format_quantity(summary['modelledHostTime'])} on {host} alone (simulated)"
    )
    left_out = len(run.get("eagerOps") or [])
    return text + (f"; {_plural(left_out, 'operator')} in eager PyTorch left out." if left_out else ".")


def verdict(run: Mapping[str, Any]) -> str:
    """Say in one line what was placed and what it costs on either side.

    Parameters
    ----------
    run : mapping
        One entry of ``runs`` of the run document.

    Returns
    -------
    str
        One sentence. With a modelled host it opens with the speed-up over it (SU-1). Otherwise host times are measured,
        PIM times simulated (predicted when nothing was simulated), crossings modelled; each says so, and no ratio is
        formed across kinds.
    """
    summary = run["summary"]
    if summary["numNests"] == 0:
        return f"{run['spec']} has no parallel loop nest that compiles, so there is nothing to place."
    on_pim = summary["nestsOnPim"]
    if on_pim == 0:
        return _nothing_placed(run, summary)
    if summary.get("speedup"):
        return _speedup_verdict(run, summary)
    pim_time = summary.get("pimTime") or summary.get("predictedPimTime")
    host_time = summary.get("hostTimeOfPimNests")
    verb = "it takes" if on_pim == 1 else "they take"
    text = f"{run['policy']} places {on_pim} of {_plural(summary['numNests'], 'nest')} on {run['machine']}"
    clauses = []
    if pim_time:
        clauses.append(f"{format_quantity(pim_time)} on PIM ({pim_time['kind']})")
    if host_time:
        clauses.append(f"{format_quantity(host_time)} on {_host(run)} ({host_time['kind']})")
    if clauses:
        text += f": {verb} " + " and ".join(clauses)
    crossing = summary.get("crossingTime")
    if value_of(crossing) > 0:
        text += f", with {format_quantity(crossing)} of crossings ({crossing['kind']})"
    if len(clauses) == 2 and pim_time["kind"] != host_time["kind"]:
        text += "; kinds differ, so no speed-up is claimed"
    return text + "."
