# SPDX-License-Identifier: Apache-2.0
"""How a plan on a machine with DPUs shares its nests out: DPUs, tasklets, MRAM and transfers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearbank.render_units import format_bytes, format_quantity


def dpu_rows(run: Mapping[str, Any]) -> list[dict[str, str]]:
    """List the nests that DPUs could run, equal ones together.

    Parameters
    ----------
    run : mapping
        One entry of ``runs``.

    Returns
    -------
    list of dict
        For each group of nests of one kernel and one way to transfer: ``nests``, ``kernel``, ``where``, ``layers``,
        ``dpus`` (which ones, and their share of the machine), ``tasklets`` (at work, of those that start), ``mram``
        (of each DPU, and its share), ``resident`` (of it, what stays there between launches) and ``transfers``
        (modelled, of one launch). Empty on machines without DPUs.
    """
    groups: dict[tuple, list[Mapping[str, Any]]] = {}
    for nest in run["nests"]:
        if dpu := nest.get("dpu"):
            key = (nest["kernel"], nest["where"], dpu["residentBytes"], dpu["transferTime"]["value"])
            groups.setdefault(key, []).append(nest)
    return [_row(nests) for nests in groups.values()]


def _row(nests: list[Mapping[str, Any]]) -> dict[str, str]:
    first = nests[0]
    dpu = first["dpu"]
    layers = list(dict.fromkeys(nest.get("modulePath") or "" for nest in nests))
    ids = [nest["id"] for nest in nests]
    return {
        "nests": ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more",
        "kernel": first["kernel"],
        "where": "DPUs" if first["where"] == "pim" else "host",
        "layers": layers[0] + (f" and {len(layers) - 1} more" if len(layers) > 1 else ""),
        "dpus": f"0-{dpu['dpus'] - 1} ({dpu['dpuShare']:.0%})" if dpu["dpus"] > 1 else f"0 ({dpu['dpuShare']:.1%})",
        "tasklets": f"{dpu['busyTasklets']}/{dpu['tasklets']}",
        "mram": f"{format_bytes(dpu['mramBytes'])} ({dpu['mramBytes'] / dpu['mramCapacity']:.1%})",
        "resident": format_bytes(dpu["residentBytes"]),
        "transfers": format_quantity(dpu["transferTime"]),
    }
