# SPDX-License-Identifier: Apache-2.0
"""Compares a report with an earlier one: what changed in each summary and at each nest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nearbank.render_units import ABSENT, format_quantity, value_of

#: Measured times repeat within some percent; a smaller change of theirs is none.
MEASURED_SLACK = 0.05
_NEST_QUANTITIES = ("modelledHostTime", "pimTime", "predictedPimTime", "hostTime")


def read_baseline(path: Path):
    """Read the report to compare with.

    Parameters
    ----------
    path : Path
        A folder of a report, or a run document.

    Returns
    -------
    nearbank.report.Report
        The report.

    Raises
    ------
    UserError
        NB0605 or NB0606.
    """
    from nearbank.report import load_report

    return load_report(path)


def _is_changed(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> bool:
    if before is None or after is None or before["kind"] != after["kind"]:
        return before != after
    old, new = before.get("value"), after.get("value")
    if old is None or new is None or before["kind"] != "measured":
        return old != new
    return abs(new - old) > MEASURED_SLACK * max(abs(old), abs(new))


def _change(name: str, before, after) -> dict[str, Any]:
    """Both quantities, and the ratio where they are of one kind."""
    entry: dict[str, Any] = {"name": name, "before": before, "after": after, "ratio": None}
    if before and after and (before["kind"], before["unit"]) == (after["kind"], after["unit"]) and value_of(before):
        entry["ratio"] = value_of(after) / value_of(before)
    return entry


def _summary_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    changes = []
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name), after.get(name)
        if isinstance(old, int) and isinstance(new, int):
            old, new = ({"value": value, "unit": "count", "kind": "counted"} for value in (old, new))
        is_quantity = all(side is None or (isinstance(side, Mapping) and "value" in side) for side in (old, new))
        if is_quantity and _is_changed(old, new):
            changes.append(_change(name, old, new))
    return changes


def _match_nests(before: Sequence[Mapping], after: Sequence[Mapping]) -> tuple[list[tuple], list, list]:
    """Pair nests of one key in program order; what is left on either side."""
    waiting: dict[str, list[Mapping]] = defaultdict(list)
    for nest in before:
        waiting[nest["key"]].append(nest)
    pairs, added = [], []
    for nest in after:
        if waiting[nest["key"]]:
            pairs.append((waiting[nest["key"]].pop(0), nest))
        else:
            added.append(nest)
    return pairs, added, [nest for nests in waiting.values() for nest in nests]


def _nest_changes(before: Sequence[Mapping], after: Sequence[Mapping]) -> list[dict[str, Any]]:
    pairs, added, removed = _match_nests(before, after)
    changes = []
    for old, new in pairs:
        quantities = [
            _change(name, old.get(name), new.get(name))
            for name in _NEST_QUANTITIES
            if _is_changed(old.get(name), new.get(name))
        ]
        if quantities or old["where"] != new["where"]:
            changes.append({**_nest_head(new), "before": old["where"], "after": new["where"], "quantities": quantities})
    changes += [{**_nest_head(nest), "before": None, "after": nest["where"], "quantities": []} for nest in added]
    changes += [{**_nest_head(nest), "before": nest["where"], "after": None, "quantities": []} for nest in removed]
    return changes


def _nest_head(nest: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": nest["id"], "key": nest["key"], "kernel": nest["kernel"]}


def _label(run: Mapping[str, Any]) -> tuple[str, str, str]:
    return run["spec"], run["machine"], run["policy"]


def compare(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Compare two run documents.

    Parameters
    ----------
    before, after : mapping
        Run documents.
    name : str
        What to call the earlier one.

    Returns
    -------
    dict
        ``baseline`` (the name), ``runs`` with ``summary`` and ``nests`` that changed, and ``unmatched``: runs that only
        one of the two has. Runs are matched by spec, machine and policy; two single runs always. Nests are matched by
        their structural keys. Measured times that differ by less than 5 % count as equal.
    """
    old_runs, new_runs = before.get("runs", []), after.get("runs", [])
    known = {_label(run): run for run in old_runs}
    is_single = len(old_runs) == len(new_runs) == 1
    runs, unmatched = [], []
    for run in new_runs:
        old = old_runs[0] if is_single else known.pop(_label(run), None)
        if old is None:
            unmatched.append({"label": list(_label(run)), "only": "after"})
            continue
        runs.append(
            {
                "label": list(_label(run)),
                "baselineLabel": list(_label(old)),
                "summary": _summary_changes(old["summary"], run["summary"]),
                "nests": _nest_changes(old["nests"], run["nests"]),
            }
        )
    if not is_single:
        unmatched += [{"label": list(label), "only": "before"} for label in known]
    return {"baseline": name, "runs": runs, "unmatched": unmatched}


def _arrow(change: Mapping[str, Any]) -> list[str]:
    ratio = ABSENT if change["ratio"] is None else f"x{change['ratio']:.3g}"
    before, after = (format_quantity(change[side], with_kind=True) for side in ("before", "after"))
    return [change["name"], before, after, ratio]


def summary_rows(run: Mapping[str, Any]) -> list[list[str]]:
    """Lay out the changes of a summary.

    Parameters
    ----------
    run : mapping
        One entry of the comparison's ``runs``.

    Returns
    -------
    list of list of str
        A header, then one row for each quantity.
    """
    return [["quantity", "before", "now", "ratio"], *(_arrow(change) for change in run["summary"])]


def nest_rows(run: Mapping[str, Any]) -> list[list[str]]:
    """Lay out the changes of nests, one row for each kernel, kind of move and quantity.

    Parameters
    ----------
    run : mapping
        One entry of the comparison's ``runs``.

    Returns
    -------
    list of list of str
        A header, then one row for each group of nests that changed alike.
    """
    groups: dict[tuple, list[Mapping[str, Any]]] = {}
    for nest in run["nests"]:
        parts = tuple(tuple(_arrow(change)) for change in nest["quantities"]) or ((ABSENT,) * 4,)
        for part in parts:
            before, after = nest["before"] or ABSENT, nest["after"] or ABSENT
            move = after if before == after else f"{before} → {after}"
            groups.setdefault((nest["kernel"], move, part), []).append(nest)
    rows = [["nest", "count", "kernel", "where", "quantity", "before", "now", "ratio"]]
    for (kernel, move, part), nests in groups.items():
        rows.append([nests[0]["id"] + ("+" if len(nests) > 1 else ""), f"x{len(nests)}", kernel, move, *part])
    return rows


def comparison_lines(comparison: Mapping[str, Any]) -> list[str]:
    """Print a comparison.

    Parameters
    ----------
    comparison : mapping
        As `compare` returns it.

    Returns
    -------
    list of str
        Lines without newlines.
    """
    from nearbank.render_text import table_lines

    lines = [f"differences from {comparison['baseline']}"]
    for run in comparison["runs"]:
        spec, machine, policy = run["label"]
        lines += ["", f"{spec} on {machine}, policy {policy}"]
        if run["label"] != run["baselineLabel"]:
            spec, machine, policy = run["baselineLabel"]
            lines.append(f"baseline: {spec} on {machine}, policy {policy}")
        if not run["summary"] and not run["nests"]:
            lines.append("no difference")
        for rows in (summary_rows(run), nest_rows(run)):
            if len(rows) > 1:
                lines += ["", *table_lines(rows)]
    for entry in comparison["unmatched"]:
        spec, machine, policy = entry["label"]
        side = "only here" if entry["only"] == "after" else "only in the baseline"
        lines += ["", f"{spec} on {machine}, policy {policy}: {side}"]
    return lines
