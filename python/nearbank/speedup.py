# SPDX-License-Identifier: Apache-2.0
"""SU-1 (docs/model.md): the speed-up over the modelled host, and how far it can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nearbank.render_units import value_of


def _half_width(interval: Mapping[str, Any] | None) -> float:
    return (value_of(interval["high"]) - value_of(interval["low"])) / 2 if interval else 0.0


def speedup(summary: Mapping[str, Any], nests: Sequence[Mapping[str, Any]]) -> tuple[dict, dict] | None:
    """Form the speed-up of a placement.

    Parameters
    ----------
    summary : mapping
        Summary of a run, with the sums over its timed nests.
    nests : sequence of mapping
        Nests of the run.

    Returns
    -------
    (dict, dict) or None
        Speed-up, and its interval with ``low`` and ``high``. None unless every timed nest was simulated on the modelled
        host and every placed one on PIM.

    Notes
    -----
    Times of kernels are independent; all nests of a kernel have the same time, so their errors add up.
    """
    names = ("modelledHostTime", "modelledHostTimeOfHostNests", "pimTime", "crossingTime")
    if any(summary.get(name) is None for name in names):
        return None
    alone, on_host, on_pim, crossing = (value_of(summary[name]) for name in names)
    placed = on_host + on_pim + crossing
    if alone <= 0 or placed <= 0:
        return None
    ratio = alone / placed
    # Derivatives by the time of each kernel on the host, and on PIM.
    weights: dict[tuple[str, str], list[float]] = {}
    for nest in nests:
        if nest.get("hoisted"):
            continue
        host_width, pim_width = _half_width(nest.get("modelledHostTimeInterval")), _half_width(nest["pimTimeInterval"])
        is_on_pim = nest["where"] == "pim"
        slope = 1 / placed if is_on_pim else 1 / placed - ratio / placed
        weights.setdefault((nest["key"], "host"), []).append(host_width * slope)
        if is_on_pim:
            weights.setdefault((nest["key"], "pim"), []).append(-pim_width * ratio / placed)
    error = math.sqrt(sum(sum(terms) ** 2 for terms in weights.values()))
    make = {"unit": "ratio", "kind": "simulated"}
    interval = {"low": {"value": max(0.0, ratio - error), **make}, "high": {"value": ratio + error, **make}}
    return {"value": ratio, **make}, interval


def spoken_speedup(summary: Mapping[str, Any]) -> str:
    """Print a speed-up with its interval.

    Parameters
    ----------
    summary : mapping
        Summary of a run that has a speed-up.

    Returns
    -------
    str
        For example ``"1.80x (1.62–1.98)"``; no interval where all times are exact.
    """
    value = value_of(summary["speedup"])
    low, high = (value_of(summary["speedupInterval"][end]) for end in ("low", "high"))
    text = f"{value:.2f}x"
    return text if f"{low:.2f}" == f"{high:.2f}" else f"{text} ({low:.2f}–{high:.2f})"
