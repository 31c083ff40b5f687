# SPDX-License-Identifier: Apache-2.0
"""Finds and builds the model that SPEC names: a built-in, hf:DIR, file.py:function, or a module given from Python."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from typing import Any

from nearbank import large_models
from nearbank.errors import make_error, nearest, unknown_name

#: Names of the built-in models; `nearbank.models` builds them.
BUILT_IN_NAMES = ("minilm", "mlp", "mlp-train", "block-train", "attention", "llama-tiny", "gptj-tiny")
#: The single operators; `nearbank.operators` builds them.
OPERATOR_NAMES = (
    "op:add",
    "op:broadcast-add",
    "op:gelu",
    "op:sum",
    "op:max",
    "op:softmax",
    "op:layer-norm",
    "op:rms-norm",
    "op:gemv",
    "op:gemm-small",
    "op:gemm-large",
    "op:batched-matmul",
    "op:transpose",
    "op:concat",
    "op:cumsum",
    "op:embedding",
    "op:gather",
    "op:index-add",
    "op:conv2d",
    "op:max-pool",
)
#: All names that need no file: the small models and those of `nearbank.large_models`.
NAMES = (*BUILT_IN_NAMES, *OPERATOR_NAMES, *large_models.NAMES)
DTYPES = ("f32", "bf16", "f16", "f64")


@dataclass
class Model:
    """A model ready to be captured.

    Parameters
    ----------
    name : str
        As the user wrote it, or the class of the module.
    module : torch.nn.Module
        The module.
    example_inputs : tuple, list, dict or torch.Tensor
        Its inputs.
    training : bool
        Whether loss and gradients are compiled.
    """

    name: str
    module: Any
    example_inputs: Any
    training: bool


def load(
    spec,
    example_inputs=None,
    *,
    batch: int | None = None,
    dtype: str | None = None,
    train=None,
    size: large_models.Size | None = None,
    execute: bool = False,
) -> Model:
    """Build the model that `spec` names.

    Parameters
    ----------
    spec : str or torch.nn.Module
        Built-in name, ``file.py:function``, or a module.
    example_inputs : tuple of torch.Tensor, optional
        Inputs, when `spec` is a module.
    batch : int, optional
        Batch size of a built-in model.
    dtype : {"f32", "bf16", "f16", "f64"}, optional
        Cast floating-point parameters and inputs.
    train : bool, optional
        Compile loss and gradients; by default the module's attribute ``nearbank_train``.
    size : nearbank.large_models.Size, optional
        Tokens, layers and weights of a full-size model.
    execute : bool, default False
        The model will run, so a full-size model gets weights.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    nearbank.errors.UserError
        NB0201 not found, NB0202 not a module with its inputs, NB0208 value that is not valid, NB0211 the function
        raised, NB0212 Hugging Face folder that cannot be used, NB0213 weights that do not fit in memory.
    """
    if dtype is not None and dtype not in DTYPES:
        raise unknown_name("user", "NB0208", "value is not valid for this option", dtype, DTYPES, where="option dtype")
    if large_models.is_large(spec):
        blueprint = large_models.blueprint(spec, size or large_models.Size(), batch, dtype, execute)
        return Model(spec, *large_models.build(blueprint), bool(train))
    if size is not None and size.given():
        option = size.given()[0]
        raise make_error(
            "user",
            "NB0208",
            "value is not valid for this option",
            where=f"option {option}",
            expected=f"a full-size model ({', '.join(large_models.NAMES)} or hf:DIR) beside it",
            actual=spec if isinstance(spec, str) else type(spec).__name__,
        )
    if not isinstance(spec, str):
        name, module, inputs = type(spec).__name__, spec, example_inputs
        _check_pair(name, (module, inputs))
    elif spec in BUILT_IN_NAMES or spec in OPERATOR_NAMES:
        from nearbank import models

        name, (module, inputs) = spec, models.build(spec, batch)
    else:
        name, (module, inputs) = spec, _from_file(spec)
    if isinstance(spec, str) and spec not in BUILT_IN_NAMES and batch is not None:
        raise make_error(
            "user",
            "NB0208",
            "value is not valid for this option",
            where="option batch",
            expected="a built-in model; the function of a file chooses its own batch",
            actual=str(batch),
        )
    module, inputs = _cast(module, inputs, dtype)
    training = bool(getattr(module, "nearbank_train", False)) if not train else True
    return Model(name, module, inputs, training)


def _cast(module, inputs, dtype):
    if dtype is None:
        return module, inputs
    import torch
    from torch.utils import _pytree as pytree

    kind = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}[dtype]

    def cast(leaf):
        return leaf.to(kind) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    return module.to(kind), pytree.tree_map(cast, inputs)


def _from_file(spec: str):
    path, separator, function = spec.rpartition(":")
    if not separator or not path or path == "op":
        close = nearest(spec, NAMES)
        fix = f"did you mean {close!r}?" if close else "write file.py:function, or one of the built-in names"
        shown = OPERATOR_NAMES if path == "op" else (*BUILT_IN_NAMES, "op:NAME", *large_models.NAMES)
        raise _not_found(spec, f"one of: {', '.join(shown)}; hf:DIR; or file.py:function", fix)
    if not os.path.isfile(path):
        close = _nearest_file(path)
        fix = f"did you mean {close}:{function}?" if close else "check the path"
        raise _not_found(path, "an existing Python file", fix, actual="no such file")
    module = _import_file(path, spec)
    make = getattr(module, function, None)
    if not callable(make):
        names = [
            name for name, value in vars(module).items() if callable(value) and value.__module__ == module.__name__
        ]
        raise unknown_name(
            "user",
            "NB0201",
            "the model cannot be found",
            function,
            names,
            where=path,
            remedy="define a function that returns (module, example_inputs)",
        )
    pair = _call(make, spec)
    _check_pair(spec, pair)
    return pair


def _not_found(where, expected, fix, actual=""):
    return make_error(
        "user", "NB0201", "the model cannot be found", where=where, expected=expected, actual=actual, fix=fix
    )


def _nearest_file(path: str) -> str:
    folder = os.path.dirname(path) or "."
    try:
        files = [name for name in os.listdir(folder) if name.endswith(".py")]
    except OSError:
        return ""
    close = nearest(os.path.basename(path), files)
    return os.path.join(os.path.dirname(path), close) if close else ""


def _import_file(path: str, spec: str):
    path = os.path.abspath(path)
    name = "nearbank_spec_" + "".join(c if c.isalnum() else "_" for c in os.path.splitext(os.path.basename(path))[0])
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise _not_found(path, "a Python file", "give the file the ending .py", actual="not a Python file")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    _call(lambda: found.loader.exec_module(module), spec)
    return module


def _call(function, spec: str):
    """Run the user's code; what it raises keeps its traceback."""
    try:
        return function()
    except Exception as error:
        import traceback

        frames = traceback.extract_tb(error.__traceback__)
        user = [frame for frame in frames if frame.filename != __file__ and not frame.filename.startswith("<")]
        place = f"{user[-1].filename}:{user[-1].lineno}" if user else spec
        raise make_error(
            "user",
            "NB0211",
            "the model's own code raised an exception",
            where=place,
            actual="".join(traceback.format_exception(error.with_traceback(_skip_own(error)))).rstrip(),
            fix="run the function alone in Python until it returns (module, example_inputs)",
        ) from error


def _skip_own(error):
    frame = error.__traceback__
    while frame is not None and (
        frame.tb_frame.f_code.co_filename == __file__ or frame.tb_frame.f_code.co_filename.startswith("<frozen")
    ):
        frame = frame.tb_next
    return frame


def _check_pair(name: str, pair) -> None:
    import torch

    is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], torch.nn.Module)
    if is_pair and isinstance(pair[1], (tuple, list, dict, torch.Tensor)):
        return
    if isinstance(pair, (tuple, list)):
        actual = f"({', '.join(type(item).__name__ for item in pair)})"
    else:
        actual = type(pair).__name__
    raise make_error(
        "user",
        "NB0202",
        "the function does not return a module and its inputs",
        where=name,
        expected="(module, example_inputs): a torch.nn.Module and a tuple of tensors",
        actual=actual,
        fix="return both, for example: return model, (torch.randn(1, 8),)",
    )
