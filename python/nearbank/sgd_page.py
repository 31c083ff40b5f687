# SPDX-License-Identifier: Apache-2.0
"""Renders a training document as one HTML page that needs no network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from typing import Any

import jinja2
from markupsafe import Markup

from nearbank.html_templates import templates
from nearbank.sgd_document import TIME_LABELS, spoken_seconds, verdict

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM = 560, 260, 64, 28, 40


@cache
def _template() -> jinja2.Template:
    environment = templates()
    environment.globals.update(seconds=spoken_seconds, columns=_COLUMNS)
    return environment.get_template("train.html.j2")


#: Columns of the table of epochs.
_COLUMNS = {
    "loss": "loss",
    "accuracy": "accuracy",
    "auc": "AUC",
    "testLoss": "test loss",
    "testAccuracy": "test accuracy",
    "testAuc": "test AUC",
    "dispersion": "dispersion",
}


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, three to seven."""
    rough = (high - low) / 4
    magnitude = 10 ** math.floor(math.log10(rough))
    step = magnitude * min((1, 2, 2.5, 5, 10), key=lambda factor: abs(math.log(factor * magnitude / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def line_chart(series: Sequence[tuple[str, str, Sequence[tuple[float, float]]]], x_label: str, y_label: str) -> str:
    """Draw lines over time.

    Parameters
    ----------
    series : sequence of (label, class, points)
        Each with its points (x, y).
    x_label, y_label : str
        Axes.

    Returns
    -------
    str
        SVG.
    """
    points = [point for _, _, line in series for point in line]
    if not points:
        return ""
    right = max(x for x, _ in points) or 1.0
    low, high = min(y for _, y in points), max(y for _, y in points)
    if high - low < 1e-9:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (_WIDTH - _LEFT - _RIGHT) * x / right
        return across, 12 + (_HEIGHT - _BOTTOM - 12) * (high - y) / (high - low)

    parts = [f'<svg class="roofline" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(y_label)}">']
    for value in _ticks(low, high):
        _, down = place(0, value)
        parts.append(f'<path class="grid" d="M{_LEFT} {down:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{down + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for value in _ticks(0, right):
        across, _ = place(value, low)
        label = spoken_seconds(value) if x_label.startswith("time") else f"{value:.0f}"
        parts.append(f'<text x="{across:.1f}" y="{_HEIGHT - 22}" text-anchor="middle">{label}</text>')
    middle = (_LEFT + _WIDTH) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>')
    for label, style, line in series:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(f'<path class="axis" style="stroke:var(--{style});stroke-width:2" d="M{path}"/>')
        for x, y in line:
            across, down = place(x, y)
            title = f"{escape(label)}: {y:.5g} at {x:.4g}"
            parts.append(
                f'<circle class="point {style}" cx="{across:.1f}" cy="{down:.1f}" r="3"><title>{title}</title></circle>'
            )
    return "".join(parts) + "</svg>"


def _lines(run: Mapping[str, Any], names: Sequence[tuple[str, str, str]]) -> list:
    series = []
    for name, label, style in names:
        elapsed, points = 0.0, []
        for entry in run["rounds"]:
            elapsed += sum(entry["seconds"].values())
            if name in entry and math.isfinite(entry[name]):  # A model that diverged has no loss.
                points.append((elapsed, entry[name]))
        if points:
            series.append((label, style, points))
    return series


def _bars(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    total = run["summary"]["simulatedTime"]["value"] or 1.0
    longest = max(quantity["value"] for quantity in run["summary"]["timeByKind"].values()) or 1.0
    side = {"dpuCompute": "pim", "mramWram": "pim", "waiting": "pim", "aggregation": "host"}
    return [
        {
            "label": TIME_LABELS[name],
            "text": f"{spoken_seconds(quantity['value'])} ({100 * quantity['value'] / total:.1f} %)",
            "share": f"{100 * quantity['value'] / longest:.2f}",
            "side": side.get(name, "link"),
            "kind": quantity["kind"],
        }
        for name, quantity in run["summary"]["timeByKind"].items()
        if quantity["value"] > 0
    ]


def _tiles(run: Mapping[str, Any]) -> list[dict[str, str]]:
    tiles = []
    names = (("testAccuracy", "test accuracy"), ("testAuc", "test AUC"), ("trainAccuracy", "training accuracy"))
    for name, label in names:
        if name in run["summary"]:
            quantity = run["summary"][name]
            tiles.append({"label": label, "value": f"{quantity['value']:.4f}", "kind": quantity["kind"], "note": ""})
    summary = run["summary"]
    for name, label in (
        ("simulatedTime", "time of training"),
        ("loadTime", "loading, once"),
        ("setUpTime", "set-up, once"),
    ):
        quantity = summary[name]
        tiles.append({"label": label, "value": spoken_seconds(quantity["value"]), "kind": quantity["kind"], "note": ""})
    moved = f"{summary['bytesMoved']['value'] / 1e6:.3g} MB"
    tiles.append(
        {"label": "bytes moved", "value": moved, "kind": "counted", "note": f"{summary['rounds']['value']} rounds"}
    )
    return tiles


def page_html(document: Mapping[str, Any]) -> str:
    """Render a training document.

    Parameters
    ----------
    document : mapping
        The document.

    Returns
    -------
    str
        An HTML page with its style and drawings inside; the same text for the same document.
    """
    views = []
    for run in document["runs"]:
        accuracy = _lines(run, [("testAccuracy", "test", "pim"), ("accuracy", "training", "host")])
        loss = _lines(run, [("testLoss", "test", "pim"), ("loss", "training", "host")])
        views.append(
            {
                "run": run,
                "verdict": verdict(run),
                "tiles": _tiles(run),
                "bars": _bars(run),
                # Made by us; their texts are escaped.
                "accuracy": Markup(line_chart(accuracy, "time of training", "accuracy")),  # noqa: S704
                "loss": Markup(line_chart(loss, "time of training", "loss")),  # noqa: S704
            }
        )
    scaling = ""
    if len(views) > 1:
        points = [(run["dpus"], run["summary"]["simulatedTime"]["value"]) for run in document["runs"]]
        scaling = Markup(line_chart([("time", "pim", points)], "DPUs", "seconds of training"))  # noqa: S704
    first = document["runs"][0]
    title = f"{first['model']} by {first['algorithm']} on {first['data']['name']}"
    return _template().render(document=document, views=views, title=title, scaling=scaling)
