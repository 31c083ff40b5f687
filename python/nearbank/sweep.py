# SPDX-License-Identifier: Apache-2.0
"""Expands lists of machines, policies and machine values into the settings of each run."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearbank.settings import POLICIES, Settings


@dataclass(frozen=True)
class Variant:
    """One run of a sweep.

    Parameters
    ----------
    settings : Settings
        Its settings.
    swept : dict of str to str
        Machine values that differ between the runs.
    """

    settings: Settings
    swept: dict[str, str]


def _parts(value, is_whole=lambda text: False) -> list[Any]:
    if isinstance(value, str):
        return [value] if is_whole(value) else [part.strip() for part in value.split(",") if part.strip()] or [value]
    return list(value) if isinstance(value, list | tuple) else [value]


def _choices(assignments) -> list[tuple[str, list[str]]]:
    """Keys with all their values, in order; the last assignment of a key counts."""
    if isinstance(assignments, str):
        assignments = [assignments]
    if isinstance(assignments, Mapping):
        assignments = list(assignments.items())
    choices: dict[str, list[str]] = {}
    for assignment in assignments:
        key, values = assignment.split("=", 1) if isinstance(assignment, str) and "=" in assignment else assignment
        choices[str(key).strip()] = [str(value).strip() for value in _parts(values)]
    return list(choices.items())


def expand(options: Mapping[str, Any], where: str) -> list[Variant]:
    """List the runs that options ask for.

    Parameters
    ----------
    options : mapping
        Options of `Settings`, where ``machine``, ``policy`` and the values of ``set`` may be lists, or text with
        commas; the policy "all" stands for every policy that the other options allow ("oracle" needs simulated
        times).
    where : str
        Where the options stand, for messages.

    Returns
    -------
    list of Variant
        Machines outermost, then values, then policies; one for options without lists.

    Raises
    ------
    nearbank.errors.UserError
        As `Settings.from_options`.

    Examples
    --------
    >>> variants = expand({"machine": "nmc-32,nmc-64", "policy": "cpu-only"}, "here")
    >>> [variant.settings.machine for variant in variants]
    ['nmc-32', 'nmc-64']
    """
    machines = _parts(options.get("machine") or "nmc-64", is_whole=os.path.isfile)
    policies: list[str] = []
    for policy in _parts(options.get("policy") or "two-stage"):
        is_all = policy == "all"
        policies += [p for p in POLICIES if p != "oracle" or options.get("simulate") != "none"] if is_all else [policy]
    try:
        choices = _choices(options.get("set") or ())
    except (TypeError, ValueError):
        # What is no assignment is refused with its name.
        Settings.from_options({**options, "machine": None, "policy": None}, where)
        raise
    keys = [key for key, _ in choices]
    swept = {key for key, values in choices if len(values) > 1}
    variants = []
    for machine in machines:
        for values in itertools.product(*(values for _, values in choices)):
            pairs = list(zip(keys, values, strict=True))
            for policy in dict.fromkeys(policies):
                settings = Settings.from_options({**options, "machine": machine, "policy": policy, "set": pairs}, where)
                variants.append(Variant(settings, {key: value for key, value in pairs if key in swept}))
    return variants
