# SPDX-License-Identifier: Apache-2.0
"""Prepares the bars of the page: lengths on one scale, every bar with its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nearbank.render_units import format_quantity, value_of
from nearbank.report_groups import NestGroup, group_nests, host_quantity, pim_quantity

#: Kernels that the chart of kernels shows; the rest is summed.
KERNEL_BARS = 16


def _bar(label: str, quantity: Mapping[str, Any] | None, side: str) -> list[dict[str, Any]]:
    if quantity is None:
        return []
    return [
        {
            "label": label,
            "text": format_quantity(quantity),
            "value": value_of(quantity),
            "kind": quantity["kind"],
            "side": side,
        }
    ]


def _with_shares(bars: list[dict[str, Any]]) -> list[dict[str, Any]]:
    longest = max((bar["value"] for bar in bars), default=0.0)
    for bar in bars:
        bar["share"] = f"{100 * bar['value'] / longest:.2f}" if longest > 0 else "0"
    return bars


def summary_bars(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Prepare the times of the whole program.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.

    Returns
    -------
    list of dict
        Bars with `label`, `text`, `share` (percent of the longest), `kind` and `side`.
    """
    summary = run["summary"]
    bars = _bar("nests kept on the host", host_quantity(summary, "OfHostNests"), "host")
    if summary["nestsOnPim"]:
        bars += _bar("placed nests, on PIM", pim_quantity(summary), "pim")
        bars += _bar("crossings", summary.get("crossingTime"), "link")
        bars += _bar("placed nests, had they stayed on the host", host_quantity(summary, "OfPimNests"), "host faint")
    bars += _bar("all nests, on the host", host_quantity(summary), "host faint")
    bars += _bar("eager PyTorch, on the host", summary.get("eagerTime"), "host faint")
    return _with_shares(bars)


def _pair(label: str, where: str, host: Mapping[str, Any] | None, pim: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "label": label,
        "where": where,
        "host": format_quantity(host),
        "host_value": value_of(host),
        "pim": format_quantity(pim),
        "pim_value": value_of(pim),
        "pim_kind": pim["kind"] if pim else "",
    }


def kernel_bars(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Prepare host and PIM times of the kernels that take most host time.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.

    Returns
    -------
    list of dict
        Longest host time first: host time (simulated on the modelled host, or measured) and simulated or predicted PIM
        time, both as a share of the longest
        bar of the chart; hoisted nests are left out.
    """
    groups = group_nests([nest for nest in run["nests"] if not nest.get("hoisted")])
    groups.sort(key=lambda group: -value_of(group.host_time))
    pairs = []
    for group in groups[:KERNEL_BARS]:
        first = group.nests[0]
        label = first["kernel"] + (f" ×{len(group.nests)}" if len(group.nests) > 1 else "")
        pairs.append(_pair(label, first["where"], group.host_time, group.pim_time))
    rest = groups[KERNEL_BARS:]
    if rest:
        together = NestGroup([nest for group in rest for nest in group.nests])
        pairs.append(_pair(f"{len(rest)} further kernels", "host", together.host_time, together.pim_time))
    longest = max((max(pair["host_value"], pair["pim_value"]) for pair in pairs), default=0.0)
    for pair in pairs:
        for side in ("host", "pim"):
            pair[f"{side}_share"] = f"{100 * pair[f'{side}_value'] / longest:.2f}" if longest > 0 else "0"
    return pairs


def _launch_bytes(launches: Sequence[Mapping[str, Any]]) -> float:
    return sum(launch.get("dramBytes") or 0 for launch in launches if launch.get("site") == "pim")


def traffic_bars(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Prepare the bytes that move over the link and inside the stack.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.

    Returns
    -------
    list of dict
        Bars as in `summary_bars`; empty when nothing ran on PIM.
    """
    summary = run["summary"]
    inside = summary.get("dramBytes")
    if not value_of(inside) and run.get("launches"):
        inside = {"value": _launch_bytes(run["launches"]), "unit": "B", "kind": "simulated"}
    bars = _bar("over the external link (flush and fetch)", summary.get("linkBytes"), "link")
    bars += _bar("inside the stack, between DRAM and PIM cores", inside, "pim")
    return _with_shares(bars) if any(bar["value"] for bar in bars) else []
