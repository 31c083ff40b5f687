# SPDX-License-Identifier: Apache-2.0
"""Where the built-in machine files lie."""

from __future__ import annotations

from pathlib import Path


def folder() -> str:
    """Return the folder of the built-in machine files.

    Returns
    -------
    str
        ``machines`` inside the installed package, or of the source tree when the package runs from there.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "machines", package.parent.parent / "machines"):
        if candidate.is_dir():
            return str(candidate)
    return str(package / "machines")
