# SPDX-License-Identifier: Apache-2.0
"""Prints quantities: three significant digits, a unit a person reads, and the kind when it is wanted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

#: What is printed where a quantity is absent.
ABSENT = "-"

#: Units of pure numbers, which are not printed.
_BARE_UNITS = ("", "1", "ratio", "share")
_TIME_STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
_BYTE_STEPS = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_ENERGY_STEPS = ((1e12, "J"), (1e9, "mJ"), (1e6, "uJ"), (1e3, "nJ"), (1.0, "pJ"))
_COUNT_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def format_number(value: float) -> str:
    """Print a number with three significant digits.

    Parameters
    ----------
    value : float
        Any number; whole numbers below 1000 are printed whole.

    Returns
    -------
    str
        Without exponent between 0.001 and a million.

    Examples
    --------
    >>> [format_number(v) for v in (0, 12, 3.14159, 1234.5, 2.5e-7)]
    ['0', '12', '3.14', '1234', '2.5e-07']
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    if abs(value) >= 1000 and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.3g}"


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> tuple[str, str]:
    size = abs(value)
    for factor, unit in steps:
        if size >= factor * 0.9995:
            return f"{value / factor:.3g}", unit
    return format_number(value), steps[-1][1]


def format_time(ns: float) -> str:
    """Print a time given in nanoseconds.

    Parameters
    ----------
    ns : float
        Time in nanoseconds.

    Returns
    -------
    str
        For example ``"4.2 ms"``.

    Examples
    --------
    >>> [format_time(v) for v in (0, 950, 4.2e6, 1.5e10)]
    ['0 ns', '950 ns', '4.2 ms', '15 s']
    """
    return " ".join(_scaled(ns, _TIME_STEPS))


def format_bytes(value: float) -> str:
    """Print an amount of data in binary units.

    Parameters
    ----------
    value : float
        Bytes.

    Returns
    -------
    str
        For example ``"72 MiB"``.

    Examples
    --------
    >>> [format_bytes(v) for v in (0, 512, 1536, 75497472)]
    ['0 B', '512 B', '1.5 KiB', '72 MiB']
    """
    if abs(value) < 1024:
        return f"{format_number(value)} B"
    for factor, unit in _BYTE_STEPS:
        if abs(value) >= factor:
            scaled = value / factor
            return f"{scaled:.0f} {unit}" if scaled >= 999.5 else f"{scaled:.3g} {unit}"
    return f"{format_number(value)} B"


def format_count(value: float) -> str:
    """Print a count with a decimal suffix.

    Parameters
    ----------
    value : float
        A count.

    Returns
    -------
    str
        For example ``"151 M"``; below 10,000 the whole number.

    Examples
    --------
    >>> [format_count(v) for v in (0, 9999, 150994944)]
    ['0', '9999', '151 M']
    """
    if abs(value) < 10000:
        return format_number(value) if value != int(value) else str(int(value))
    return " ".join(_scaled(value, _COUNT_STEPS)).strip()


def format_value(value: float, unit: str) -> str:
    """Print a number in the way its unit wants.

    Parameters
    ----------
    value : float
        The number.
    unit : str
        ``"ns"``, ``"B"``, ``"count"``, ``"pJ"``, or any other unit, which is then appended.

    Returns
    -------
    str
        Number and unit.

    Examples
    --------
    >>> [format_value(v, "pJ") for v in (12, 3.5e9)]
    ['12 pJ', '3.5 mJ']
    """
    if unit == "ns":
        return format_time(value)
    if unit in ("B", "bytes"):
        return format_bytes(value)
    if unit in ("count", "operations"):
        return format_count(value)
    if unit == "pJ":
        return " ".join(_scaled(value, _ENERGY_STEPS))
    if unit in _BARE_UNITS:
        return format_number(value)
    return f"{format_count(value) if abs(value) >= 1e6 else format_number(value)} {unit}"


def format_quantity(quantity: Mapping[str, Any] | None, with_kind: bool = False) -> str:
    """Print a quantity of the run document.

    Parameters
    ----------
    quantity : mapping or None
        ``{"value", "unit", "kind"}``.
    with_kind : bool, default False
        Append the kind in brackets.

    Returns
    -------
    str
        For example ``"4.2 ms (simulated)"``; ``"-"`` for None.

    Examples
    --------
    >>> format_quantity({"value": 4.2e6, "unit": "ns", "kind": "simulated"}, with_kind=True)
    '4.2 ms (simulated)'
    >>> format_quantity(None)
    '-'
    """
    if quantity is None or quantity.get("value") is None:
        return ABSENT
    text = format_value(quantity["value"], quantity.get("unit", ""))
    return f"{text} ({quantity['kind']})" if with_kind else text


def value_of(quantity: Mapping[str, Any] | None, default: float = 0.0) -> float:
    """Take the number out of a quantity.

    Parameters
    ----------
    quantity : mapping or None
        ``{"value", "unit", "kind"}``.
    default : float, default 0.0
        What an absent quantity counts as.

    Returns
    -------
    float
        The value in the quantity's own unit.
    """
    if quantity is None or quantity.get("value") is None:
        return default
    return float(quantity["value"])
