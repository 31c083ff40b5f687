# SPDX-License-Identifier: Apache-2.0
"""Elementwise maxima, minima and clamps in which NaN wins, as in eager; the importer's own compares would lose it."""

from __future__ import annotations

import torch

aten = torch.ops.aten


def _isnan(x):
    return x != x


def _are_floats(*tensors) -> bool:
    return all(tensor.dtype == tensors[0].dtype and tensor.is_floating_point() for tensor in tensors)


def maximum(a, b):
    """Larger element of two float tensors of one dtype; NaN where either is."""
    return torch.where((a > b) | _isnan(a), a, b) if _are_floats(a, b) else NotImplemented


def minimum(a, b):
    """Smaller element of two float tensors of one dtype; NaN where either is."""
    return torch.where((a < b) | _isnan(a), a, b) if _are_floats(a, b) else NotImplemented


def clamp(x, min=None, max=None):
    """Float tensor between two numbers; NaN stays. The upper bound wins where the bounds cross, as in eager."""
    if not x.is_floating_point() or any(bound is not None and bound != bound for bound in (min, max)):
        return NotImplemented
    if min is not None:
        x = torch.where(x < min, torch.full((), min, dtype=x.dtype, device=x.device), x)
    if max is not None:
        x = torch.where(x > max, torch.full((), max, dtype=x.dtype, device=x.device), x)
    return x


def clamp_tensor(x, min=None, max=None):
    """Float tensor between two tensors of its dtype; NaN where it or a bound is."""
    if not _are_floats(x, *(bound for bound in (min, max) if bound is not None)):
        return NotImplemented
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


def clamp_min(x, min):
    """`clamp` from below."""
    return clamp(x, min=min)


def clamp_max(x, max):
    """`clamp` from above."""
    return clamp(x, max=max)


def hardtanh(x, min_val=-1, max_val=1):
    """`clamp` under its name as an activation."""
    return clamp(x, min_val, max_val)


DECOMPOSITIONS = {
    aten.maximum.default: maximum,
    aten.minimum.default: minimum,
    aten.clamp.default: clamp,
    aten.clamp.Tensor: clamp_tensor,
    aten.clamp_min.default: clamp_min,
    aten.clamp_max.default: clamp_max,
    aten.hardtanh.default: hardtanh,
}
