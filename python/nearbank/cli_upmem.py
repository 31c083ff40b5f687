# SPDX-License-Identifier: Apache-2.0
"""The verb `upmem`: programs for UPMEM's DPUs, built and run without its SDK."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None, help='Example: eval "$(nearbank upmem env)" && make && ./bin/host_code')


class ReportFormat(StrEnum):
    """How a report is printed on stdout."""

    text = "text"
    json = "json"


@app.command("env", short_help="Print the settings that a shell needs to build UPMEM programs.")
def _env() -> None:
    """Example: eval "$(nearbank upmem env)"

    Print the settings that a shell needs to build UPMEM programs.
    """
    from nearbank import upmem_home

    typer.echo(upmem_home.shell_text(upmem_home.folder()))


@app.command("report", short_help="Show where the time of a run went.")
def _report(
    statistics: Annotated[Path, typer.Argument(metavar="FILE", help="What NEARBANK_STATS=FILE wrote.")],
    output_format: Annotated[ReportFormat, typer.Option("--format", help="What stdout carries.")] = ReportFormat.text,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML page, too.")] = None,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a trace for Perfetto, too.")] = None,
) -> None:
    """Example: nearbank upmem report run.json --html run.html

    Show cycles, IPC, instructions by kind, DMA and transfers of a run.
    """
    from nearbank import upmem_report

    document = upmem_report.read(statistics)
    if html:
        html.write_text(upmem_report.page(document), encoding="utf-8")
    if trace:
        trace.write_text(upmem_report.trace(document), encoding="utf-8")
    typer.echo(json.dumps(document, indent=1) if output_format == "json" else upmem_report.text(document))


@app.command(
    "check",
    short_help="Run a host program and report what hardware would not forgive.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
def _check(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The host program and its arguments.")],
) -> None:
    """Example: nearbank upmem check -- ./bin/host_code

    Run a host program and report wrong DMA, races between tasklets and other faults of its DPU program.
    """
    from nearbank import upmem_check

    verdict, code = upmem_check.run(command)
    typer.echo(verdict)
    raise typer.Exit(code)
