# SPDX-License-Identifier: Apache-2.0
"""Lists machines, their values with sources, and versions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

_FIELDS = ("path", "value", "unit", "source", "layer")


def _core():
    from nearbank import _core

    return _core


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().rstrip("\n")


def list_text(output_format: str) -> str:
    """List the built-in machines.

    Parameters
    ----------
    output_format : {"text", "json", "csv"}
        How.

    Returns
    -------
    str
        One machine a line, or JSON.
    """
    names = list(_core().list_machines())
    if output_format == "json":
        return json.dumps({"machines": names}, indent=2)
    if output_format == "csv":
        return _csv([["machine"], *([name] for name in names)])
    return "\n".join([*names, "", "every value with its source: nearbank machines show NAME"])


def show_text(name: str, assignments: Sequence[tuple[str, str]], output_format: str) -> str:
    """List the values of a machine with their sources.

    Parameters
    ----------
    name : str
        Built-in name, or path of a machine file.
    assignments : sequence of (str, str)
        Values that replace those of the file.
    output_format : {"text", "json", "csv"}
        How.

    Returns
    -------
    str
        One value a line, or JSON.

    Raises
    ------
    UserError
        NB01xx when the machine is unknown or its file is wrong.
    """
    from nearbank.rundoc import machine_values

    values = machine_values(name, assignments)
    if output_format == "json":
        return json.dumps({"machine": name, "values": values}, indent=2, ensure_ascii=False)
    rows = [list(_FIELDS)] + [[str(value.get(field, "")) for field in _FIELDS] for value in values]
    if output_format == "csv":
        return _csv(rows)
    # The source comes last, because it is long; a value that is a text must not widen the column of numbers.
    paths, layers = (max(len(row[column]) for row in rows) for column in (0, 4))
    units = max(len(row[2]) for row in rows)
    return "\n".join(
        f"{path:<{paths}}  {value:>9}  {unit:<{units}}  {layer:<{layers}}  {source}"
        for path, value, unit, source, layer in rows
    )


def version_text(output_format: str) -> str:
    """Print versions.

    Parameters
    ----------
    output_format : {"text", "json", "csv"}
        How.

    Returns
    -------
    str
        ``name version`` lines, or JSON; the core's own are there when the extension is.
    """
    from importlib import metadata

    try:
        versions = {"nearbank": metadata.version("nearbank")}
    except metadata.PackageNotFoundError:
        versions = {"nearbank": "not installed as a package"}
    try:
        versions |= {key: str(value) for key, value in json.loads(_core().version_info()).items()}
    except ImportError:
        versions["core"] = "not built"
    for package in ("torch", "torch-mlir"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    if output_format == "json":
        return json.dumps(versions, indent=2)
    if output_format == "csv":
        return _csv([["name", "version"], *versions.items()])
    return "\n".join(f"{name} {version}" for name, version in versions.items())
