# SPDX-License-Identifier: Apache-2.0
"""Draws the roofline of a run as SVG: every nest, host measured and PIM simulated, under the modelled roofs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from nearbank.render_units import format_number, format_time, value_of
from nearbank.report_groups import group_nests

_WIDTH, _HEIGHT = 960, 500
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 18, 16, 52
#: Width of the strip at the left for nests without arithmetic.
_STRIP = 92
#: Above this many nests a point stands for all nests of a kernel.
_POINT_LIMIT = 400
#: A fused multiply-add counts as two operations; one issues each cycle on a scalar core.
_OPERATIONS_PER_CYCLE = 2


@dataclass(frozen=True)
class Roof:
    """A bandwidth slope and, when known, a compute ceiling, in GB/s and Gop/s; modelled."""

    side: str
    label: str
    bandwidth: float
    peak: float
    peak_label: str


@dataclass(frozen=True)
class Point:
    """A nest on one side: operations per DRAM byte, Gop/s and GB/s."""

    side: str
    intensity: float
    operations: float
    bandwidth: float
    card: str
    title: str
    nest: str


def _machine_number(run: Mapping[str, Any], path: str) -> float:
    for entry in run.get("machineValues") or []:
        if entry.get("path") == path:
            try:
                return float(entry["value"])
            except (TypeError, ValueError):
                return 0.0
    return 0.0


def roofs(run: Mapping[str, Any]) -> list[Roof]:
    """Read the roofs of host and PIM from the machine's values.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``, with ``machineValues``.

    Returns
    -------
    list of Roof
        PIM: vault bandwidth times vaults, cores times clock times two. Host: its section of the machine file, scalar.
        Empty when the run carries no values.
    """
    found = []
    vaults, vault = _machine_number(run, "vault.count"), _machine_number(run, "vault.bandwidthGBs")
    cores, clock = _machine_number(run, "core.count"), _machine_number(run, "core.clockGHz")
    if vaults * vault > 0 and cores * clock > 0:
        found.append(
            Roof(
                "pim",
                f"PIM {format_number(vaults * vault)} GB/s ({vaults:.0f} vaults)",
                vaults * vault,
                cores * clock * _OPERATIONS_PER_CYCLE,
                f"PIM {format_number(cores * clock * _OPERATIONS_PER_CYCLE)} Gop/s ({cores:.0f} cores)",
            )
        )
    bandwidth = _machine_number(run, "host.dramBandwidthGBs")
    cores, clock = _machine_number(run, "host.cores"), _machine_number(run, "host.clockGHz")
    if bandwidth > 0:
        peak = cores * clock * _OPERATIONS_PER_CYCLE
        found.append(
            Roof(
                "host",
                f"host {format_number(bandwidth)} GB/s",
                bandwidth,
                peak,
                f"host {format_number(peak)} Gop/s ({cores:.0f} cores, scalar)",
            )
        )
    return found


def _point(side: str, nest: Mapping[str, Any], quantity: Any, dram_bytes: float, card: str, count: int) -> list[Point]:
    time = value_of(quantity)
    if time <= 0:
        return []
    facts = nest["facts"]
    operations = float((facts.get("operations") or {}).get("total") or 0)
    moved = dram_bytes or float(facts.get("bytesRead", 0) + facts.get("bytesWritten", 0))
    intensity = operations / moved if moved > 0 else 0.0
    rate = f"{format_number(operations / time)} Gop/s" if operations else f"{format_number(moved / time)} GB/s"
    name = nest["id"] + (f" and {count - 1} more" if count > 1 else "")
    title = f"{name} {nest['kernel']}: {format_time(time)} {quantity['kind']}, {rate}, {format_number(intensity)} op/B"
    return [Point(side, intensity, operations / time, moved / time, card, title, nest["id"])]


def points(run: Mapping[str, Any], prefix: str) -> list[Point]:
    """Compute the points of a run.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.
    prefix : str
        Start of the anchors of this run.

    Returns
    -------
    list of Point
        A host point for each nest, and a PIM point for each simulated one; one for each kernel above 400 nests.
    """
    pim_bytes = {
        launch["nest"]: float(launch.get("dramBytes") or 0)
        for launch in run.get("launches") or []
        if launch.get("site") == "pim"
    }
    merge = len(run["nests"]) > _POINT_LIMIT
    found: list[Point] = []
    for number, group in enumerate(group_nests(run["nests"])):
        card = f"{prefix}-k{number}"
        for nest in group.nests[:1] if merge else group.nests:
            count = len(group.nests) if merge else 1
            host_bytes = value_of((nest.get("profile") or {}).get("dramBytes"))
            found += _point("host", nest, nest.get("hostTime"), host_bytes, card, count)
            found += _point("pim", nest, nest.get("pimTime"), pim_bytes.get(nest["id"], 0.0), card, count)
    return found


class _Axes:
    """Maps intensity and performance to pixels, both logarithmic."""

    def __init__(self, found: list[Point], roof_list: list[Roof]) -> None:
        plotted = [point for point in found if point.operations > 0 and point.intensity > 0]
        ridges = [roof.peak / roof.bandwidth for roof in roof_list if roof.peak > 0]
        xs = [point.intensity for point in plotted] + ridges or [1.0]
        ys = [point.operations for point in plotted]
        ys += [point.bandwidth for point in found if point.operations <= 0 and point.bandwidth > 0]
        ys += [roof.peak for roof in roof_list if roof.peak > 0] + [roof.bandwidth for roof in roof_list]
        ys = ys or [1.0]
        self.x_low, self.x_high = self._decades(xs)
        self.y_low, self.y_high = self._decades(ys)
        self.left = _LEFT + _STRIP

    @staticmethod
    def _decades(values: list[float]) -> tuple[int, int]:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.3))
        return low, max(high, low + 2)

    def x(self, value: float) -> float:
        share = (math.log10(value) - self.x_low) / (self.x_high - self.x_low)
        return self.left + share * (_WIDTH - _RIGHT - self.left)

    def y(self, value: float) -> float:
        share = (math.log10(value) - self.y_low) / (self.y_high - self.y_low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)

    def inside(self, value: float) -> float:
        """Clip a performance to the plot."""
        return min(max(value, 10.0**self.y_low), 10.0**self.y_high)


def _grid(axes: _Axes) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    for power in range(axes.x_low, axes.x_high + 1):
        x = axes.x(10.0**power)
        parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/>')
        anchor = "start" if power == axes.x_low else "middle"
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="{anchor}">{_tick(power)}</text>')
    for power in range(axes.y_low, axes.y_high + 1):
        y = axes.y(10.0**power)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_tick(power)}</text>')
    middle = (axes.left + right) / 2
    parts.append(f'<path class="axis" d="M{axes.left} {_TOP}V{bottom}H{right}M{_LEFT} {_TOP}V{bottom}H{axes.left}"/>')
    parts.append(
        f'<text class="title" x="{middle:.0f}" y="{_HEIGHT - 10}" text-anchor="middle">operations per DRAM byte</text>'
    )
    strip = _LEFT + _STRIP / 2 - 6
    parts.append(f'<text class="title" x="{strip:.0f}" y="{bottom + 18}" text-anchor="middle">no arithmetic</text>')
    parts.append(f'<text class="title" x="{strip:.0f}" y="{bottom + 34}" text-anchor="middle">(GB/s)</text>')
    parts.append(
        f'<text class="title" transform="translate(14 {(_TOP + bottom) / 2:.0f}) rotate(-90)" '
        'text-anchor="middle">Gop/s</text>'
    )
    return parts


def _tick(power: int) -> str:
    return f"{10.0**power:g}" if -4 < power < 6 else f"1e{power}"


def _roof_parts(axes: _Axes, roof: Roof, raise_label: bool) -> list[str]:
    low, high = 10.0**axes.x_low, 10.0**axes.x_high
    ridge = roof.peak / roof.bandwidth if roof.peak > 0 else high
    start = max(low, 10.0**axes.y_low / roof.bandwidth)
    end = min(ridge, high)
    if start >= end:
        return []
    x0, y0, x1, y1 = axes.x(start), axes.y(start * roof.bandwidth), axes.x(end), axes.y(end * roof.bandwidth)
    path = f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"
    if roof.peak > 0 and ridge < high:
        path += f"H{_WIDTH - _RIGHT}"
    parts = [f'<path class="roof {roof.side}" d="{path}"/>']
    strip_y = axes.y(axes.inside(roof.bandwidth))
    parts.append(f'<path class="roof {roof.side}" d="M{_LEFT + 6} {strip_y:.1f}H{axes.left - 6}"/>')
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
    share = 0.42 if raise_label else 0.2
    x, y = x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
    offset = -7 if raise_label else 15
    parts.append(
        f'<text class="roof-label {roof.side}" transform="translate({x:.1f} {y:.1f}) rotate({angle:.1f})" '
        f'dy="{offset}">{escape(roof.label)}</text>'
    )
    if roof.peak > 0 and ridge < high:
        y = axes.y(roof.peak) + (-7 if raise_label else 15)
        parts.append(
            f'<text class="roof-label {roof.side}" x="{_WIDTH - _RIGHT - 6}" y="{y:.1f}" text-anchor="end">'
            f"{escape(roof.peak_label)}</text>"
        )
    return parts


def _marker(axes: _Axes, point: Point) -> str:
    if point.operations > 0 and point.intensity > 0:
        x, y = axes.x(point.intensity), axes.y(point.operations)
    elif point.bandwidth > 0:
        x, y = _LEFT + _STRIP * (0.36 if point.side == "host" else 0.64), axes.y(point.bandwidth)
    else:
        return ""
    shape = (
        f'<circle class="point host" cx="{x:.1f}" cy="{y:.1f}" r="4.5">'
        if point.side == "host"
        else f'<path class="point pim" d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z">'
    )
    tag = "circle" if point.side == "host" else "path"
    return (
        f'<a href="#{point.card}" data-nest="{escape(point.nest)}" data-side="{point.side}">{shape}'
        f"<title>{escape(point.title)}</title></{tag}></a>"
    )


def roofline_svg(run: Mapping[str, Any], prefix: str) -> str:
    """Draw the roofline of a run.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.
    prefix : str
        Start of the anchors of this run.

    Returns
    -------
    str
        An ``svg`` element; colours come from the page's style.
    """
    roof_list = sorted(roofs(run), key=lambda roof: -roof.bandwidth)
    found = points(run, prefix)
    axes = _Axes(found, roof_list)
    parts = _grid(axes)
    highest = max((roof.peak for roof in roof_list), default=0.0)
    for number, roof in enumerate(roof_list):
        parts += _roof_parts(axes, roof, raise_label=number == 0 or roof.peak == highest)
    # PIM points last, so that they lie on top of the host's.
    parts += [_marker(axes, point) for point in sorted(found, key=lambda point: point.side)]
    label = f"Roofline of {run['spec']} on {run['machine']}: {len(found)} points"
    return (
        f'<svg class="roofline" id="{prefix}-roofline" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(label)}">' + "".join(parts) + "</svg>"
    )
