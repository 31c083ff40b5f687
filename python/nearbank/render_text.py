# SPDX-License-Identifier: Apache-2.0
"""Prints a run as text: the placement table, the summary lines and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nearbank.render_units import ABSENT, format_number, format_quantity, value_of
from nearbank.report_groups import NestGroup, group_nests, pim_quantity
from nearbank.report_verdict import verdict

#: Above this many nests the table shows one row for each distinct kernel and side.
GROUPING_LIMIT = 24
_COLUMNS = ("nest", "count", "kernel", "source", "where", "host time", "PIM time", "MPKI", "LFMR", "ops/B", "reason")
_RIGHT = {1, 5, 6, 7, 8, 9}
_KERNEL, _SOURCE, _REASON = 2, 3, 10
_NARROWEST = {_KERNEL: 16, _SOURCE: 12, _REASON: 12}


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def _shorten_front(text: str, width: int) -> str:
    return text if len(text) <= width else "…" + text[len(text) - max(width - 1, 0) :]


def _fit(widths: list[int], width: int | None) -> list[int]:
    """Take columns that do not fit away from reason first, then kernel, then source."""
    if width is None:
        return widths
    for column in (_REASON, _KERNEL, _SOURCE):
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        if excess > 0:
            widths[column] = max(min(widths[column], _NARROWEST[column]), widths[column] - excess)
    return widths


def table_lines(rows: Sequence[Sequence[str]], right: Iterable[int] = (), width: int | None = None) -> list[str]:
    """Lay rows out in columns.

    Parameters
    ----------
    rows : sequence of sequences of str
        The first row is the header.
    right : iterable of int
        Columns that are aligned to the right.
    width : int, optional
        Columns of the terminal; None leaves every cell whole.

    Returns
    -------
    list of str
        One line for each row, without spaces at the end.
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    if len(widths) == len(_COLUMNS):
        widths = _fit(widths, width)
    lines = []
    for row in rows:
        cells = []
        for column, cell in enumerate(row):
            shorten = _shorten_front if column == _SOURCE and len(widths) == len(_COLUMNS) else _shorten
            cell = shorten(cell, widths[column])
            cells.append(cell.rjust(widths[column]) if column in set(right) else cell.ljust(widths[column]))
        lines.append("  ".join(cells).rstrip())
    return lines


def _cells(group: NestGroup) -> list[str]:
    first = group.nests[0]
    profile = first.get("profile") or {}
    pim = group.pim_time
    pim_text = format_quantity(pim)
    if pim is not None and pim["kind"] == "predicted":
        pim_text = "~" + pim_text
    intensity = profile.get("dramIntensity") or {"value": first["facts"].get("intensity"), "unit": "1"}
    return [
        group.label,
        f"x{len(group.nests)}",
        first["kernel"],
        group.source or ABSENT,
        "once" if first.get("hoisted") else first["where"],
        format_quantity(group.host_time),
        pim_text,
        _plain(profile.get("mpki")),
        _plain(profile.get("lfmr")),
        _plain(intensity),
        first["why"].get("reason", ""),
    ]


def _plain(quantity: Mapping[str, Any] | None) -> str:
    return ABSENT if quantity is None or quantity.get("value") is None else format_number(value_of(quantity))


def placement_lines(run: Mapping[str, Any], show_all: bool = False, width: int | None = None) -> list[str]:
    """Lay out the placement table of a run.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.
    show_all : bool, default False
        One row for each nest, however many there are.
    width : int, optional
        Columns of the terminal.

    Returns
    -------
    list of str
        Header, rows and a note on the kinds of the columns.
    """
    grouped = not show_all and len(run["nests"]) > GROUPING_LIMIT
    groups = group_nests(run["nests"]) if grouped else [NestGroup([nest]) for nest in run["nests"]]
    if not groups:
        return ["no parallel loop nests"]
    rows = [list(_COLUMNS)] + [_cells(group) for group in groups]
    notes = [
        "host time: measured; PIM time: simulated, or predicted where it starts with ~; MPKI, LFMR, ops/B: modelled"
    ]
    if grouped:
        notes.append("one row for each distinct kernel and side, times summed over its nests; every nest: --all")
    return table_lines(rows, _RIGHT, width) + [""] + notes


def _sum_of(run: Mapping[str, Any], key: str) -> str:
    return format_quantity(run["summary"].get(key), with_kind=True)


def summary_lines(run: Mapping[str, Any]) -> list[str]:
    """Lay out the summary of a run, one quantity a line.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.

    Returns
    -------
    list of str
        Lines of the form ``name: value (kind)``.
    """
    summary = run["summary"]
    baseline = run.get("baseline") or {}
    lines = [
        f"nests:      {summary['numNests']} ({summary['distinctNests']} distinct): {summary['nestsOnPim']} on PIM, "
        f"{summary['nestsOnHost']} on the host, {summary['nestsHoisted']} hoisted",
        f"profiles:   {summary.get('profiledNests', 0)} new, {summary.get('reusedProfiles', 0)} reused",
        f"host:       {_sum_of(run, 'hostTimeOfHostNests')} in nests kept on the host; all nests on the host would "
        f"take {_sum_of(run, 'hostTime')}; {baseline.get('name', 'native host')}, threads: {run.get('threads')}",
    ]
    if summary["nestsOnPim"]:
        lines.append(
            f"PIM:        {format_quantity(pim_quantity(summary), with_kind=True)} in nests placed on {run['machine']}; "
            f"the same nests on the host: {_sum_of(run, 'hostTimeOfPimNests')}"
        )
        lines.append(
            f"crossings:  {_sum_of(run, 'crossingTime')}; {_sum_of(run, 'linkBytes')} over the link; "
            f"{_sum_of(run, 'dramBytes')} inside the stack"
        )
    if summary.get("maxAbsError"):
        error = f"error:      at most {_sum_of(run, 'maxAbsError')} against eager"
        if summary.get("errorBound"):
            error += f"; allowed: {_sum_of(run, 'errorBound')}"
        lines.append(error)
    if run.get("eagerOps"):
        names = sorted({entry["op"] for entry in run["eagerOps"]})
        lines.append(f"eager ops:  {len(run['eagerOps'])} on the host in PyTorch: {', '.join(names)}")
    return lines


def run_text(run: Mapping[str, Any], show_all: bool = False, width: int | None = None) -> str:
    """Print one run.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.
    show_all : bool, default False
        One row for each nest.
    width : int, optional
        Columns of the terminal; None leaves every cell whole.

    Returns
    -------
    str
        Title, table, summary and verdict; ends without a newline.
    """
    title = f"{run['spec']} on {run['machine']}, policy {run['policy']}"
    lines = [title, ""] + placement_lines(run, show_all, width) + [""] + summary_lines(run)
    lines += ["", run["summary"].get("verdict") or verdict(run)]
    return "\n".join(lines)
