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

# What last_report speaks of.
_last: Report | ModelRecord | None = None


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
    graph.plan("none" if execute else settings.simulate)
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


class ModelRecord:
    """Graphs that one call of torch.compile has led to, in the order of compilation."""

    def __init__(self):
        self.graphs: list[tuple[Any, str]] = []

    def add(self, graph, name: str) -> None:
        """Record a planned `nearbank.program.CompiledGraph` under its name in the report."""
        self.graphs.append((graph, name))
        self.touch()

    def touch(self) -> None:
        """Make this the model that `last_report` speaks of."""
        global _last
        _last = self


def _remember(report: Report) -> None:
    global _last
    _last = report


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
    if not isinstance(_last, ModelRecord):
        return _last
    runs = [rundoc.run_entry(graph, name, graph.settings.simulate) for graph, name in _last.graphs]
    return Report(rundoc.document(runs, ["torch.compile", 'backend="nearbank"']))
