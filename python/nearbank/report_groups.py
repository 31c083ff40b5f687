# SPDX-License-Identifier: Apache-2.0
"""Groups nest instances by distinct kernel and side, for tables and cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nearbank.render_units import value_of


def pim_quantity(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Take the PIM time of a nest or summary: simulated when there, else predicted.

    Parameters
    ----------
    record : mapping
        A nest or a summary of the run document.

    Returns
    -------
    mapping or None
        The quantity, whose kind says which of the two it is.
    """
    return record.get("pimTime") or record.get("predictedPimTime")


def host_quantity(record: Mapping[str, Any], suffix: str = "") -> Mapping[str, Any] | None:
    """Take the host time of a nest or summary: simulated on the modelled host when there, else measured on this host.

    Parameters
    ----------
    record : mapping
        A nest or a summary of the run document.
    suffix : str, default ""
        Which of the summary's host times: ``"OfHostNests"`` or ``"OfPimNests"``.

    Returns
    -------
    mapping or None
        The quantity, whose kind says which of the two it is.
    """
    return record.get(f"modelledHostTime{suffix}") or record.get(f"hostTime{suffix}")


def short_source(source: str | None) -> str:
    """Leave the folder out of a source line; --pin and --forbid take this form too.

    Parameters
    ----------
    source : str or None
        Path and line.

    Returns
    -------
    str
        For example ``"model.py:41"``; empty for None.

    Examples
    --------
    >>> short_source("/home/you/model.py:41")
    'model.py:41'
    """
    return (source or "").replace("\\", "/").rpartition("/")[2]


def dram_intensity(nest: Mapping[str, Any]) -> float:
    """Take the operations for each DRAM byte of a nest.

    Parameters
    ----------
    nest : mapping
        A nest of the run document.

    Returns
    -------
    float
        From the profile (modelled); operations for each distinct byte (counted) where the profile has none.
    """
    profile = nest.get("profile") or {}
    return value_of(profile.get("dramIntensity"), float(nest["facts"].get("intensity") or 0))


def _sum(quantities: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    present = [quantity for quantity in quantities if quantity is not None]
    if not present or len({quantity["kind"] for quantity in present}) > 1:
        return None
    return {**present[0], "value": sum(value_of(quantity) for quantity in present)}


@dataclass(frozen=True)
class NestGroup:
    """Nests of one kernel that were decided alike.

    Parameters
    ----------
    nests : list of mapping
        Nests of the run document, in program order.
    """

    nests: list[Mapping[str, Any]]

    @property
    def label(self) -> str:
        """First id, with ``+`` when there are more."""
        return self.nests[0]["id"] + ("+" if len(self.nests) > 1 else "")

    @property
    def source(self) -> str:
        """The source line, with the number of further distinct lines."""
        lines = list(dict.fromkeys(short_source(nest.get("source")) for nest in self.nests))
        return lines[0] if len(lines) == 1 else f"{lines[0]} +{len(lines) - 1}"

    @property
    def host_time(self) -> dict[str, Any] | None:
        """Sum of the host times: simulated on the modelled host when all nests were, else measured on this host."""
        modelled = [nest.get("modelledHostTime") for nest in self.nests]
        if all(quantity is not None for quantity in modelled):
            return _sum(modelled)
        return _sum([nest.get("hostTime") for nest in self.nests])

    @property
    def pim_time(self) -> dict[str, Any] | None:
        """Sum of the PIM times: simulated when all nests were simulated, else predicted."""
        simulated = [nest.get("pimTime") for nest in self.nests]
        if all(quantity is not None for quantity in simulated):
            return _sum(simulated)
        return _sum([nest.get("predictedPimTime") for nest in self.nests])


def group_nests(nests: Sequence[Mapping[str, Any]]) -> list[NestGroup]:
    """Group nests by kernel, side and reason.

    Parameters
    ----------
    nests : sequence of mapping
        Nests of the run document.

    Returns
    -------
    list of NestGroup
        In the order in which each group's first nest runs.
    """
    groups: dict[tuple, list[Mapping[str, Any]]] = {}
    for nest in nests:
        why = nest.get("why") or {}
        key = (nest["kernel"], nest["where"], bool(nest.get("hoisted")), why.get("status"), why.get("reason"))
        groups.setdefault(key, []).append(nest)
    return [NestGroup(members) for members in groups.values()]
