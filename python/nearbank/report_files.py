# SPDX-License-Identifier: Apache-2.0
"""Writes the folder of a run: document, resolved configuration, remarks, statistics, CSV, trace and page."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearbank.errors import NearbankError, make_error
from nearbank.report_quantities import DESCRIPTIONS

#: Documents with more nests are written without line breaks.
INDENTED_NESTS = 2000


def unwritable(folder: Path, cause: OSError) -> NearbankError:
    """Build the error for a folder that cannot be written.

    Parameters
    ----------
    folder : Path
        The output folder.
    cause : OSError
        What the system said.

    Returns
    -------
    DeviceError
        NB0601, or NB0602 when the disk is full; not raised yet.
    """
    import errno

    if cause.errno in (errno.ENOSPC, errno.EDQUOT):
        return make_error(
            "device",
            "NB0602",
            "the disk is full",
            where=str(folder),
            actual=cause.strerror or str(cause),
            fix="free some space, or choose another folder with --out",
        )
    return make_error(
        "device",
        "NB0601",
        "the output folder cannot be written",
        where=str(folder),
        expected="a writable folder",
        actual=cause.strerror or str(cause),
        fix="choose another folder with --out",
    )


def prepare_folder(folder: Path) -> Path:
    """Make a folder and prove that it can be written, before anything slow is done.

    Parameters
    ----------
    folder : Path
        Made with its parents when missing.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    DeviceError
        NB0601 or NB0602.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
        probe = folder / f".nearbank-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as cause:
        raise unwritable(folder, cause) from cause
    return folder


def write_files(folder: Path, contents: Mapping[str, bytes | str], is_durable: bool = False) -> None:
    """Write files beside those that are there, then put all in their places: a full disk leaves none cut off.

    Parameters
    ----------
    folder : Path
        An existing folder.
    contents : mapping from str to bytes or str
        What each file is to hold, by its name.
    is_durable : bool, default False
        Wait until the contents are on the disk, so that a crash cannot lose old and new ones.

    Raises
    ------
    DeviceError
        NB0601 or NB0602; files that were there are as they were.
    """
    written: list[tuple[Path, Path]] = []
    try:
        for name, content in contents.items():
            beside = folder / f".{name}.{os.getpid()}"
            written.append((beside, folder / name))
            with open(beside, "wb") as stream:
                stream.write(content.encode() if isinstance(content, str) else content)
                stream.flush()
                if is_durable:
                    os.fsync(stream.fileno())
        for beside, file in written:
            os.replace(beside, file)
    except OSError as cause:
        for beside, _ in written:
            beside.unlink(missing_ok=True)
        raise unwritable(folder, cause) from cause


def _config(document: Mapping[str, Any]) -> dict[str, Any]:
    runs = []
    for run in document.get("runs", []):
        entry = {name: run.get(name) for name in ("spec", "machine", "policy", "simulate", "threads", "baseline")}
        entry["options"] = run.get("options") or {}
        entry["machineValues"] = run.get("machineValues") or []
        runs.append(entry)
    return {
        "command": document.get("command"),
        "versions": document.get("versions"),
        "seed": document.get("seed"),
        "host": document.get("host"),
        "runs": runs,
    }


def _remark_yaml(document: Mapping[str, Any]) -> str:
    """One YAML document for each remark, in the shape of LLVM's optimisation records."""
    import yaml

    # The emitter in C is ten times faster, which matters for models of a thousand nests.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    tags = {"Placed": "!Passed", "KeptOnHost": "!Missed", "NotCandidate": "!Analysis", "Failed": "!Failure"}
    parts = []
    for run in document.get("runs", []):
        sources = {nest["id"]: nest for nest in run["nests"]}
        for remark in run.get("remarks", []):
            nest = sources.get(remark.get("nest"), {})
            args = [{"String": remark.get("message", "")}]
            args += [{name: value} for name, value in (remark.get("args") or {}).items()]
            body = {
                "Pass": "nearbank-placement",
                "Name": remark["status"],
                "Function": remark.get("nest"),
                "Source": nest.get("source", ""),
                "Policy": run["policy"],
                "Args": args,
            }
            parts.append(
                f"--- {tags.get(remark['status'], '!Analysis')}\n"
                + yaml.dump(body, Dumper=dumper, sort_keys=False, allow_unicode=True, width=110)
                + "...\n"
            )
    return "".join(parts)


def _statistics(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    statistics = []
    for run in document.get("runs", []):
        label = {"spec": run["spec"], "machine": run["machine"], "policy": run["policy"]}
        for name, value in run["summary"].items():
            description = DESCRIPTIONS.get(name, "")
            if isinstance(value, Mapping):
                statistics.append({**label, "name": name, **value, "description": description})
            elif isinstance(value, int):
                statistics.append(
                    {
                        **label,
                        "name": name,
                        "value": value,
                        "unit": "count",
                        "kind": "counted",
                        "description": description,
                    }
                )
    return statistics


def save_files(report: Any, folder: Path) -> Path:
    """Write every file of a report.

    Parameters
    ----------
    report : nearbank.report.Report
        What to write.
    folder : Path
        Where to.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    DeviceError
        NB0601 or NB0602.
    """
    import yaml

    from nearbank.report import finite
    from nearbank.report_trace import trace_events

    document = report.document
    prepare_folder(folder)
    # Indented, the document of a large sweep takes seconds to write and is read by nobody.
    indent = None if sum(len(run["nests"]) for run in report.runs) > INDENTED_NESTS else 2
    trace = json.dumps(finite(trace_events(document)), separators=(",", ":")).encode()
    files: dict[str, bytes | str] = {
        "run.json": report.to_json(indent) + "\n",
        "config.resolved.yaml": yaml.safe_dump(_config(document), sort_keys=False, allow_unicode=True, width=110),
        "remarks.opt.yaml": _remark_yaml(document),
        "stats.json": json.dumps(finite(_statistics(document)), indent=2, ensure_ascii=False) + "\n",
        "nests.csv": report.to_csv(),
        "runs.csv": report.to_runs_csv(),
        "report.html": report.to_html(),
        # A fixed time stamp keeps the bytes the same for the same run.
        "trace.json.gz": gzip.compress(trace, mtime=0),
    }
    write_files(folder, files)
    return folder
