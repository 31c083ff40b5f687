# SPDX-License-Identifier: Apache-2.0
"""Splits a graph into pieces that compile and pieces that run in eager PyTorch, as few and as large as possible."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

import torch
from torch import fx

from nearbank.fixups import is_static
from nearbank.importer import ImportFailure, import_graph, import_graphs
from nearbank.locations import op_name, source_of

aten = torch.ops.aten

#: Rounds of import, blame and split; each round takes at least one more operator out.
_MAX_ROUNDS = 6
_DTYPES = {
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
}
# Operators that move no data and compute nothing; a piece of only these is not worth a program.
_VIEWS = {
    "aten.view",
    "aten._unsafe_view",
    "aten.reshape",
    "aten.permute",
    "aten.transpose",
    "aten.t",
    "aten.expand",
    "aten.squeeze",
    "aten.unsqueeze",
    "aten.select",
    "aten.slice",
    "aten.alias",
    "aten.detach",
    "aten.split",
    "aten.split_with_sizes",
    "aten.unbind",
    "getitem",
}
# MLIR's integers carry no sign, and the importer widens uint8 with one. Compiled are only operators on bytes whose
# result is the same bits with and without a sign; everything else on uint8 stays in eager.
_SIGN_FREE = _VIEWS | {
    "aten.bitwise_and",
    "aten.bitwise_or",
    "aten.bitwise_xor",
    "aten.bitwise_not",
    "aten.eq",
    "aten.ne",
    "aten.where",
    "aten.clone",
    "aten.cat",
}
# node signature -> reason why it cannot be imported alone ("" when it can). Shared by all graphs of the process.
_probe_cache: dict[tuple, str] = {}
# Signatures that went through the compiler alone, too.
_compiled_alone: set[tuple] = set()


class Refused(Exception):
    """The compiler cannot take a piece; the text says why."""


@dataclass(frozen=True)
class EagerOp:
    """An operator that runs in eager PyTorch; one entry of ``eagerOps`` in the run document."""

    op: str
    source: str
    reason: str
    kind: str

    def to_dict(self) -> dict[str, str]:
        """Return the entry for the run document."""
        return {"op": self.op, "source": self.source, "reason": self.reason, "kind": self.kind}


@dataclass
class Piece:
    """A part of a graph.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        The piece; takes `inputs`, returns a tuple of `outputs`.
    inputs, outputs : list of str
        Names of values of the whole graph.
    text : str or None
        MLIR text; None when the piece runs in eager PyTorch.
    program : object
        What the compile function of `split` returned for it.
    """

    graph_module: fx.GraphModule
    inputs: list[str]
    outputs: list[str]
    text: str | None = None
    program: object = None


@dataclass
class SplitGraph:
    """Pieces in order of execution, and the operators that run in eager PyTorch."""

    pieces: list[Piece] = field(default_factory=list)
    eager_ops: list[EagerOp] = field(default_factory=list)
    sources: list = field(default_factory=list)


def split(gm: fx.GraphModule, compile_piece=None) -> SplitGraph:
    """Split a normalised graph into compiled and eager pieces.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        As `nearbank.fixups.normalize` returns it.
    compile_piece : callable, optional
        Compiles a `Piece` with its text; raises `Refused` when the compiler cannot take it.

    Returns
    -------
    SplitGraph
        Compiled pieces carry their MLIR text.
    """
    reasons = {node: reason for node in gm.graph.nodes if (reason := _screen(node))}
    for _ in range(_MAX_ROUNDS):
        pieces, nodes_of = _cut(gm, reasons)
        todo = [i for i, piece in enumerate(pieces) if nodes_of[i] is not None]
        results = import_graphs([pieces[i].graph_module for i in todo])
        failures = {i: failure for i, result in zip(todo, results, strict=True) if (failure := result.failure)}
        for i, result in zip(todo, results, strict=True):
            pieces[i].text = result.text
        # Compiled only once nothing has to be cut again.
        if not failures and compile_piece is not None:
            failures = _compile(pieces, compile_piece)
        for i, failure in failures.items():
            reasons.update(_blame(pieces[i].graph_module, nodes_of[i], failure, compile_piece))
        failed = bool(failures)
        if not failed:
            break
    else:
        raise AssertionError("splitting did not converge")
    return SplitGraph(pieces, *_remark(gm, reasons))


def _compile(pieces, compile_piece) -> dict[int, ImportFailure]:
    for i, piece in enumerate(pieces):
        if piece.text is None:
            continue
        try:
            piece.program = compile_piece(piece)
        except Refused as refusal:
            return {i: ImportFailure("refused", str(refusal))}
    return {}


def _remark(gm, reasons):
    ops, sources = [], []
    for node in gm.graph.nodes:
        if node in reasons and node.target is not operator.getitem:
            kind, reason = reasons[node]
            source = source_of(node)
            ops.append(EagerOp(op_name(node), str(source), reason, kind))
            sources.append(source)
    return ops, sources


def _tensors(value):
    return [item for item in torch.utils._pytree.tree_leaves(value) if isinstance(item, torch.Tensor)]


def _screen(node: fx.Node) -> tuple[str, str] | None:
    """Kind and reason why a node cannot be compiled, as far as that is known without trying."""
    if node.op in ("placeholder", "output", "get_attr"):
        return None
    if node.op != "call_function":
        return "unsupported", f"a graph node of kind {node.op}"
    if node.target is operator.getitem:
        return None
    if not isinstance(node.target, torch._ops.OpOverload):
        return "unsupported", "not an ATen operator"
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return "random", "random numbers come from PyTorch's generator"
    values = [node.meta.get("val"), *[n.meta.get("val") for n in node.all_input_nodes]]
    if any(isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)) for value in values):
        return "unsupported", "it computes with a number that is known only at run time"
    tensors = _tensors(values)
    if node.meta.get("val") is None or not tensors:
        return "unsupported", "it returns no tensor"
    if any(tensor.dtype == torch.uint8 for tensor in tensors):
        is_bytes = all(tensor.dtype in (torch.uint8, torch.bool) for tensor in tensors)
        if not is_bytes or op_name(node) not in _SIGN_FREE:
            return "unsupported", "arithmetic on uint8, which the importer takes for signed"
    return _screen_tensors(tensors)


def _screen_tensors(tensors) -> tuple[str, str] | None:
    for tensor in tensors:
        if not is_static(tensor):
            return "unsupported", "its shape depends on the data"
        if tensor.layout != torch.strided:
            return "unsupported", f"layout {tensor.layout}"
        if tensor.is_complex():
            return "unsupported", "complex numbers"
        if tensor.dtype not in _DTYPES:
            return "unsupported", f"element type {str(tensor.dtype).removeprefix('torch.')}"
        if tensor.numel() == 0:
            return "unsupported", "an empty tensor"
        if tensor.device.type not in ("cpu", "meta"):
            return "unsupported", f"a tensor on device {tensor.device}"
    return None


def _cut(gm, reasons):
    """Group nodes by level: the number of changes between compiled and eager on the longest path to a node."""
    levels: dict[fx.Node, int] = {}
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        if node.target is operator.getitem and node.args[0] in levels:
            levels[node] = levels[node.args[0]]
            if node.args[0] in reasons:
                reasons.setdefault(node, reasons[node.args[0]])
            continue
        # Eager pieces have even levels, compiled ones odd levels.
        parity = 0 if node in reasons else 1
        level = max((levels.get(n, 0) for n in node.all_input_nodes), default=0)
        levels[node] = level if level % 2 == parity else level + 1
    pieces, nodes_of = [], []
    for level in sorted(set(levels.values())):
        nodes = [node for node in gm.graph.nodes if levels.get(node) == level]
        pieces.append(_extract(gm, nodes))
        is_compiled = level % 2 == 1 and any(op_name(node) not in _VIEWS for node in nodes)
        nodes_of.append(nodes if is_compiled else None)
    return pieces, nodes_of


def _extract(gm, nodes) -> Piece:
    graph, inside, copies = fx.Graph(), set(nodes), {}
    inputs = []
    for node in nodes:
        for operand in node.all_input_nodes:
            if operand in inside or operand in copies:
                continue
            if operand.op == "get_attr":
                copies[operand] = None
                continue
            copies[operand] = graph.placeholder(operand.name)
            copies[operand].meta = dict(operand.meta)
            inputs.append(operand.name)
    for operand in [n for n, copy in copies.items() if copy is None]:
        copies[operand] = graph.node_copy(operand)
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    outputs = [node for node in outputs if not isinstance(node.meta.get("val"), (tuple, list)) or node.op == "output"]
    graph.output(tuple(copies[node] for node in outputs))
    return Piece(fx.GraphModule(gm, graph), inputs, [node.name for node in outputs])


def _blame(piece: fx.GraphModule, nodes, failure: ImportFailure, compile_piece) -> dict:
    """Find the nodes that cannot be imported: each distinct one alone, else by the diagnostics, else all."""
    blamed = {}
    _probe(nodes, compile_piece if failure.kind == "refused" else None)
    for node in nodes:
        reason = _probe_cache.get(_signature(node), "")
        if reason:
            kind = "crash" if "crashed" in reason else "unsupported"
            blamed[node] = (kind, reason)
    if blamed:
        return blamed
    if failure.kind == "error":
        located = import_graph(piece, node_locations=True).failure
        names = set(located.nodes) if located else set()
        blamed = {node: ("unsupported", failure.message) for node in nodes if node.name in names}
    kind = "crash" if failure.kind in ("crash", "timeout") else "unsupported"
    return blamed or dict.fromkeys(nodes, (kind, failure.message))


def _signature(node: fx.Node) -> tuple:
    def key(argument):
        if isinstance(argument, fx.Node):
            value = argument.meta.get("val")
            return ("tensor", tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else ("value",)
        if isinstance(argument, (list, tuple)):
            return tuple(key(item) for item in argument)
        return (type(argument).__name__, str(argument))

    kwargs = tuple((name, key(value)) for name, value in sorted(node.kwargs.items()))
    return (str(node.target), key(node.args), kwargs)


def _probe(nodes, compile_piece) -> None:
    """Import, and compile where that failed, each distinct node alone, unless that was tried before."""
    todo = {}
    for node in nodes:
        is_known = _signature(node) in _probe_cache and (compile_piece is None or _signature(node) in _compiled_alone)
        if node.target is not operator.getitem and not is_known:
            todo.setdefault(_signature(node), node)
    graphs = [_single(node) for node in todo.values()]
    for signature, graph, result in zip(todo, graphs, import_graphs(graphs), strict=True):
        _probe_cache[signature] = result.failure.message if result.failure else ""
        if compile_piece is None or result.failure:
            continue
        _compiled_alone.add(signature)
        inputs = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
        try:
            compile_piece(Piece(graph, inputs, [], result.text))
        except Refused as refusal:
            _probe_cache[signature] = str(refusal)


def _single(node: fx.Node) -> fx.GraphModule:
    graph = fx.Graph()
    copies = {}
    for operand in node.all_input_nodes:
        copies[operand] = graph.placeholder(operand.name)
        copies[operand].meta = dict(operand.meta)
    copy = graph.node_copy(node, lambda n: copies[n])
    value = node.meta["val"]
    if isinstance(value, torch.Tensor):
        graph.output((copy,))
        return fx.GraphModule({}, graph)
    parts = []
    for i, part in enumerate(value):
        if isinstance(part, torch.Tensor):
            parts.append(graph.call_function(operator.getitem, (copy, i)))
            parts[-1].meta = {"val": part}
    graph.output(tuple(parts))
    return fx.GraphModule({}, graph)
