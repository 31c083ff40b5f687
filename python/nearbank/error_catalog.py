# SPDX-License-Identifier: Apache-2.0
"""Reads error_catalog.md, the list of error codes that docs/errors.md repeats word for word."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from nearbank.errors import unknown_name

_CODE = re.compile(r"NB\d{4}", re.IGNORECASE)
_HEADING = re.compile(r"^### (NB\d{4}): (.+)$", re.MULTILINE)


def is_code(text: str) -> bool:
    """Tell whether a text has the form of an error code.

    Parameters
    ----------
    text : str
        For example ``"NB0203"``; upper or lower case.

    Returns
    -------
    bool
        Whether it is ``NB`` and four digits.
    """
    return _CODE.fullmatch(text) is not None


def catalog_text() -> str:
    """Return the whole catalogue.

    Returns
    -------
    str
        Markdown, the same as docs/errors.md.
    """
    return Path(__file__).with_name("error_catalog.md").read_text(encoding="utf-8")


@cache
def entries() -> dict[str, str]:
    """List the entries of the catalogue.

    Returns
    -------
    dict of str to str
        Code to the text of its entry, heading included.
    """
    text = catalog_text()
    headings = list(_HEADING.finditer(text))
    found = {}
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        end = following.start() if following else len(text)
        body = re.split(r"^## ", text[heading.end() : end], maxsplit=1, flags=re.MULTILINE)[0]
        found[heading[1]] = f"{heading[1]}: {heading[2]}\n\n{body.strip()}"
    return found


def entry(code: str) -> str:
    """Return what the catalogue says about a code.

    Parameters
    ----------
    code : str
        Error code, upper or lower case.

    Returns
    -------
    str
        The entry.

    Raises
    ------
    UserError
        NB0005 when there is no such code.

    Examples
    --------
    >>> print(entry("NB0001").splitlines()[0])
    NB0001: unknown option
    """
    known = entries()
    if code.upper() not in known:
        raise unknown_name("user", "NB0005", "unknown error code", code.upper(), known, remedy="see docs/errors.md")
    return known[code.upper()]
