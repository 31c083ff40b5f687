# SPDX-License-Identifier: Apache-2.0
"""Renders a run document as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from nearbank.baseline import nest_rows, summary_rows
from nearbank.html_bars import kernel_bars, summary_bars, traffic_bars
from nearbank.html_cards import cards
from nearbank.html_roofline import roofline_svg
from nearbank.html_tables import crossing_rows, placement_rows, tiles
from nearbank.html_templates import templates
from nearbank.render_units import format_number, format_quantity, format_value, value_of
from nearbank.report_runs import host_label, overview_rows
from nearbank.report_verdict import verdict

#: With more runs than this, or several with more nests together, each is shown without its cards, roofline and list of
#: nests: a page stays below about a megabyte.
BRIEF_LIMIT = 4
BRIEF_NESTS = 1200


@cache
def _environment() -> jinja2.Environment:
    environment = templates()
    environment.filters.update(quantity=format_quantity, number=format_number, value_of=value_of)
    environment.globals.update(format_value=format_value)
    return environment


def _run_view(run: Mapping[str, Any], number: int, brief: bool) -> dict[str, Any]:
    prefix = f"r{number}"
    return {
        "brief": brief,
        "host_label": host_label(run),
        "host_kind": "measured" if host_label(run) == "this host" else "simulated",
        "prefix": prefix,
        "run": run,
        "summary": run["summary"],
        "verdict": run["summary"].get("verdict") or verdict(run),
        "tiles": tiles(run),
        "rows": placement_rows(run, prefix),
        "summary_bars": summary_bars(run),
        "kernel_bars": kernel_bars(run),
        # Made by us; its texts are escaped.
        "roofline": "" if brief else Markup(roofline_svg(run, prefix)),  # noqa: S704
        "cards": [] if brief else cards(run, prefix),
        "traffic_bars": traffic_bars(run),
        "crossings": crossing_rows(run),
        "eager_ops": run.get("eagerOps") or [],
        "machine_values": run.get("machineValues") or [],
    }


def _is_brief(runs) -> bool:
    return len(runs) > BRIEF_LIMIT or (len(runs) > 1 and sum(len(run["nests"]) for run in runs) > BRIEF_NESTS)


def page_html(document: Mapping[str, Any]) -> str:
    """Render a run document.

    Parameters
    ----------
    document : mapping
        A run document.

    Returns
    -------
    str
        An HTML page with its style, script and drawings inside; the same text for the same document.
    """
    is_brief = _is_brief(document.get("runs", []))
    runs = [_run_view(run, number, is_brief) for number, run in enumerate(document.get("runs", []))]
    overview = overview_rows(document["runs"]) if len(runs) > 1 else []
    title = ", ".join(dict.fromkeys(f"{view['run']['spec']} on {view['run']['machine']}" for view in runs))
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            document=document,
            runs=runs,
            overview=overview,
            comparison=_comparison_view(document.get("comparison")),
            title=title or "no runs",
        )
    )


def _comparison_view(comparison: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    runs = []
    for run in comparison["runs"]:
        spec, machine, policy = run["label"]
        tables = [rows for rows in (summary_rows(run), nest_rows(run)) if len(rows) > 1]
        runs.append({"title": f"{spec} on {machine}, policy {policy}", "tables": tables})
    unmatched = [
        "{} on {}, policy {}: {}".format(*entry["label"], "only here" if entry["only"] == "after" else "only before")
        for entry in comparison["unmatched"]
    ]
    return {"baseline": comparison["baseline"], "runs": runs, "unmatched": unmatched}
