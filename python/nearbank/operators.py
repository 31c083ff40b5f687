# SPDX-License-Identifier: Apache-2.0
"""Single tensor operators of sizes that real models have: the built-ins ``op:NAME``."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

#: Elements of a row, and rows, of the large operands: 64 MiB in f32, far beyond a core's caches.
SIDE = 4096


class Operator(nn.Module):
    """An operator as a module without parameters: everything that it reads is an input.

    Parameters
    ----------
    function : callable
        Of tensors; returns a tensor.
    """

    def __init__(self, function: Callable[..., torch.Tensor]):
        super().__init__()
        self._function = function

    def forward(self, *operands):
        """Return the operator's result."""
        return self._function(*operands)


def _floats(*shapes):
    return lambda: tuple(torch.randn(shape) for shape in shapes)


def _rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def _embedding_inputs():
    return torch.randint(0, 32000, (4096,)), torch.randn(32000, 1024)


def _gather_inputs():
    return torch.randn(SIDE, SIDE), torch.randint(0, SIDE, (SIDE, 1024))


def _index_add_inputs():
    # As many as the compiler turns into selections.
    return torch.randn(1024, 1024), torch.randint(0, 1024, (SIDE,)), torch.randn(SIDE, 1024)


_SQUARE = (SIDE, SIDE)
#: Name to the function and what makes its inputs; all f32.
OPERATORS: dict[str, tuple[Callable[..., torch.Tensor], Callable[[], tuple]]] = {
    "add": (lambda a, b: a + b, _floats(_SQUARE, _SQUARE)),
    "broadcast-add": (lambda a, row: a + row, _floats(_SQUARE, (SIDE,))),
    "gelu": (functional.gelu, _floats(_SQUARE)),
    "sum": (lambda a: a.sum(-1), _floats(_SQUARE)),
    "max": (lambda a: a.amax(-1), _floats(_SQUARE)),
    "softmax": (lambda a: a.softmax(-1), _floats(_SQUARE)),
    "layer-norm": (lambda a, w, b: functional.layer_norm(a, (SIDE,), w, b), _floats(_SQUARE, (SIDE,), (SIDE,))),
    "rms-norm": (_rms_norm, _floats(_SQUARE, (SIDE,))),
    "gemv": (lambda a, x: a @ x, _floats(_SQUARE, (SIDE,))),
    "gemm-small": (lambda a, b: a @ b, _floats((128, 128), (128, 128))),
    "gemm-large": (lambda a, b: a @ b, _floats((1024, 1024), (1024, 1024))),
    "batched-matmul": (lambda a, b: a @ b, _floats((32, 128, 128), (32, 128, 128))),
    "transpose": (lambda a: a.t().contiguous(), _floats(_SQUARE)),
    "concat": (lambda a, b: torch.cat((a, b), 1), _floats((SIDE, SIDE // 2), (SIDE, SIDE // 2))),
    "cumsum": (lambda a: a.cumsum(-1), _floats((SIDE, 1024))),
    "embedding": (functional.embedding, _embedding_inputs),
    "gather": (lambda a, index: a.gather(1, index), _gather_inputs),
    "index-add": (lambda a, index, rows: a.index_add(0, index, rows), _index_add_inputs),
    "conv2d": (lambda x, w: functional.conv2d(x, w, padding=1), _floats((1, 64, 56, 56), (64, 64, 3, 3))),
    "max-pool": (lambda x: functional.max_pool2d(x, 3, 2, 1), _floats((8, 64, 112, 112))),
}


def build(name: str):
    """Create an operator.

    Parameters
    ----------
    name : str
        A key of `OPERATORS`.

    Returns
    -------
    tuple of (torch.nn.Module, tuple of torch.Tensor)
        The operator and its inputs.
    """
    function, inputs = OPERATORS[name]
    return Operator(function), inputs()
