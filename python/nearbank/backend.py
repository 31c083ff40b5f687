# SPDX-License-Identifier: Apache-2.0
"""The torch.compile backend "nearbank": forward, backward and inference graphs through CompiledGraph."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from nearbank import session
from nearbank.decompositions import decomposition_table, math_attention
from nearbank.fixups import has_symbols, specialise
from nearbank.program import CompiledGraph
from nearbank.settings import Settings


def nearbank_backend(
    gm: fx.GraphModule, example_inputs, *, options: Mapping[str, Any] | None = None, mode=None, **others
):
    """Compile a dynamo graph; torch.compile calls this for ``backend="nearbank"``.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        Graph of torch operators.
    example_inputs : list of torch.Tensor
        Inputs, parameters included.
    options : mapping, optional
        ``machine``, ``policy``, ``simulate``, ``threads``, ``pin``, ``forbid``, ``on_unsupported``, ``db``, ``set``,
        ``name``; see `nearbank.settings.Settings`.
    mode : str, optional
        torch.compile's mode; has no meaning here.

    Returns
    -------
    callable
        Takes the graph's inputs and returns its outputs.

    Raises
    ------
    nearbank.errors.UserError
        NB0204 unknown option, NB0208 value that is not valid, NB0203 operator that cannot be compiled.

    Examples
    --------
    >>> import torch
    >>> model = torch.compile(torch.nn.Linear(4, 4), backend="nearbank", options={"policy": "cpu-only"})
    """
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd

    settings = Settings.from_options({**(options or {}), **others}, 'torch.compile(backend="nearbank", options=…)')
    compilation = _Compilation(settings, _record_of_call())
    with math_attention():
        return aot_autograd(
            fw_compiler=compilation.compiler("forward"),
            bw_compiler=compilation.compiler("backward"),
            inference_compiler=compilation.compiler("inference"),
            # Recomputes cheap values in the backward graph: what forward saves would otherwise be copies of weights.
            partition_fn=min_cut_rematerialization_partition,
            decompositions=decomposition_table(),
        )(gm, example_inputs)


class _Compilation:
    """What the forward and the backward graph of one dynamo graph share."""

    def __init__(self, settings: Settings, record: session.ModelRecord):
        self.settings = settings
        self.record = record
        self.parameter_names: set[str] = set()

    def compiler(self, phase: str):
        def compile_graph(gm, example_inputs):
            from torch._functorch.aot_autograd import make_boxed_func

            placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
            if phase != "backward":
                # Backward placeholders that hold saved parameters keep the forward's names.
                self.parameter_names = {placeholders[i].name for i in _static_inputs() if i < len(placeholders)}
            parameters = [i for i, node in enumerate(placeholders) if node.name in self.parameter_names]
            return make_boxed_func(_Callable(gm, self, phase, parameters))

        return compile_graph

    def build(self, gm, phase, parameters) -> CompiledGraph:
        name = f"{self.settings.name}.{phase}" if phase != "inference" else self.settings.name
        graph = CompiledGraph(gm, self.settings, parameters, name=name)
        graph.plan()
        self.record.add(graph, name)
        return graph


def _record_of_call() -> session.ModelRecord:
    """The record of the user's call of torch.compile, which dynamo does not pass on: found up the stack."""
    frame = sys._getframe()
    while frame is not None:
        owner = frame.f_locals.get("self")
        if type(owner).__name__ == "_TorchCompileWrapper":
            if not hasattr(owner, "nearbank_record"):
                owner.nearbank_record = session.ModelRecord()
            return owner.nearbank_record
        frame = frame.f_back
    return session.ModelRecord()


def _static_inputs() -> list[int]:
    """Positions of parameters and buffers among the inputs of the graph being compiled."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return list(metadata.static_input_indices or []) if metadata is not None else []


class _Callable:
    """Runs a compiled graph; one whose shapes are symbolic is compiled once per set of shapes."""

    def __init__(self, gm, compilation: _Compilation, phase: str, parameters: list[int]):
        self._gm = gm
        self._compilation = compilation
        self._phase = phase
        self._parameters = parameters
        self._specialised: dict[tuple, CompiledGraph] = {}
        self._is_symbolic = has_symbols(gm)
        if not self._is_symbolic:
            self._graph = compilation.build(gm, phase, parameters)

    def __call__(self, *arguments):
        self._compilation.record.touch()
        if not self._is_symbolic:
            return self._graph.run(arguments)
        tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        key = tuple(
            (tuple(a.shape), tuple(a.stride()), a.dtype) if isinstance(a, torch.Tensor) else a for a in arguments
        )
        if key not in self._specialised:
            self._specialised[key] = self._specialise(arguments)
        return self._specialised[key].run(tensors)

    def _specialise(self, arguments) -> CompiledGraph:
        positions = [i for i, argument in enumerate(arguments) if isinstance(argument, torch.Tensor)]
        parameters = [new for new, old in enumerate(positions) if old in set(self._parameters)]
        with torch.no_grad():
            static = specialise(self._gm, arguments)
        return self._compilation.build(static, self._phase, parameters)
