# SPDX-License-Identifier: Apache-2.0
"""The templates of the pages."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2


@cache
def templates() -> jinja2.Environment:
    """Return the environment that finds and fills them; an unknown name is an error.

    Returns
    -------
    jinja2.Environment
        One for the process: pages may add filters and globals of their own.
    """
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
