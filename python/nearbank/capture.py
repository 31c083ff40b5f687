# SPDX-License-Identifier: Apache-2.0
"""Captures a module, forward or forward and backward, as one flat ATen graph with every tensor an argument."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from nearbank.decompositions import decomposition_table, math_attention
from nearbank.eager import EagerModel
from nearbank.errors import make_error
from nearbank.fixups import is_static
from nearbank.locations import ROOT_NAME, source_of


@dataclass
class CapturedModel:
    """A model as a flat ATen graph.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        Placeholders are parameters, buffers, then the flattened tensor inputs; outputs are `output_names`.
    arguments : list of torch.Tensor
        One tensor per placeholder; on the meta device where the module is.
    parameters : list of int
        Placeholders that hold parameters or buffers.
    argument_names : list of str
        Qualified parameter names, and ``input0``, ``input1``, …
    output_names : list of str
        ``output0``…, ``grad of NAME``, ``new value of NAME`` (mutated buffers), in the graph's order.
    reference : callable
        ``reference(dtype)`` returns an `EagerModel` with floats in `dtype` (None: as they are).
    training : bool
        The graph computes gradients.
    """

    graph_module: torch.fx.GraphModule
    arguments: list[torch.Tensor]
    parameters: list[int]
    argument_names: list[str]
    output_names: list[str]
    reference: Callable[[Any], EagerModel]
    training: bool
    is_meta: bool = field(default=False)


class _Flat(nn.Module):
    """Gives a module flat tensor arguments and a flat tuple of tensors as result."""

    def __init__(self, module: nn.Module, spec, static_leaves):
        super().__init__()
        setattr(self, ROOT_NAME, module)

        def arrange(tensors):
            remaining = iter(tensors)
            leaves = [next(remaining) if leaf is None else leaf[0] for leaf in static_leaves]
            return pytree.tree_unflatten(leaves, spec)

        self.arrange = arrange

    def forward(self, *tensors):
        args, kwargs = self.arrange(tensors)
        result = getattr(self, ROOT_NAME)(*args, **kwargs)
        return tuple(leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor))


def capture(module: nn.Module, example_inputs, *, training: bool = False) -> CapturedModel:
    """Capture a module for `plan` and `run`.

    Parameters
    ----------
    module : torch.nn.Module
        Any module that torch.export accepts; may be on the meta device, weights are then never created.
    example_inputs : tuple, list, dict or torch.Tensor
        Positional arguments, keyword arguments (dict), or a single tensor.
    training : bool, default False
        Capture loss and gradients of all parameters; the module's first output is then the scalar loss. With an
        attribute ``nearbank_optimizer`` of "adam" the module's graph goes on to the updated parameters.

    Returns
    -------
    CapturedModel
        The ATen graph and what belongs to it.

    Raises
    ------
    nearbank.errors.UserError
        NB0205 when the module cannot be captured with static shapes, NB0206 when a training module has no scalar loss.
    """
    flat, tensors = _flatten(module, example_inputs)
    exported = _export(flat, tensors, training)
    graph_module, arguments, names, num_state = _state_as_arguments(exported, tensors)
    is_meta = any(argument.is_meta for argument in arguments)
    joint, output_names = _trace(graph_module, arguments, names, num_state, training)
    moments = None
    if training and getattr(module, "nearbank_optimizer", None):
        from nearbank.training_step import append_adam

        joint, moments = append_adam(joint, arguments, names, output_names)
        arguments, names = [*arguments, *moments.first, *moments.second], [*names, *moments.argument_names]
        output_names = [n for n in output_names if not n.startswith("grad of ")] + moments.output_names
        # A step changes parameters: nothing that depends on them is the same in all steps.
        num_state = 0
    return CapturedModel(
        graph_module=joint,
        arguments=arguments,
        parameters=list(range(num_state)),
        argument_names=names,
        output_names=output_names,
        reference=lambda dtype: EagerModel(flat, tensors, output_names, training, dtype, moments),
        training=training,
        is_meta=is_meta,
    )


def _flatten(module, example_inputs):
    if isinstance(example_inputs, torch.Tensor):
        example_inputs = (example_inputs,)
    args, kwargs = ((), dict(example_inputs)) if isinstance(example_inputs, dict) else (tuple(example_inputs), {})
    leaves, spec = pytree.tree_flatten((args, kwargs))
    tensors = tuple(leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor))
    static = [None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves]
    return _Flat(module, spec, static).train(module.training), tensors


def _export(flat, tensors, training):
    try:
        with math_attention(), warnings.catch_warnings():
            # torch.export copies its own tree specs in a way that it warns about.
            warnings.simplefilter("ignore", FutureWarning)
            exported = torch.export.export(flat, tensors, strict=False).module(check_guards=False)
    except Exception as error:
        where = _innermost_user_frame(error, getattr(flat, ROOT_NAME))
        raise _not_static(where, f"{type(error).__name__}: {_first_line(error)}") from error
    for node in exported.graph.nodes:
        if any(not is_static(leaf) for leaf in pytree.tree_leaves(node.meta.get("val")) if torch.is_tensor(leaf)):
            source = source_of(node)
            raise _not_static(f"{source.file}:{source.line}", f"the shape of {source.torch_op} depends on the data")
    return exported


def _not_static(where: str, actual: str):
    return make_error(
        "user",
        "NB0205",
        "the model cannot be captured with static shapes",
        where=where,
        expected="a model whose control flow and shapes do not depend on the values of tensors",
        actual=actual,
        fix='use torch.compile(model, backend="nearbank"), which leaves such parts to eager, or rewrite this line',
    )


def _first_line(error) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:200]


def _innermost_user_frame(error, module) -> str:
    import traceback

    from nearbank.locations import is_framework_file

    frames = [f for f in traceback.extract_tb(error.__traceback__) if not is_framework_file(f.filename)]
    frames = [f for f in frames if not f.filename.startswith("<") and f.filename != __file__]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else type(module).__name__


def _state_as_arguments(exported, tensors):
    parameters = dict(exported.named_parameters(remove_duplicate=False))
    buffers = dict(exported.named_buffers(remove_duplicate=False))
    state = {**parameters, **buffers}
    prefix = ROOT_NAME + "."
    names = [name.removeprefix(prefix) for name in state] + [f"input{i}" for i in range(len(tensors))]
    return exported, [*state.values(), *tensors], names, len(state)


def _trace(graph_module, arguments, names, num_state, training):
    from torch._functorch import aot_autograd
    from torch._functorch._aot_autograd.graph_capture_wrappers import create_functional_call

    state = {
        **dict(graph_module.named_parameters(remove_duplicate=False)),
        **dict(graph_module.named_buffers(remove_duplicate=False)),
    }
    _, spec = pytree.tree_flatten(state)
    call = create_functional_call(graph_module, spec, num_state, store_orig_mod=True)

    def forward(*args):
        outputs = call(*args)
        if not training:
            return outputs
        return (outputs[0], *(output.detach() for output in outputs[1:]))

    if training:
        loss = next(node for node in graph_module.graph.nodes if node.op == "output").args[0][0].meta["val"]
        if loss.numel() != 1 or not loss.is_floating_point():
            raise make_error(
                "user",
                "NB0206",
                "a model under training returns its scalar loss first",
                where="the module's forward",
                expected="a floating-point tensor with one element as first output",
                actual=f"shape {tuple(loss.shape)}, {loss.dtype}",
                fix="wrap the model and its loss in one module, or plan it without --train",
            )
    with math_attention(), torch.set_grad_enabled(training):
        joint, metadata, _, _ = aot_autograd._aot_export_function(
            forward,
            tuple(arguments),
            decompositions=decomposition_table(),
            num_params_buffers=num_state,
            no_tangents=True,
            trace_joint=training,
        )
    return _flat_outputs(joint, metadata, names, arguments)


def _remove_effect_tokens(graph, count: int) -> int:
    """Call operators with side effects directly; the graph's order already is the order of effects."""
    for node in list(graph.nodes):
        if node.target is not torch.ops.higher_order.with_effects:
            continue
        token, operator, *args = node.args
        with graph.inserting_before(node):
            call = graph.call_function(operator, tuple(args), node.kwargs)
        call.meta = {**node.meta, "val": node.meta["val"][1:] if len(node.meta["val"]) > 2 else node.meta["val"][-1]}
        for user in list(node.users):
            user.replace_all_uses_with(token if user.args[1] == 0 else call)
            graph.erase_node(user)
        graph.erase_node(node)
    return count


def _flat_outputs(joint, metadata, names, arguments):
    """Drop tangents and None outputs; name what is left."""
    graph = joint.graph
    tokens = _remove_effect_tokens(graph, len(metadata.tokens))
    output = next(node for node in graph.nodes if node.op == "output")
    values = pytree.tree_leaves(list(output.args), is_leaf=lambda leaf: leaf is None)
    mutated = [i for i, info in enumerate(metadata.input_info) if info.mutates_data]
    num_outputs = len(metadata.output_info)
    labels = [f"new value of {names[i]}" for i in mutated]
    labels += [f"output{i}" for i in range(num_outputs)]
    labels += [f"grad of {name}" for name in names]
    kept = [(label, value) for label, value in zip(labels, values[tokens:], strict=False) if value is not None]
    output.args = (tuple(value for _, value in kept),)
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for node in placeholders[:tokens] + placeholders[tokens + len(arguments) :]:
        graph.erase_node(node)
    graph.set_codegen(torch.fx.graph.CodeGen())
    _create_on_cpu(graph)
    graph.eliminate_dead_code()
    joint.recompile()
    return joint, [label for label, _ in kept]


def _create_on_cpu(graph) -> None:
    """Let operators that make a tensor make it on the CPU; a model without weights made it on the meta device."""
    for node in graph.nodes:
        if node.kwargs.get("device") == torch.device("meta"):
            node.kwargs = {**node.kwargs, "device": torch.device("cpu")}
