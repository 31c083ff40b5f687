# SPDX-License-Identifier: Apache-2.0
"""The command line: verbs, options and exit codes. Nothing here imports torch; each verb imports what it needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nearbank import cli_train_verb, cli_upmem

_RUN_EXAMPLE = "Example: nearbank run minilm --machine nmc-64 --policy two-stage"


class Format(StrEnum):
    """How the result is printed on stdout."""

    text = "text"
    json = "json"
    csv = "csv"


class Simulate(StrEnum):
    """How PIM times are found."""

    exact = "exact"
    sampled = "sampled"
    none = "none"


class Fallback(StrEnum):
    """What happens to an operator that cannot be compiled."""

    host = "host"
    error = "error"


_SpecArgument = Annotated[
    str, typer.Argument(help="Built-in model, hf:DIR, or file.py:function returning (module, inputs).")
]
_MachineOption = Annotated[
    str,
    typer.Option(metavar="NAME|FILE", help="Machine, or a machine file ending in .yaml; several with commas: a sweep."),
]
_PolicyOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="two-stage, cpu-only, pim-only, op-type, greedy, min-cut, oracle, mpki, roofline or damov; several with "
        "commas, or all: a sweep.",
    ),
]
_SimulateOption = Annotated[
    Simulate | None,
    typer.Option(
        help="exact executes PIM nests on the simulator (default of run); sampled estimates long nests from windows of "
        "their iterations (default of plan), and run then computes on the host; none only predicts."
    ),
]
_HostOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Host that PIM is compared with: a machine of kind host, simulated like PIM (default host-16), or native: "
        "this machine, measured.",
    ),
]
_ThreadsOption = Annotated[int, typer.Option(min=0, metavar="N", help="Host threads; 0 means all cores.")]
_BatchOption = Annotated[int | None, typer.Option(min=1, metavar="N", help="Batch size of a built-in model.")]
_DtypeOption = Annotated[str | None, typer.Option(metavar="TYPE", help="Cast the model to f32, bf16, f16 or f64.")]
_TokensOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Tokens of a full-size model; default 128.")
]
_DecodeOption = Annotated[bool, typer.Option("--decode", help="One new token of a language model, with a KV cache.")]
_ContextOption = Annotated[
    int | None, typer.Option("--context", min=1, metavar="N", help="Cached positions; only with --decode.")
]
_LayersOption = Annotated[int | None, typer.Option(min=1, metavar="K", help="First layers of a full-size model only.")]
_WeightsOption = Annotated[
    str | None, typer.Option(metavar="KIND", help="Weights of a full-size model: none, random, or file (hf:DIR).")
]
_PinOption = Annotated[
    list[str] | None,
    typer.Option(metavar="SELECTOR", help="Put nests on PIM: id, kernel, source line or module path. Repeatable."),
]
_ForbidOption = Annotated[
    list[str] | None, typer.Option(metavar="SELECTOR", help="Keep nests on the host; selectors as --pin. Repeatable.")
]
_UnsupportedOption = Annotated[
    Fallback, typer.Option(help="Run what cannot be compiled in eager PyTorch on the host, or stop with an error.")
]
_DbOption = Annotated[
    Path | None,
    typer.Option(readable=False, metavar="FILE", help="Profile database; default profiles.sqlite under NEARBANK_HOME."),
]
_SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the machine; VALUE,VALUE,… sweeps. Repeatable."),
]
_JobsOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Processes that simulate; default: the cores of this machine.")
]
_MpiOption = Annotated[
    bool, typer.Option("--mpi", help="Simulate on the ranks of this MPI job: mpirun -n 4 nearbank plan SPEC --mpi.")
]
_BaselineOption = Annotated[
    Path | None,
    typer.Option(readable=False, metavar="FILE|DIR", help="Earlier report; differences from it are shown."),
]
_TrainOption = Annotated[bool, typer.Option("--train", help="Compile the loss and its backward pass too.")]
_EmitUpmemOption = Annotated[
    Path | None,
    typer.Option(
        readable=False, metavar="DIR", help="Write the nests placed on DPUs of an upmem-N machine as UPMEM C there."
    ),
]
_OutOption = Annotated[
    Path | None,
    typer.Option(readable=False, metavar="DIR", help="Folder of the report; default nearbank-out/SPEC-MACHINE-POLICY."),
]
_FormatOption = Annotated[Format, typer.Option("--format", help="What stdout carries.")]
_AllOption = Annotated[bool, typer.Option("--all", help="One table row for each nest, however many.")]

app = typer.Typer(
    name="nearbank",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=False,
    help=f"{_RUN_EXAMPLE}\n\nDecide which loop nests of a PyTorch model run in memory, simulate them, and explain why.",
)
machines_app = typer.Typer(rich_markup_mode=None, help="Example: nearbank machines show nmc-64")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if show_version:
        _version(Format.text)
        raise typer.Exit()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _plan_or_run(
    context: typer.Context,
    spec: _SpecArgument,
    machine: _MachineOption = "nmc-64",
    policy: _PolicyOption = "two-stage",
    host: _HostOption = None,
    simulate: _SimulateOption = None,
    threads: _ThreadsOption = 0,
    batch: _BatchOption = None,
    dtype: _DtypeOption = None,
    tokens: _TokensOption = None,
    decode: _DecodeOption = False,
    context_length: _ContextOption = None,
    layers: _LayersOption = None,
    weights: _WeightsOption = None,
    pin: _PinOption = None,
    forbid: _ForbidOption = None,
    on_unsupported: _UnsupportedOption = Fallback.host,
    db: _DbOption = None,
    assignments: _SetOption = None,
    jobs: _JobsOption = None,
    mpi: _MpiOption = False,
    baseline: _BaselineOption = None,
    train: _TrainOption = False,
    emit_upmem: _EmitUpmemOption = None,
    out: _OutOption = None,
    output_format: _FormatOption = Format.text,
    show_all: _AllOption = False,
) -> None:
    from nearbank import cli_run

    verb = context.info_name or "run"
    if simulate is None:
        simulate = Simulate.exact if verb == "run" else Simulate.sampled
    request = cli_run.Request(
        verb=verb,
        spec=spec,
        machine=machine,
        policy=policy,
        host=host,
        simulate=simulate.value,
        threads=threads,
        batch=batch,
        dtype=dtype,
        tokens=tokens,
        decode=decode,
        context=context_length,
        layers=layers,
        weights=weights,
        pin=pin or [],
        forbid=forbid or [],
        on_unsupported=on_unsupported.value,
        db=db,
        assignments=cli_run.parse_assignments(assignments or []),
        jobs=jobs,
        mpi=mpi,
        baseline=baseline,
        train=train,
        emit_upmem=emit_upmem,
        out=out,
        output_format=output_format.value,
        show_all=show_all,
    )
    cli_run.plan_or_run(request)


cli_train_verb.register(app)

_PLAN_TEXT = "Decide where each loop nest runs, without running the model."
_RUN_TEXT = "Plan, execute on host and simulated PIM, and compare with eager PyTorch."
_plan = app.command("plan", short_help=_PLAN_TEXT, help=f"Example: nearbank plan mlp\n\n{_PLAN_TEXT}")
_plan(_plan_or_run)
_run = app.command("run", short_help=_RUN_TEXT, help=f"{_RUN_EXAMPLE}\n\n{_RUN_TEXT}")
_run(_plan_or_run)


@app.command("explain", short_help="Show the numbers behind one decision, or what an error code means.")
def _explain(
    subject: Annotated[str, typer.Argument(metavar="CODE|DIR", help="Error code, or folder of a report.")],
    nest: Annotated[str | None, typer.Argument(help="Nest of that report, for example n12.")] = None,
) -> None:
    """Example: nearbank explain nearbank-out/minilm-nmc-64-two-stage n12

    Show the numbers behind one decision and what would flip it, or what an error code means.
    """
    from nearbank import explain

    typer.echo(explain.explain(subject, nest))


@app.command("report", short_help="Print an earlier report again.")
def _report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a report.")],
    output_format: _FormatOption = Format.text,
    show_all: _AllOption = False,
) -> None:
    """Example: nearbank report nearbank-out/minilm-nmc-64-two-stage --format csv

    Print an earlier report again and write its report.html anew.
    """
    from nearbank import cli_run

    cli_run.print_again(folder, output_format.value, show_all)


@machines_app.callback(invoke_without_command=True)
def _machines(
    context: typer.Context,
    output_format: Annotated[Format, typer.Option("--format", help="What stdout carries.")] = Format.text,
) -> None:
    if context.invoked_subcommand is None:
        from nearbank import cli_machines

        typer.echo(cli_machines.list_text(output_format.value))


@machines_app.command("list", short_help="List the built-in machines.")
def _machines_list(output_format: _FormatOption = Format.text) -> None:
    """Example: nearbank machines list

    List the built-in machines.
    """
    from nearbank import cli_machines

    typer.echo(cli_machines.list_text(output_format.value))


@machines_app.command("show", short_help="List every value of a machine with its source.")
def _machines_show(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="Machine, or a machine file ending in .yaml.")],
    assignments: _SetOption = None,
    output_format: _FormatOption = Format.text,
) -> None:
    """Example: nearbank machines show nmc-64 --set vault.bandwidthGBs=5

    List every value of a machine with its unit, its source and the layer that set it.
    """
    from nearbank import cli_machines, cli_run

    pairs = cli_run.parse_assignments(assignments or [])
    typer.echo(cli_machines.show_text(name, pairs, output_format.value))


app.add_typer(machines_app, name="machines", short_help="List machines and their values with sources.")
app.add_typer(cli_upmem.app, name="upmem", short_help="Build and run programs for UPMEM's DPUs without its SDK.")


@app.command("version", short_help="Print versions.")
def _version(output_format: _FormatOption = Format.text) -> None:
    """Example: nearbank version

    Print the versions of Nearbank and of what it was built with.
    """
    from nearbank import cli_machines

    typer.echo(cli_machines.version_text(output_format.value))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words after the program's name; by default those of the process.

    Returns
    -------
    int
        0 ok, 1 user error, 2 usage error, 3 device or environment, 4 internal error, 130 interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = typer.main.get_command(app).main(args=words, prog_name="nearbank", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except BaseException as error:
        from nearbank import cli_failure

        return cli_failure.report_failure(error, words)


if __name__ == "__main__":
    sys.exit(main())
