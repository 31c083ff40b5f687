# SPDX-License-Identifier: Apache-2.0
"""The Python API: plan and run a model, and the report of the last compiled one."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from nearbank import rundoc, specs
from nearbank.errors import make_error
from nearbank.report import Report
from nearbank.settings import Settings

#: An eager pass is timed until this many seconds have gone by, at most `_EAGER_REPEATS` times.
_EAGER_SECONDS = 3.0
_EAGER_REPEATS = 10

_last_graphs: list[tuple[Any, str, Settings]] = []
_last_report: Report | None = None
_last_model: object = None


def plan(spec, example_inputs=None, **options) -> Report:
    """Decide for every loop nest of a model where it runs, without running the model.

    Parameters
    ----------
    spec : str or torch.nn.Module
        Built-in model, ``file.py:function`` returning ``(module, example_inputs)``, or a module.
    example_inputs : tuple of torch.Tensor, optional
        Inputs, when `spec` is a module.
    **options
        ``machine``, ``policy``, ``simulate`` ("none" by default), ``threads``, ``pin``, ``forbid``,
        ``on_unsupported``, ``db``, ``set`` as in `nearbank.settings.Settings`; ``batch`` (of a built-in model),
        ``dtype`` ("f32", "bf16", "f16", "f64"), ``train`` (loss and gradients), ``out`` (folder for the report),
        ``progress`` (called with stage, done, total).

    Returns
    -------
    nearbank.report.Report
        Host times are measured, PIM times simulated or predicted, crossings modelled; each quantity says which.

    Raises
    ------
    nearbank.errors.UserError
        NB02xx when the model cannot be found, built, captured or compiled.

    Examples
    --------
    >>> import nearbank
    >>> report = nearbank.plan("mlp", policy="cpu-only")  # doctest: +SKIP
    """
    return _plan_or_run(spec, example_inputs, options, execute=False)


def run(spec, example_inputs=None, **options) -> Report:
    """Plan a model, execute it on host and simulated PIM, and compare it with eager PyTorch.

    Parameters
    ----------
    spec, example_inputs, **options
        As in `plan`; ``simulate`` is "exact" by default.

    Returns
    -------
    nearbank.report.Report
        As `plan` returns it, with errors against a float64 run and launches.

    Raises
    ------
    nearbank.errors.UserError
        As `plan`; NB0301 (an IndexError too) when an index is out of range.

    Examples
    --------
    >>> import nearbank
    >>> report = nearbank.run("mlp")  # doctest: +SKIP
    """
    return _plan_or_run(spec, example_inputs, options, execute=True)


def _plan_or_run(spec, example_inputs, options, execute: bool) -> Report:
    progress = options.pop("progress", None) or (lambda *_: None)
    out = options.pop("out", None)
    loading = {name: options.pop(name) for name in ("batch", "dtype", "train") if name in options}
    options.setdefault("simulate", "exact" if execute else "none")
    settings = Settings.from_options(options, "nearbank.run" if execute else "nearbank.plan")

    # An unknown machine or a wrong machine file is reported before anything slow is done.
    rundoc.machine_values(settings.machine, settings.set)

    progress("load", 0, 0)
    model = specs.load(spec, example_inputs, **loading)
    from nearbank.capture import capture
    from nearbank.program import CompiledGraph

    progress("capture", 0, 0)
    captured = capture(model.module, model.example_inputs, training=model.training)
    if execute and captured.is_meta:
        raise make_error(
            "user",
            "NB0209",
            "a model without weights cannot be executed",
            where=model.name,
            expected="parameters and inputs on the CPU",
            actual="tensors on the meta device",
            fix="use nearbank plan, or give the model weights",
        )
    graph = CompiledGraph(
        captured.graph_module, settings, captured.parameters, captured.argument_names, model.name, progress
    )
    graph.plan()
    comparison = _compare(graph, captured, settings, progress) if execute else {}
    entry = rundoc.run_entry(graph, model.name, settings.simulate)
    entry["summary"].update(comparison)
    verb = "run" if execute else "plan"
    report = Report(rundoc.document([entry], ["nearbank", verb, model.name]))
    if out is not None:
        report.save(Path(out))
    _remember(report)
    return report


def _compare(graph, captured, settings, progress) -> dict[str, Any]:
    """Execute, and set the error against float64 beside eager PyTorch's own."""
    import torch

    from nearbank.comparison import compare_outputs
    from nearbank.eager import SEED

    progress("execute", 0, 0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        outputs = graph.run(captured.arguments)
    progress("compare with eager", 0, 0)
    threads = torch.get_num_threads()
    torch.set_num_threads(settings.host_threads)
    try:
        model = captured.reference(None)
        eager = model.outputs()
        times: list[int] = []
        while len(times) < _EAGER_REPEATS and sum(times) < _EAGER_SECONDS * 1e9:
            times.append(model.time_ns())
        del model
        exact = captured.reference(torch.float64).outputs()
    finally:
        torch.set_num_threads(threads)
    summary = compare_outputs(captured.output_names, outputs, eager, exact)
    summary["eagerTime"] = rundoc.quantity(statistics.median(times), "ns", "measured")
    return summary


def add_graph(graph, name: str, settings: Settings, model: object) -> None:
    """Record a graph that torch.compile compiled, for `last_report`.

    Parameters
    ----------
    graph : nearbank.program.CompiledGraph
        Planned graph.
    name : str
        Its name in the report.
    settings : Settings
        Options of its model.
    model : object
        Stands for one call of torch.compile; a graph of another one begins a new report.
    """
    global _last_report, _last_model
    if model is not _last_model:
        _last_graphs.clear()
    _last_model, _last_report = model, None
    _last_graphs.append((graph, name, settings))


def _remember(report: Report) -> None:
    global _last_report
    _last_graphs.clear()
    _last_report = report


def last_report() -> Report | None:
    """Return the report of the last model that was planned, run or compiled.

    Returns
    -------
    nearbank.report.Report or None
        After ``torch.compile(..., backend="nearbank")`` it holds one run for each compiled graph (forward, backward,
        further shapes), with the launches of its latest execution. None when nothing was compiled yet.

    Examples
    --------
    >>> import nearbank
    >>> nearbank.last_report() is None
    True
    """
    if _last_report is not None or not _last_graphs:
        return _last_report
    runs = [rundoc.run_entry(graph, name, settings.simulate) for graph, name, settings in _last_graphs]
    return Report(rundoc.document(runs, ["torch.compile", 'backend="nearbank"']))
