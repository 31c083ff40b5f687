# SPDX-License-Identifier: Apache-2.0
"""Brings an ATen graph into the form that the importer takes: tensors in, distinct tensors out, nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten

# Checks of what tracing has established already; they have no result.
_CHECKS = {
    aten._assert_tensor_metadata.default,
    aten._assert_scalar.default,
    aten._assert_async.msg,
    aten._assert_async.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
    torch._check,
}


@dataclass(frozen=True)
class FixedOutput:
    """An output known at compile time: None (no gradient), or a Python number."""

    value: Any


@dataclass(frozen=True)
class InputOutput:
    """An output that is the argument `index` itself."""

    index: int


@dataclass(frozen=True)
class TensorOutput:
    """Output `index` of the normalised graph, with the strides that tracing promised."""

    index: int
    strides: tuple[int, ...]


@dataclass
class NormalGraph:
    """A graph whose placeholders and outputs are tensors, and how to get the original's outputs back.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        The normalised copy.
    constants : list of torch.Tensor
        Tensors that the graph held as attributes; they are its last placeholders.
    outputs : list of FixedOutput, InputOutput or TensorOutput
        One entry per output of the original graph.
    """

    graph_module: fx.GraphModule
    constants: list[torch.Tensor] = field(default_factory=list)
    outputs: list[FixedOutput | InputOutput | TensorOutput] = field(default_factory=list)

    def restore(self, arguments, results) -> list[Any]:
        """Put the outputs of the original graph together.

        Parameters
        ----------
        arguments : sequence of torch.Tensor
            Arguments of the call.
        results : sequence of torch.Tensor
            Results of the normalised graph.

        Returns
        -------
        list
            Tensors, numbers and None, as the original graph returns them.
        """
        restored = []
        for output in self.outputs:
            if isinstance(output, FixedOutput):
                restored.append(output.value)
            elif isinstance(output, InputOutput):
                restored.append(arguments[output.index])
            else:
                restored.append(with_strides(results[output.index], output.strides))
        return restored


def with_strides(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Return `tensor` in the memory layout `strides`; AOTAutograd rebuilds views of outputs from that layout.

    Parameters
    ----------
    tensor : torch.Tensor
        Any tensor.
    strides : tuple of int
        Strides in elements; layouts that overlap (expanded dimensions) are not reproduced.

    Returns
    -------
    torch.Tensor
        `tensor` itself where the layout fits, else a copy.
    """
    if not strides or tensor.stride() == strides or _overlaps(tensor.shape, strides):
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)


def _overlaps(shape, strides) -> bool:
    extent = 1
    for size, stride in sorted(((n, s) for n, s in zip(shape, strides, strict=True) if n > 1), key=lambda p: p[1]):
        if stride < extent:
            return True
        extent = stride * (size - 1) + 1
    return False


def has_symbols(gm: fx.GraphModule) -> bool:
    """Say whether a graph takes symbolic integers or tensors of symbolic shape.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        ATen graph with ``meta["val"]``.

    Returns
    -------
    bool
        True when it must be specialised before `normalize`.
    """
    for node in gm.graph.nodes:
        if node.op != "placeholder":
            continue
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)):
            return True
        if isinstance(value, torch.Tensor) and not is_static(value):
            return True
    return False


def is_static(tensor: torch.Tensor) -> bool:
    """Say whether all sizes of a (fake) tensor are plain integers.

    Parameters
    ----------
    tensor : torch.Tensor
        Real or fake tensor.

    Returns
    -------
    bool
        False where a size is symbolic.
    """
    return all(isinstance(size, int) for size in tensor.shape)


def specialise(gm: fx.GraphModule, arguments) -> fx.GraphModule:
    """Trace a graph with symbolic shapes again for the shapes and numbers of one call.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        ATen graph; may take symbolic integers.
    arguments : sequence
        Tensors and numbers of the call.

    Returns
    -------
    torch.fx.GraphModule
        Static ATen graph that takes the tensors only, in the same order.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx import traceback
    from torch.fx.experimental.proxy_tensor import make_fx

    positions = [i for i, argument in enumerate(arguments) if isinstance(argument, torch.Tensor)]
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(arguments[i].detach(), static_shapes=True) for i in positions]

    def call(*tensors):
        values = list(arguments)
        for position, tensor in zip(positions, tensors, strict=True):
            values[position] = tensor
        # The placeholders' own values still have symbols.
        with traceback.preserve_node_meta():
            return fx.Interpreter(gm).run(*values, enable_io_processing=False)

    with mode:
        static = make_fx(call, tracing_mode="real", _allow_non_fake_inputs=True)(*fakes)
    names = [node.name for node in gm.graph.nodes if node.op == "placeholder"]
    placeholders = [node for node in static.graph.nodes if node.op == "placeholder"]
    for position, node in zip(positions, placeholders, strict=True):
        node.meta["nearbank_name"] = names[position]
    return static


def normalize(gm: fx.GraphModule) -> NormalGraph:
    """Bring a static ATen graph into the form that the importer takes.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        ATen graph of static shapes; stays as it is.

    Returns
    -------
    NormalGraph
        A changed copy and what restores the original's outputs.
    """
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    output_args = graph.graph_copy(gm.graph, copies)
    graph.output(output_args if isinstance(output_args, (tuple, list)) else (output_args,))
    # Not deepcopy: that fails under fake tensors when the graph holds tensor constants.
    result = NormalGraph(fx.GraphModule(gm, graph))
    _erase_checks(graph)
    _drop_empty_cat_operands(graph)
    _rewrite_as_strided(graph)
    num_arguments = sum(node.op == "placeholder" for node in graph.nodes)
    result.constants = _lift_constants(result.graph_module)
    result.outputs = _distinct_outputs(graph, num_arguments)
    graph.eliminate_dead_code()
    graph.lint()
    result.graph_module.recompile()
    return result


def _erase_checks(graph: fx.Graph) -> None:
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and node.target in _CHECKS and not node.users:
            graph.erase_node(node)


def _drop_empty_cat_operands(graph: fx.Graph) -> None:
    """Concatenation with an empty tensor, as key-value caches begin, is a concatenation of the rest."""
    for node in graph.nodes:
        if node.op != "call_function" or node.target is not aten.cat.default:
            continue
        operands = [operand for operand in node.args[0] if operand.meta["val"].numel() != 0]
        if 0 < len(operands) < len(node.args[0]) and all(
            operand.meta["val"].dtype == node.meta["val"].dtype for operand in operands
        ):
            node.args = (operands, *node.args[1:])


def _rewrite_as_strided(graph: fx.Graph) -> None:
    """Read strided views by index; done here so that the index tensors become arguments, not text."""
    views = [node for node in graph.nodes if node.target is aten.as_strided.default]
    if not views:
        return
    from torch_mlir.extras.fx_as_strided import rewrite_as_strided

    origins = {node.name: dict(node.meta) for node in views}
    try:
        rewrite_as_strided(graph)
    except ValueError:
        # A view whose storage cannot be traced back stays, and runs in eager PyTorch.
        return
    for node in graph.nodes:
        if node.name in origins:
            node.meta = {**origins[node.name], **node.meta}


def _lift_constants(gm: fx.GraphModule) -> list[torch.Tensor]:
    """Turn tensor attributes into arguments, so that no weight becomes text."""
    graph = gm.graph
    last = None
    for node in graph.nodes:
        if node.op == "placeholder":
            last = node
    constants, by_target = [], {}
    for node in list(graph.nodes):
        if node.op != "get_attr":
            continue
        value = _attribute(gm, node.target)
        if not isinstance(value, torch.Tensor):
            continue
        if node.target not in by_target:
            position = graph.inserting_after(last) if last is not None else graph.inserting_before(_first(graph))
            with position:
                last = graph.placeholder("constant_" + node.name)
            last.meta = {"val": _fake_like(graph, value)}
            by_target[node.target] = last
            constants.append(value)
        node.replace_all_uses_with(by_target[node.target])
        graph.erase_node(node)
    return constants


def _first(graph: fx.Graph) -> fx.Node:
    return next(iter(graph.nodes))


def _attribute(gm, target: str):
    value = gm
    for part in target.split("."):
        value = getattr(value, part)
    return value


def _fake_like(graph: fx.Graph, value: torch.Tensor):
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    fakes = (node.meta.get("val") for node in graph.nodes)
    mode = next((fake.fake_mode for fake in fakes if isinstance(fake, FakeTensor)), None) or FakeTensorMode()
    return value if isinstance(value, FakeTensor) else mode.from_tensor(value, static_shapes=True)


def _distinct_outputs(graph: fx.Graph, num_arguments: int):
    output = next(node for node in reversed(graph.nodes) if node.op == "output")
    places = {node: i for i, node in enumerate(n for n in graph.nodes if n.op == "placeholder")}
    numbers: dict[fx.Node, int] = {}
    outputs: list[FixedOutput | InputOutput | TensorOutput] = []
    for value in output.args[0]:
        if not isinstance(value, fx.Node):
            outputs.append(FixedOutput(value))
        elif value in places and places[value] < num_arguments:
            outputs.append(InputOutput(places[value]))
        elif isinstance(value.meta.get("val"), (int, float, bool)):
            outputs.append(FixedOutput(value.meta["val"]))
        else:
            fake = value.meta.get("val")
            has_layout = isinstance(fake, torch.Tensor) and is_static(fake) and fake.layout == torch.strided
            strides = tuple(fake.stride()) if has_layout else ()
            outputs.append(TensorOutput(numbers.setdefault(value, len(numbers)), strides))
    output.args = (tuple(numbers),)
    return outputs
