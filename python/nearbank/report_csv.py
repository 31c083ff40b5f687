# SPDX-License-Identifier: Apache-2.0
"""Writes nests.csv: one line for each nest, every column with its unit in its name."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

COLUMNS = (
    "spec",
    "machine",
    "policy",
    "nest",
    "key",
    "kernel",
    "where",
    "source",
    "modulePath",
    "torchOp",
    "kind",
    "hoisted",
    "hostTimeNs",
    "modelledHostTimeNs",
    "pimTimeNs",
    "predictedPimTimeNs",
    "oneThreadTimeNs",
    "mpki",
    "lfmr",
    "dramBytes",
    "dramIntensity",
    "iterations",
    "parallelExtent",
    "operations",
    "bytesRead",
    "bytesWritten",
    "intensity",
    "status",
    "reason",
    "flip",
)


def _value(quantity: Mapping[str, Any] | None) -> Any:
    return None if quantity is None else quantity.get("value")


def _row(run: Mapping[str, Any], nest: Mapping[str, Any]) -> dict[str, Any]:
    facts, profile, why = nest["facts"], nest.get("profile") or {}, nest.get("why") or {}
    row = {name: nest.get(name) for name in ("key", "kernel", "where", "source", "modulePath", "torchOp", "kind")}
    row |= {name: run[name] for name in ("spec", "machine", "policy")}
    row |= {
        name: facts.get(name) for name in ("iterations", "parallelExtent", "bytesRead", "bytesWritten", "intensity")
    }
    row |= {name: _value(profile.get(name)) for name in ("mpki", "lfmr", "dramBytes", "dramIntensity")}
    row |= {
        f"{name}Ns": _value(nest.get(name)) for name in ("hostTime", "modelledHostTime", "pimTime", "predictedPimTime")
    }
    row |= {name: why.get(name) for name in ("status", "reason", "flip")}
    row["nest"] = nest["id"]
    row["hoisted"] = "true" if nest.get("hoisted") else "false"
    row["oneThreadTimeNs"] = _value(profile.get("oneThreadTime"))
    row["operations"] = (facts.get("operations") or {}).get("total")
    return row


def csv_rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the nests of all runs.

    Parameters
    ----------
    document : mapping
        A run document.

    Returns
    -------
    list of dict
        One for each nest, keyed by `COLUMNS`; host times are measured, PIM times simulated or predicted, cache figures
        modelled, the rest counted.
    """
    return [_row(run, nest) for run in document.get("runs", []) for nest in run["nests"]]


def csv_text(document: Mapping[str, Any]) -> str:
    """Write the nests of all runs as CSV.

    Parameters
    ----------
    document : mapping
        A run document.

    Returns
    -------
    str
        Header and rows, lines ending in a newline.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(csv_rows(document))
    return text.getvalue()
