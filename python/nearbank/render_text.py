# SPDX-License-Identifier: Apache-2.0
"""Prints a run as text: the placement table, the summary lines and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nearbank.render_units import ABSENT, format_number, format_quantity, value_of
from nearbank.report_dpus import dpu_rows
from nearbank.report_groups import NestGroup, dram_intensity, group_nests, host_quantity, pim_quantity
from nearbank.report_runs import host_label
from nearbank.report_verdict import verdict

#: Above this many nests the table shows one row for each distinct kernel and side.
GROUPING_LIMIT = 24
#: Heading, whether aligned to the right.
_COLUMNS = {
    "nest": False,
    "count": True,
    "kernel": False,
    "source": False,
    "kind": False,
    "where": False,
    "host time": True,
    "PIM time": True,
    "MPKI": True,
    "LFMR": True,
    "ops/B": True,
    "reason": False,
}
#: Columns that narrow when the terminal is narrow, in this order, and how far.
_NARROWEST = {"reason": 14, "kernel": 15, "source": 12}
#: Columns that go when that is not enough, in this order.
_DROPPED = ("kind", "ops/B", "LFMR", "MPKI", "source")


def _shorten(text: str, width: int, keep_end: bool) -> str:
    if len(text) <= width:
        return text
    kept = max(width - 1, 0)
    return "…" + text[len(text) - kept :] if keep_end else text[:kept] + "…"


def _excess(widths: Mapping[str, int], width: int) -> int:
    return sum(widths.values()) + 2 * (len(widths) - 1) - width


def _fit(widths: dict[str, int], width: int) -> dict[str, int]:
    """Narrow columns, then drop some, until a row fits the terminal."""
    kept = dict(widths)
    for dropped in (None, *_DROPPED):
        if dropped:
            del kept[dropped]
        fitted = dict(kept)
        for name, narrowest in _NARROWEST.items():
            if name in fitted:
                fitted[name] = max(min(fitted[name], narrowest), fitted[name] - max(_excess(fitted, width), 0))
        if _excess(fitted, width) <= 0:
            break
    return fitted


def _placement_table(rows: Sequence[Mapping[str, str]], width: int | None) -> list[str]:
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in _COLUMNS}
    if width is not None:
        widths = _fit(widths, width)
    lines = []
    for row in [{name: name for name in _COLUMNS}, *rows]:
        cells = []
        for name, size in widths.items():
            cell = _shorten(row[name], size, keep_end=name == "source")
            cells.append(cell.rjust(size) if _COLUMNS[name] else cell.ljust(size))
        lines.append("  ".join(cells).rstrip())
    return lines


def table_lines(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Lay rows out in columns.

    Parameters
    ----------
    rows : sequence of sequences of str
        The first row is the header.
    right : iterable of int
        Columns that are aligned to the right.

    Returns
    -------
    list of str
        One line for each row, without spaces at the end.
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    aligned = set(right)
    return [
        "  ".join(
            cell.rjust(width) if column in aligned else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cells(group: NestGroup) -> dict[str, str]:
    first = group.nests[0]
    profile = first.get("profile") or {}
    pim = group.pim_time
    pim_text = format_quantity(pim)
    if pim is not None and pim["kind"] == "predicted":
        pim_text = "~" + pim_text
    return {
        "nest": group.label,
        "count": f"x{len(group.nests)}",
        "kernel": first["kernel"],
        "source": group.source or ABSENT,
        "kind": first["kind"],
        "where": first["where"] + (" once" if first.get("hoisted") else ""),
        "host time": format_quantity(group.host_time),
        "PIM time": pim_text,
        "MPKI": _plain(profile.get("mpki")),
        "LFMR": _plain(profile.get("lfmr")),
        "ops/B": format_number(dram_intensity(first)),
        "reason": first["why"].get("reason", ""),
    }


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
    rows = [_cells(group) for group in groups]
    notes = [
        f"host time: {host_note(run)}; PIM time: simulated, or predicted where it starts with ~; MPKI, LFMR, ops/B: "
        "modelled"
    ]
    if grouped:
        notes.append("one row for each distinct kernel and side, times summed over its nests; every nest: --all")
    return [*_placement_table(rows, width), "", *notes]


def host_note(run: Mapping[str, Any]) -> str:
    """Say what the host times of a run's nests are.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.

    Returns
    -------
    str
        ``"measured"``, or ``"simulated on host-16"``.
    """
    label = host_label(run)
    return "measured" if label == "this host" else f"simulated on {label}"


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
    ]
    if summary.get("simulatedNests") or summary.get("reusedSimulations"):
        lines.append(f"simulated:  {summary['simulatedNests']} new, {summary['reusedSimulations']} reused")
    name = host_label(run)
    if name == "this host":
        name = f"{baseline.get('name', 'native host')}, threads: {run.get('threads')}"
    on_host, alone = (format_quantity(host_quantity(summary, of), with_kind=True) for of in ("OfHostNests", ""))
    lines.append(f"host:       {on_host} in nests kept on the host; all nests on the host would take {alone}; {name}")
    if summary["nestsOnPim"]:
        lines.append(
            f"PIM:        {format_quantity(pim_quantity(summary), with_kind=True)} in nests on {run['machine']}; "
            f"the same nests on the host: {format_quantity(host_quantity(summary, 'OfPimNests'), with_kind=True)}"
        )
        lines.append(
            f"crossings:  {_sum_of(run, 'crossingTime')}; {_sum_of(run, 'linkBytes')} over the link; "
            f"{_sum_of(run, 'dramBytes')} inside the stack"
        )
    if summary.get("energy"):
        lines.append(
            f"energy:     {_sum_of(run, 'energy')}, {format_quantity(summary['linkEnergy'])} of it over the link; "
            f"all nests on the host: {_sum_of(run, 'modelledHostEnergy')}"
        )
    if summary.get("maxAbsError"):
        error = f"error:      {_sum_of(run, 'maxAbsError')} against float64"
        if summary.get("eagerMaxAbsError"):
            error += f"; eager PyTorch's own: {_sum_of(run, 'eagerMaxAbsError')}"
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
    if rows := dpu_rows(run):
        heads = {name: name for name in rows[0]} | {"dpus": "DPUs", "mram": "MRAM/DPU", "resident": "stays there"}
        table = table_lines([tuple(row.values()) for row in (heads, *rows)])
        lines += ["", "shares of DPUs (transfers modelled, of one launch)", *table]
    lines += ["", run["summary"].get("verdict") or verdict(run)]
    return "\n".join(lines)
