# SPDX-License-Identifier: Apache-2.0
"""Holds a run document and gives it out as text, JSON, CSV, a table or a folder of files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearbank.errors import make_error, missing_package
from nearbank.report_verdict import verdict

__all__ = ["SCHEMA", "Report", "load_report", "verdict"]

#: More runs than this are printed as one table; each one alone with ``show_all``.
TABLE_LIMIT = 2
#: The one schema of run documents; docs/reference/run.schema.json describes it.
SCHEMA = "nearbank-run-1"


class Report:
    """What a plan or a run found out.

    Parameters
    ----------
    document : mapping
        A run document (docs/reference/run.schema.json). Missing verdicts are filled in.

    Notes
    -----
    Every quantity is ``{"value", "unit", "kind"}``; the kind says whether it was measured, simulated, modelled,
    predicted or counted.

    Examples
    --------
    >>> report = Report({"schema": "nearbank-run-1", "runs": []})
    >>> report.runs
    []
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document: dict[str, Any] = dict(document)
        for run in self.document.get("runs", []):
            if not run["summary"].get("verdict"):
                run["summary"]["verdict"] = verdict(run)

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The entries of ``runs``, each with ``summary`` and ``nests``."""
        return self.document.get("runs", [])

    @property
    def verdict(self) -> str:
        """The one-line verdicts of the runs, one a line."""
        return "\n".join(run["summary"]["verdict"] for run in self.runs)

    def to_json(self, indent: int | None = 2) -> str:
        """Write the run document as JSON.

        Parameters
        ----------
        indent : int or None, default 2
            Spaces for each level; None writes one line.

        Returns
        -------
        str
            Without a newline at the end; numbers that are not finite are null, as JSON has no word for them.
        """
        return json.dumps(finite(self.document), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_csv(self) -> str:
        """Write one line for each nest of each run.

        Returns
        -------
        str
            The text of ``nests.csv``: a header, then the nests in program order; each column names its unit.
        """
        from nearbank.report_csv import csv_text

        return csv_text(self.document)

    def to_runs_csv(self) -> str:
        """Write one line for each run.

        Returns
        -------
        str
            The text of ``runs.csv``: machine, swept values, policy, speed-up, times, bytes; each column names its unit.
        """
        from nearbank.report_runs import runs_csv

        return runs_csv(self.runs)

    def compare(self, baseline: Report, name: str) -> None:
        """Note the differences from an earlier report in this one; all its forms show them.

        Parameters
        ----------
        baseline : Report
            The earlier report.
        name : str
            What to call it.
        """
        from nearbank.baseline import compare

        self.document["comparison"] = compare(baseline.document, self.document, name)

    def to_text(self, show_all: bool = False, width: int | None = None) -> str:
        """Print the runs as placement tables with summaries and verdicts; several runs end with an overview.

        More than two runs are printed as the overview and their verdicts alone.

        Parameters
        ----------
        show_all : bool, default False
            One row for each nest instead of one for each distinct kernel and side, and the tables of all runs.
        width : int, optional
            Columns of the terminal; None leaves every cell whole.

        Returns
        -------
        str
            Without a newline at the end.
        """
        from nearbank.baseline import comparison_lines
        from nearbank.render_text import run_text, table_lines
        from nearbank.report_runs import overview_rows

        if len(self.runs) > TABLE_LIMIT and not show_all:
            texts = [self.verdict]
        else:
            texts = [run_text(run, show_all, width) for run in self.runs]
        if len(self.runs) > 1:
            texts.append("\n".join(table_lines(overview_rows(self.runs))))
        if comparison := self.document.get("comparison"):
            texts.append("\n".join(comparison_lines(comparison)))
        return "\n\n".join(texts)

    def to_html(self) -> str:
        """Render the report as one HTML page that needs no network.

        Returns
        -------
        str
            The same text for the same document.
        """
        from nearbank.html_page import page_html

        return page_html(self.document)

    def to_dataframe(self):
        """Return the nests as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            The columns of ``nests.csv``.

        Raises
        ------
        DeviceError
            NB0604 when pandas is not installed.
        """
        try:
            import pandas
        except ImportError as cause:
            raise missing_package("pandas") from cause
        from nearbank.report_csv import COLUMNS, csv_rows

        return pandas.DataFrame(csv_rows(self.document), columns=list(COLUMNS))

    def save(self, folder: str | Path) -> Path:
        """Write the report's files into a folder.

        Parameters
        ----------
        folder : str or Path
            Made when missing; files of an earlier report are replaced.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        DeviceError
            NB0601 when the folder cannot be made or written.
        """
        from nearbank.report_files import save_files

        return save_files(self, Path(folder))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        names = ", ".join(f"{run['spec']} on {run['machine']} by {run['policy']}" for run in self.runs)
        return f"<nearbank.Report: {names or 'no runs'}>"


def load_report(folder: str | Path) -> Report:
    """Read the report of an earlier plan or run.

    Parameters
    ----------
    folder : str or Path
        A folder that `Report.save` wrote, or a ``run.json``.

    Returns
    -------
    Report
        The report.

    Raises
    ------
    UserError
        NB0605 when there is no run document, NB0606 when it cannot be read or is of another schema.
    """
    path = Path(folder)
    if path.is_dir() or path.suffix != ".json":
        path = path / "run.json"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as cause:
        raise make_error(
            "user",
            "NB0605",
            "there is no report here",
            where=str(path),
            expected="a folder written by nearbank plan or nearbank run",
            actual=cause.strerror or str(cause),
            fix="check the folder, or run nearbank run SPEC --out DIR",
        ) from cause
    except UnicodeDecodeError as cause:
        raise _unreadable(path, str(cause)) from cause
    try:
        document = json.loads(text)
    except json.JSONDecodeError as cause:
        raise _unreadable(f"{path}:{cause.lineno}:{cause.colno}", cause.msg) from cause
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise _unreadable(path, f"schema {schema!r}")
    return Report(document)


def finite(value: Any) -> Any:
    """Replace numbers that JSON cannot hold.

    Parameters
    ----------
    value : Any
        Part of a run document.

    Returns
    -------
    Any
        The same with None for infinities and NaN.
    """
    if isinstance(value, Mapping):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _unreadable(where: object, actual: str):
    return make_error(
        "user",
        "NB0606",
        "a report cannot be read",
        where=str(where),
        expected=f"JSON of schema {SCHEMA!r}",
        actual=actual,
        fix="make the report anew with this version of nearbank",
    )
