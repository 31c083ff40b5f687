# SPDX-License-Identifier: Apache-2.0
"""The Python API: plan and run a model, and the report of the last compiled one."""

from __future__ import annotations

import dataclasses
import statistics
import time
from pathlib import Path
from typing import Any

from nearbank import large_models, rundoc, simulation, specs, sweep
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
        Built-in model, ``hf:DIR``, ``file.py:function`` returning ``(module, example_inputs)``, or a module.
    example_inputs : tuple of torch.Tensor, optional
        Inputs, when `spec` is a module.
    **options
        ``machine``, ``policy``, ``host``, ``simulate`` ("sampled" by default), ``threads``, ``pin``, ``forbid``,
        ``on_unsupported``, ``db``, ``set`` as in `nearbank.settings.Settings`, where ``machine``, ``policy`` and the
        values of ``set`` may be lists: the report then holds one run for each combination, and ``policy="all"`` stands
        for all policies; ``jobs`` (processes that simulate, 1 by default); ``batch`` (of a built-in model),
        ``dtype`` ("f32", "bf16", "f16", "f64"), ``train`` (loss and gradients), ``out`` (folder for the report),
        ``progress`` (called with stage, done, total), ``emit_upmem`` (folder for the nests placed on DPUs, as UPMEM
        C; a folder in it for each run where there are several); for a full-size model ``tokens``, ``decode``,
        ``context``, ``layers`` and ``weights`` as in `nearbank.large_models.Size`.

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
    emit_upmem = options.pop("emit_upmem", None)
    simulating = {name: options.pop(name) for name in ("jobs", "executor", "workers") if name in options}
    loading = {name: options.pop(name) for name in ("batch", "dtype", "train") if name in options}
    names = [entry.name for entry in dataclasses.fields(large_models.Size)]
    size = large_models.Size(**{name: value for name in names if (value := options.pop(name, None)) is not None})
    options.setdefault("simulate", "exact" if execute else "sampled")
    where = "nearbank.run" if execute else "nearbank.plan"
    _check_jobs(simulating.get("jobs", 1), where)
    variants = sweep.expand(options, where)
    settings = variants[0].settings

    # An unknown machine or a wrong machine file is reported before anything slow is done.
    for machine, assignments in dict.fromkeys((v.settings.machine, v.settings.set) for v in variants):
        values = rundoc.machine_values(machine, assignments)
        if emit_upmem is not None:
            _check_emission(machine, values, where)
    if settings.modelled_host:
        rundoc.machine_values(settings.modelled_host, ())

    progress("load", 0, 0)
    captured = None
    messages: list[str] = []
    if large_models.is_large(spec) and not execute and not loading.get("train"):
        graph, message = _large_graph(spec, size, loading, settings, progress)
        messages.append(message)
    else:
        model = specs.load(spec, example_inputs, **loading, size=size, execute=execute)
        graph, captured = _compile(model, settings, progress, execute)
    _simulate_pending(graph, variants, execute, progress, **simulating)
    entries = []
    for number, variant in enumerate(variants):
        graph.settings = variant.settings
        graph.plan(*_planned_simulation(variant.settings, execute))
        emitted = []
        if emit_upmem is not None:
            emitted = [_emitted(graph, Path(emit_upmem) / (f"run{number}" if len(variants) > 1 else ""))]
        comparison = _compare(graph, captured, variant.settings, progress) if execute else {}
        entry = rundoc.run_entry(graph, graph.name, variant.settings.simulate, variant.swept)
        entry["messages"] = [*entry["messages"], *messages, *emitted, *comparison.pop("messages", [])]
        entry["summary"].update(comparison)
        entries.append(entry)
    verb = "run" if execute else "plan"
    report = Report(rundoc.document(entries, ["nearbank", verb, graph.name]))
    if out is not None:
        report.save(Path(out))
    _remember(report)
    return report


def _check_emission(machine: str, values, where: str) -> None:
    if not values or any(value["path"] == "system.dpus" for value in values):
        return
    raise make_error(
        "user",
        "NB0208",
        "value is not valid for this option",
        where=f"{where}, option emit_upmem",
        expected="a machine with DPUs",
        actual=f"machine {machine}",
        fix="--machine upmem-64",
    )


def _emitted(graph, folder) -> str:
    """Write the nests on DPUs as UPMEM projects, and say what was written."""
    names = graph.emit_upmem(str(folder))
    if not names:
        return f"--emit-upmem: {graph.settings.policy} places no nest on DPUs of {graph.settings.machine}"
    return f"UPMEM projects of {len(names)} distinct nests were written to {folder}"


def _check_jobs(jobs, where: str) -> None:
    if isinstance(jobs, int) and not isinstance(jobs, bool) and jobs >= 1:
        return
    raise make_error(
        "user",
        "NB0208",
        "value is not valid for this option",
        where=f"{where}, option jobs",
        expected="a positive integer: the number of processes that simulate",
        actual=repr(jobs),
    )


def _planned_simulation(settings: Settings, execute: bool) -> tuple[str, str]:
    """How plans simulate kernels on scratch data: on PIM, and on the modelled host."""
    # Executing simulates by itself what the exact policies do not need beforehand.
    is_late = execute and settings.simulate == "exact" and settings.policy != "oracle"
    host = settings.simulate
    if not settings.modelled_host:
        host = "none"
    elif execute and host == "exact":
        host = "sampled"
    return "none" if is_late else settings.simulate, host


def _simulate_pending(graph, variants, execute, progress, jobs: int = 1, executor=None, workers: int = 1) -> None:
    """Simulate what the plans of all variants need, each nest once for each machine."""
    tasks, seen = [], set()
    for variant in variants:
        settings = variant.settings
        simulate = _planned_simulation(settings, execute)
        # What is simulated does not depend on the policy.
        need = (settings.machine, settings.set, settings.host, simulate)
        if need in seen:
            continue
        seen.add(need)
        graph.settings = settings
        tasks += graph.pending(*simulate)
    simulation.run_tasks(tasks, jobs, variants[0].settings.host_threads, progress, executor, workers)


def _compile(model: specs.Model, settings, progress, execute: bool):
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
            fix="use nearbank plan, or give the model weights (--weights random for the built-in ones)",
        )
    graph = CompiledGraph(
        captured.graph_module, settings, captured.parameters, captured.argument_names, model.name, progress
    )
    return graph, captured


def _large_graph(spec, size, loading, settings, progress):
    """Compile a full-size model from the graph of an earlier export where there is one."""
    from nearbank import graph_cache

    blueprint = large_models.blueprint(spec, size, loading.get("batch"), loading.get("dtype"), execute=False)
    path = graph_cache.path_for(blueprint.identity())
    graph: Any = graph_cache.open_graph(path, settings, spec, progress)
    if graph is not None:
        message = f"graph cache hit: the graph exported earlier was read from {path}"
    else:
        started = time.perf_counter()
        model = specs.Model(spec, *large_models.build(blueprint), False)
        graph, _ = _compile(model, settings, progress, execute=False)
        seconds = time.perf_counter() - started
        written = f"it was written to {path}" if graph_cache.store(path, graph) else "it could not be kept"
        message = f"graph cache miss: the graph was exported and compiled in {seconds:.1f} s; {written}"
    return graph, message


def _compare(graph, captured, settings, progress) -> dict[str, Any]:
    """Execute, and set the error against float64 beside eager PyTorch's own."""
    import torch

    from nearbank.comparison import compare_outputs, compare_with_eager
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
        needed, available = _double_bytes(captured.arguments), large_models.available_memory()
        if needed <= available:
            exact = captured.reference(torch.float64).outputs()
            summary = compare_outputs(captured.output_names, outputs, eager, exact)
        else:
            summary = compare_with_eager(captured.output_names, outputs, eager)
            summary["messages"] = [
                f"a float64 copy of the model needs {needed} B and {available} B are available: outputs were compared "
                "with eager PyTorch itself, within a share of the largest value of each output (f32 1e-4, bf16 0.08)"
            ]
    finally:
        torch.set_num_threads(threads)
    summary["eagerTime"] = rundoc.quantity(statistics.median(times), "ns", "measured")
    return summary


def _double_bytes(arguments) -> int:
    """Bytes that a copy in float64 takes while it is made: the copy, and what it is made from."""
    return sum(a.nbytes + a.numel() * (8 if a.is_floating_point() else a.element_size()) for a in arguments)


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
