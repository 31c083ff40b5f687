# SPDX-License-Identifier: Apache-2.0
"""Assembles the run document (schema nearbank-run-1) from what the core reports for each compiled piece."""

from __future__ import annotations

import os
import platform
import re
from typing import Any

from nearbank.errors import unknown_name
from nearbank.settings import NATIVE
from nearbank.speedup import speedup

_NEST_ID = re.compile(r"n(\d+)$")


_COUNTS = (
    "numNests",
    "distinctNests",
    "nestsOnPim",
    "nestsOnHost",
    "nestsHoisted",
    "profiledNests",
    "reusedProfiles",
    "simulatedNests",
    "reusedSimulations",
)
_QUANTITIES = {
    "hostTime": ("ns", "measured"),
    "hostTimeOfHostNests": ("ns", "measured"),
    "hostTimeOfPimNests": ("ns", "measured"),
    "pimTime": ("ns", "simulated"),
    "predictedPimTime": ("ns", "predicted"),
    "crossingTime": ("ns", "modelled"),
    "linkBytes": ("B", "counted"),
}


def quantity(value, unit: str, kind: str) -> dict[str, Any]:
    """Return a quantity of the run document.

    Parameters
    ----------
    value : int or float
        The number.
    unit : str
        "ns", "B", "count", …
    kind : {"measured", "simulated", "modelled", "predicted", "counted"}
        Where the number comes from.

    Returns
    -------
    dict
        ``{"value", "unit", "kind"}``.
    """
    return {"value": value, "unit": unit, "kind": kind}


class NestNumbering:
    """Numbers the nests of several pieces through, and translates selectors and records.

    Parameters
    ----------
    nests : list of list of dict
        ``nests`` of each piece's description, in order of execution.
    """

    def __init__(self, nests: list[list[dict]]):
        self._nests = nests
        self._offsets = [0]
        for piece in nests:
            self._offsets.append(self._offsets[-1] + len(piece))

    def check(self, selectors) -> None:
        """Raise NB0405 for a selector that matches no nest of any piece."""
        for selector in selectors:
            if any(self._matches(selector, number) for number in range(len(self._nests))):
                continue
            names = {nest.get("kernel", "") for piece in self._nests for nest in piece} - {""}
            raise unknown_name(
                "user",
                "NB0405",
                "selector matches no loop nest",
                selector,
                sorted(names),
                remedy="select by nest id, kernel, source line (model.py:41) or module path; nearbank plan lists them",
            )

    def _matches(self, selector: str, number: int) -> bool:
        match = _NEST_ID.match(selector)
        if match:
            return self._offsets[number] <= int(match[1]) < self._offsets[number + 1]
        return any(
            selector in (nest.get("kernel"), nest.get("source"), os.path.basename(nest.get("source") or ""))
            or f"{nest.get('modulePath') or ''}.".startswith(selector + ".")
            or (nest.get("source") or "").endswith("/" + selector)
            for nest in self._nests[number]
        )

    def selectors(self, selectors, number: int) -> list[str]:
        """Return the selectors that concern piece `number`, with its own nest ids."""
        chosen = []
        for selector in selectors:
            if not self._matches(selector, number):
                continue
            match = _NEST_ID.match(selector)
            chosen.append(f"n{int(match[1]) - self._offsets[number]}" if match else selector)
        return chosen

    def _renumber(self, identifier, number: int):
        match = _NEST_ID.match(identifier or "")
        return f"n{int(match[1]) + self._offsets[number]}" if match else identifier

    def merge_plans(self, plans: list[dict]) -> dict[str, Any]:
        """Merge the plans of all pieces into one."""
        nests, remarks = [], []
        for number, plan in enumerate(plans):
            nests += [{**nest, "id": self._renumber(nest["id"], number)} for nest in plan["nests"]]
            remarks += [
                {**remark, "nest": self._renumber(remark.get("nest"), number)} for remark in plan.get("remarks", [])
            ]
        summary = _sum_summaries([plan["summary"] for plan in plans])
        if len(plans) > 1:
            summary["distinctNests"] = len({nest["key"] for nest in nests})
        if not remarks:
            remarks = [_remark(nest) for nest in nests]
        crossings = self._renumbered(plans, "crossings")
        messages = list(dict.fromkeys(plan["message"] for plan in plans if plan.get("message")))
        return {
            "nests": nests,
            "summary": summary,
            "remarks": remarks,
            "crossings": crossings,
            "messages": messages,
        }

    def merge_records(self, records: list[dict]) -> dict[str, Any]:
        """Merge what one execution of each piece reported."""
        merged: dict[str, Any] = {
            "launches": [],
            "crossings": [],
            "wallTime": _sum([r.get("wallTime") for r in records]),
        }
        for name in ("launches", "crossings"):
            merged[name] = self._renumbered(records, name)
        return merged

    def _renumbered(self, documents: list[dict], name: str) -> list[dict]:
        return [
            {**entry, "nest": self._renumber(entry.get("nest"), number)}
            for number, document in enumerate(documents)
            for entry in document.get(name, [])
        ]


def _remark(nest: dict) -> dict[str, Any]:
    """The decision on a nest as a remark: status, sentence, and its numbers with the unit in the key."""
    why = nest.get("why") or {}
    values = {}
    for equation in why.get("equations", []):
        for entry in equation.get("inputs", []):
            values[f"{entry['name']} [{entry['unit']}]" if entry.get("unit") else entry["name"]] = entry["value"]
    return {
        "status": why.get("status", "KeptOnHost"),
        "nest": nest["id"],
        "message": why.get("reason", ""),
        "args": {**values, "suggestion": why.get("suggestion", "")},
    }


def _sum_summaries(summaries: list[dict]) -> dict[str, Any]:
    """Add up counts and quantities of pieces; a quantity that one piece lacks is unknown for all."""
    if not summaries:
        return {**dict.fromkeys(_COUNTS, 0), **{name: quantity(0, *of) for name, of in _QUANTITIES.items()}}
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for summary in summaries for name in summary):
        values = [summary.get(name) for summary in summaries]
        if any(value is None for value in values):
            merged[name] = None
        else:
            merged[name] = _sum(values) if isinstance(values[0], dict) else sum(values)
    return merged


def _sum(quantities):
    present = [entry for entry in quantities if entry is not None]
    if not present:
        return None
    return {**present[0], "value": sum(entry["value"] for entry in present)}


def run_entry(graph, spec: str, simulate: str, swept: dict[str, str] | None = None) -> dict[str, Any]:
    """Return one entry of ``runs`` for a planned, and possibly executed, graph.

    Parameters
    ----------
    graph : nearbank.program.CompiledGraph
        The graph.
    spec : str
        What the user asked for.
    simulate : {"exact", "sampled", "none"}
        As in `nearbank.settings.Settings`.
    swept : dict of str to str, optional
        Machine values in which the runs of a sweep differ.

    Returns
    -------
    dict
        See docs/reference/run.schema.json.
    """
    plan, record, settings = graph.plan_document, graph.record or {}, graph.settings
    summary = {
        "maxAbsError": None,
        "eagerMaxAbsError": None,
        "errorBound": None,
        "eagerTime": None,
        **plan["summary"],
        "verdict": "",
    }
    nests = [dict(nest) for nest in plan["nests"]]
    if record:
        _charge_launches(summary, nests, record)
    found = speedup(summary, nests)
    summary["speedup"], summary["speedupInterval"] = found or (None, None)
    is_modelled = summary.get("modelledHostTime") is not None
    changed = ", ".join(f"{key}={value}" for key, value in (swept or {}).items())
    return {
        "spec": spec,
        "machine": f"{settings.machine} ({changed})" if changed else settings.machine,
        "machineName": settings.machine,
        "swept": swept or {},
        "policy": settings.policy,
        "host": {
            "machine": settings.modelled_host if is_modelled else NATIVE,
            "kind": "simulated" if is_modelled else "measured",
        },
        "simulate": simulate,
        "threads": settings.host_threads,
        "options": settings.to_dict(),
        "machineValues": machine_values(settings.machine, settings.set),
        "baseline": {"name": "native host", "kind": "measured", "threads": settings.host_threads},
        "summary": summary,
        "nests": nests,
        "launches": record.get("launches", []),
        "crossings": record.get("crossings") or plan["crossings"],
        "eagerOps": [op.to_dict() for op in graph.split.eager_ops],
        "remarks": plan["remarks"],
        "messages": plan.get("messages", []),
    }


def _charge_launches(summary, nests, record) -> None:
    """Take times that only an execution knows over into nests and summary."""
    by_nest = {launch["nest"]: launch for launch in record["launches"]}
    launches = [launch for launch in record["launches"] if launch["site"] == "pim"]
    for nest in nests:
        launch = by_nest.get(nest["id"])
        if launch and launch["site"] == "pim" and nest.get("pimTime") is None:
            nest["pimTime"], nest["pimEnergy"] = launch["time"], launch.get("energy")
    hoisted = {nest["id"] for nest in nests if nest.get("hoisted")}
    timed = [launch for launch in launches if launch["nest"] not in hoisted]
    if summary.get("pimTime") is None and launches:
        summary["pimTime"] = _sum([launch["time"] for launch in timed]) or quantity(0, "ns", "simulated")
    if summary.get("pimEnergy") is None and timed and all(launch.get("energy") for launch in timed):
        summary["pimEnergy"] = _sum([launch["energy"] for launch in timed])
    if record["crossings"] and summary.get("crossingTime") is None:
        times = [crossing["time"] for crossing in record["crossings"] if crossing["nest"] not in hoisted]
        summary["crossingTime"] = _sum(times) or quantity(0, "ns", "modelled")
    if summary.get("linkBytes") is None:
        total = sum(crossing.get("bytes") or 0 for crossing in record["crossings"])
        summary["linkBytes"] = quantity(total, "B", "counted")
    # A run that estimates by sampling executes nothing on PIM and counts no bytes there.
    if summary.get("dramBytes") is None and (launches or not summary.get("nestsOnPim")):
        summary["dramBytes"] = quantity(sum(launch.get("dramBytes") or 0 for launch in launches), "B", "simulated")


def machine_values(machine: str, assignments) -> list[dict[str, Any]]:
    """Read every value of a machine.

    Parameters
    ----------
    machine : str
        Name of a machine, or path of a machine file.
    assignments : sequence of (key, value)
        Values that replace those of the machine file.

    Returns
    -------
    list of dict
        Each with ``path``, ``value``, ``unit``, ``source`` and ``layer``; in file order.

    Raises
    ------
    nearbank.errors.UserError
        NB01xx when the machine is unknown or its description is wrong.
    """
    import json

    try:
        import nearbank._core
    except ImportError:  # Only without the extension, where nothing can be compiled either.
        return []
    shown = json.loads(nearbank._core.show_machine(machine, json.dumps([list(pair) for pair in assignments])))
    return shown["values"] if isinstance(shown, dict) else shown


def document(runs, command) -> dict[str, Any]:
    """Return a whole run document.

    Parameters
    ----------
    runs : list of dict
        Entries as `run_entry` returns them.
    command : list of str
        The command line, or the Python call.

    Returns
    -------
    dict
        Schema nearbank-run-1.
    """
    return {
        "schema": "nearbank-run-1",
        "command": list(command),
        "versions": versions(),
        "seed": 0,
        "host": host(),
        "runs": runs,
    }


def versions() -> dict[str, str]:
    """Return the versions of what took part.

    Returns
    -------
    dict of str to str
        Python, torch, torch-mlir, and what the core reports about itself.
    """
    import importlib.metadata
    import json

    found = {"nearbank": _version("nearbank", importlib.metadata), "python": platform.python_version()}
    for package in ("torch", "torch-mlir", "transformers"):
        found[package] = _version(package, importlib.metadata)
    try:
        import nearbank._core

        found.update({key: str(value) for key, value in json.loads(nearbank._core.version_info()).items()})
    except (ImportError, AttributeError):
        pass
    return found


def _version(package, metadata) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        import nearbank

        return nearbank.__version__ if package == "nearbank" else "not installed"


def host() -> dict[str, Any]:
    """Describe the host: name, cores, and a fingerprint that says whose profiles these are.

    Returns
    -------
    dict
        ``name``, ``cores``, ``fingerprint``.
    """
    import hashlib

    name, flags = platform.processor() or platform.machine(), ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    name = value.strip()
                elif key.strip() == "flags":
                    flags = value.strip()
                    break
    except OSError:
        pass
    cores = len(os.sched_getaffinity(0))
    fingerprint = hashlib.sha256(f"{name}|{flags}|{cores}".encode()).hexdigest()[:16]
    return {"name": name, "cores": cores, "fingerprint": fingerprint}
